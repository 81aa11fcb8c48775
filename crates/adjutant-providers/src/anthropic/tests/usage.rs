//! Tests of usages that are out of bounds: they cost no more than what they stand in.

use std::collections::VecDeque;

use adjutant_llm::{Chunk, Usage};

use super::*;
use crate::{driver::Decode, sse::Frame};

/// The usages that are told of these, and the last of them.
fn told(usages: impl IntoIterator<Item = String>) -> (usize, Usage, Value) {
    let protocol = model().inner.protocol().clone();
    let mut decoder = Wire::decoder(
        &protocol,
        &protocol.info,
        CallIdSeed {
            turn: 1,
            attempt: 0,
        },
    );
    let mut out = VecDeque::new();
    for usage in usages {
        let data = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
        decoder
            .frame(
                Frame {
                    event: "message_delta",
                    data: &data,
                },
                &mut out,
            )
            .expect("an event");
    }
    let count = out.len();
    let Some(Chunk::Usage { usage, raw }) = out.pop_back() else {
        unreachable!("a usage is told")
    };
    (count, usage, Value::clone(&raw))
}

#[test]
fn usage_is_told_once_when_it_stays() {
    let (count, usage, raw) =
        told((0..100).map(|_| r#"{"output_tokens":7,"input_tokens":null}"#.to_owned()));
    assert_eq!(
        (count, usage.output, raw),
        (1, 7, json!({"output_tokens": 7}))
    );
}

#[test]
fn usage_is_bounded_when_each_event_adds_to_it() {
    let (count, usage, raw) =
        told((1..=1_000).map(|at| json!({"output_tokens": at, format!("k{at}"): at}).to_string()));
    assert_eq!((count, usage.output), (1_000, 1_000));
    assert_eq!(raw.as_object().map(|it| it.len()), Some(64));
}

#[test]
fn usage_counts_without_its_raw_form_when_it_is_large_or_deep() {
    let large =
        json!({"output_tokens": 7, "iterations": [{"input_tokens": 3, "x": "x".repeat(20_000)}]});
    let (_, usage, raw) = told([large.to_string()]);
    assert_eq!((usage.output, usage.input_uncached, raw), (7, 3, json!({})));
    for depth in [20, 500] {
        let deep = format!(
            r#"{{"x":{}{},"output_tokens":7}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let (_, usage, raw) = told([deep]);
        assert_eq!(
            (usage.output, raw),
            (7, json!({"output_tokens": 7})),
            "{depth}"
        );
    }
}
