//! The list of items that the last event of an answer repeats.

use super::*;

/// Returns the reply that comes of items that come by themselves, and of the whole answer after them.
fn decoded(items: &[Value], output: &[Value]) -> Result<Reply, adjutant_llm::Error> {
    let mut decoder = decode::Decoder::new(
        &info(),
        CallIdSeed {
            turn: 3,
            attempt: 0,
        },
    );
    let mut out = std::collections::VecDeque::new();
    let done = items.iter().zip(0_u64..);
    let done = done.map(
        |(item, at)| json!({"type": "response.output_item.done", "output_index": at, "item": item}),
    );
    let last = json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    for event in done.chain([last]) {
        decoder.frame(
            Frame {
                event: "",
                data: &event.to_string(),
            },
            &mut out,
        )?;
    }
    decoder.end(&mut out)
}

#[test]
fn answer_is_refused_when_its_last_event_holds_too_many_items() {
    let items: Vec<_> = (0..4_096)
        .map(|at| json!({"type": "web_search_call", "id": format!("ws_{at}")}))
        .collect();
    let again: Vec<_> = items.iter().rev().cycle().take(20_000).cloned().collect();
    let error = decoded(&items, &again).expect_err("the answer is too long");
    let expect = (
        adjutant_llm::ErrorKind::Protocol,
        "the answer has more than 4,096 items".to_owned(),
    );
    assert_eq!((error.kind(), error.to_string()), expect);
}

#[test]
fn items_are_found_when_the_last_event_holds_them_all() {
    let items: Vec<_> = (0..4_096)
        .map(|at| json!({"type": "web_search_call", "id": format!("ws_{at}")}))
        .collect();
    let expect: Vec<_> = items
        .iter()
        .cloned()
        .map(|item| Arc::new(opaque(item)))
        .collect();
    let blocks =
        |items: &[Value], output: &[Value]| decoded(items, output).map(|reply| reply.blocks);
    assert_eq!(blocks(&[], &items), Ok(expect.clone()));
    assert_eq!(blocks(&items[..4_095], &items), Ok(expect));
    // Each stands elsewhere than it came.
    let backwards: Vec<_> = items.iter().rev().cloned().collect();
    assert_eq!(
        blocks(&items[1..], &backwards).map(|it| it.len()),
        Ok(4_096)
    );
}
