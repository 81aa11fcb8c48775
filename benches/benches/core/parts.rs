//! What the parts of a turn cost: the transcript, the admission of arguments.

use std::hint::black_box;

use adjutant_benches::{Rows, median};
use adjutant_llm::{Entry, Transcript, UserMessage};
use adjutant_tool::Bound;

use crate::{caller::fetch, measure::cpu_us};

/// How often a part is measured, and how often it is done each time.
const ROUNDS: usize = 21;
const TIMES: usize = 1_000;
/// How many entries a long transcript has.
const ENTRIES: usize = 10_000;

pub(crate) fn measure(rows: &mut Rows) {
    let entry = || Entry::User(UserMessage::text("x".repeat(1_024)));
    let long: Transcript = (0..ENTRIES).map(|_| entry()).collect();
    let tool = Bound::new(fetch);
    each(
        rows,
        &format!("a clone of a transcript of {ENTRIES} entries"),
        || drop(black_box(long.clone())),
    );
    each(rows, "an entry of 1 KiB put into such a clone", || {
        black_box(long.clone().push(entry()));
    });
    each(rows, "arguments that fit admitted", || {
        drop(black_box(tool.admit(r#"{"n": 17}"#)))
    });
    each(rows, "arguments that nearly fit admitted", || {
        drop(black_box(tool.admit(r#"{"n": "17"}"#)))
    });
}

fn each(rows: &mut Rows, what: &str, mut part: impl FnMut()) {
    let mut once = |_| {
        let began = cpu_us();
        (0..TIMES).for_each(|_| part());
        (cpu_us() - began) * 1e3 / TIMES as f64
    };
    rows.figure(
        &format!("{what}, ns"),
        "",
        median((0..ROUNDS).map(&mut once)),
    );
}
