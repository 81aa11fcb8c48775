//! How fast answers are decoded, beside a hand-written reader of the same bytes and beside two crates that split events.
//!
//! Ratios are medians of rounds in which all read in turns; with names of wires, only these are read.
#[path = "decode/floor.rs"]
mod floor;
#[path = "decode/streams.rs"]
mod streams;

use std::{env, hint::black_box, process::ExitCode, time::Instant};

use adjutant_benches::{Rows, median};
use adjutant_providers::fuzzing::{self, Wire};
use bytes::Bytes;

use floor::Events;

const MB: usize = 1_000_000;
/// The long stream; a quarter of it shows whether the cost is linear.
const LONG: usize = 12 * MB;
/// The large event.
const EVENT: usize = 8 * 1024 * 1024;
/// How often each reader gets its turn for the ratios.
const ROUNDS: usize = 9;
/// What decoding may cost over the floor, and a byte of a long stream over one of a shorter.
const OVER_FLOOR: f64 = 1.5;
const LINEAR: f64 = 1.2;

/// Reads an answer; gives how much came of it.
type Reader = fn(&Bytes) -> usize;

/// A wire, and those who read it: we first, then the floor.
struct Case {
    name: &'static str,
    wire: Wire,
    readers: [(&'static str, Reader); 4],
}

fn cases() -> [Case; 4] {
    let case = |name, wire, readers: [Reader; 4]| {
        let [ours, floor, sse, eventsource] = readers;
        let readers = [
            ("ours", ours),
            ("floor", floor),
            ("sse-stream", sse),
            ("eventsource-stream", eventsource),
        ];
        Case {
            name,
            wire,
            readers,
        }
    };
    [
        case(
            "messages",
            Wire::Messages,
            readers::<floor::Messages>(|it| ours(Wire::Messages, it)),
        ),
        case(
            "responses",
            Wire::Responses,
            readers::<floor::Responses>(|it| ours(Wire::Responses, it)),
        ),
        case(
            "chat",
            Wire::Chat,
            readers::<floor::Chat>(|it| ours(Wire::Chat, it)),
        ),
        case(
            "gemini",
            Wire::Gemini,
            readers::<floor::Gemini>(|it| ours(Wire::Gemini, it)),
        ),
    ]
}

fn readers<E: Events>(ours: Reader) -> [Reader; 4] {
    [
        ours,
        |it| weight(floor::by_hand::<E>(it)),
        |it| weight(floor::by_sse_stream::<E>(it)),
        |it| weight(floor::by_eventsource_stream::<E>(it)),
    ]
}

fn ours(wire: Wire, stream: &Bytes) -> usize {
    fuzzing::decode_once(wire, stream).expect("an answer")
}

fn weight(answer: floor::Answer) -> usize {
    assert!(
        answer.finished && answer.tokens == 15,
        "the floor reads the whole answer"
    );
    black_box(answer.text).len()
}

impl Case {
    /// The streams, and how many of the readers can read them: eventsource-stream is quadratic in the size of an event.
    fn streams(&self) -> [(&'static str, Bytes, usize); 3] {
        [
            ("12 MB", streams::small_deltas(self.wire, LONG), 4),
            ("3 MB", streams::small_deltas(self.wire, LONG / 4), 4),
            (
                "one event of 8 MiB",
                streams::one_event(self.wire, EVENT),
                3,
            ),
        ]
    }

    /// Prints our time over that of the others: medians of the rounds, in each of which all read once.
    fn compare(&self, rows: &mut Rows) {
        let streams = self.streams();
        let rounds: Vec<Vec<Vec<f64>>> = (0..ROUNDS)
            .map(|_| streams.iter().map(|it| self.round(it)).collect())
            .collect();
        for (at, (size, _, count)) in streams.iter().enumerate() {
            let over =
                |reader: usize| median(rounds.iter().map(|round| round[at][0] / round[at][reader]));
            let ns = |reader: usize| median(rounds.iter().map(|round| round[at][reader]));
            let ratios: Vec<String> = (2..*count)
                .map(|reader| format!("{} {:.2}", self.readers[reader].0, over(reader)))
                .collect();
            let measured = format!(
                "{:.2} and {:.2} ns/B; over others: {}",
                ns(0),
                ns(1),
                ratios.join(", ")
            );
            rows.row(
                &format!("decode {}, {size}, over the floor", self.name),
                &measured,
                over(1),
                OVER_FLOOR,
            );
        }
        let linear = median(rounds.iter().map(|round| round[0][0] / round[1][0]));
        rows.row(
            &format!("decode {}, 12 MB over 3 MB, per byte", self.name),
            "linear: 1",
            linear,
            LINEAR,
        );
    }

    /// What each reader takes for a byte of a stream, in nanoseconds.
    fn round(&self, (_, stream, count): &(&'static str, Bytes, usize)) -> Vec<f64> {
        let time = |read: &Reader| {
            let begun = Instant::now();
            black_box(read(black_box(stream)));
            begun.elapsed().as_secs_f64() * 1e9 / stream.len() as f64
        };
        self.readers[..*count]
            .iter()
            .map(|(_, read)| time(read))
            .collect()
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let (cases, mut rows) = (cases(), Rows::default());
    let has = |case: &Case| words.iter().any(|it| it == case.name);
    let chosen = cases.iter().any(has);
    cases
        .iter()
        .filter(|case| !chosen || has(case))
        .for_each(|case| case.compare(&mut rows));
    rows.end()
}
