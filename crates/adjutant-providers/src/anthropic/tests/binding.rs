//! Tests of thinking that is bound to what comes before it.
//!
//! Source: "Preserved thinking", platform.claude.com, 2026-11.

use std::collections::VecDeque;

use adjutant_llm::{Chunk, Warning, WarningKind};

use super::*;
use crate::{driver::Decode, sse::Frame};

/// The header of each request.
const BETA: [(&str, &str); 1] = [("anthropic-beta", "thinking-binding-controls-2026-08-01")];

fn info(id: &str) -> ModelInfo {
    ModelInfo {
        efforts: Effort::ALL.to_vec(),
        thinking_binding: true,
        ..ModelInfo::new(id)
    }
}

/// The sites of the wire, with the name of a model there.
fn sites() -> [(Site, &'static str); 3] {
    [
        (Site::Own, "anthropic/claude-fable-5-1"),
        (Site::Bedrock, "bedrock-mantle/anthropic.claude-opus-5-5"),
        (Site::Vertex, "vertex/claude-sonnet-5-5"),
    ]
}

#[test]
fn thinking_asks_for_dropped_blocks_when_the_model_binds_them() {
    let drop = json!({"prefix_mismatch_behavior": "drop_block"});
    let with = |effort| Options {
        thinking: effort,
        ..Options::default()
    };
    let theirs = |thinking: Value| Options::default().extra("thinking", thinking);
    let cases = [
        (
            with(None),
            json!({"type": "adaptive", "block_binding": drop}),
        ),
        (
            with(Some(Effort::High)),
            json!({"type": "adaptive", "display": "summarized", "block_binding": drop}),
        ),
        (with(Some(Effort::Off)), json!({"type": "disabled"})),
        (
            theirs(json!({"type": "adaptive", "display": "updates"})),
            json!({"type": "adaptive", "display": "updates", "block_binding": drop}),
        ),
        (
            theirs(json!({"type": "adaptive", "block_binding": {}})),
            json!({"type": "adaptive", "block_binding": {}}),
        ),
        (
            theirs(json!({"type": "disabled"})),
            json!({"type": "disabled"}),
        ),
    ];
    for (site, id) in sites() {
        let model = Anthropic::new(info(id), "k").site(site);
        for (options, expect) in &cases {
            let request = Request::new().options(options.clone()).user("hi");
            let (text, warnings) = body(&model, &request);
            let sent: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(&sent["thinking"], expect, "{id}");
            assert!(warnings.is_empty(), "{warnings:?}");
        }
        assert_eq!(Driven::list_headers(&*model.inner), BETA);
        let free = ModelInfo {
            thinking_binding: false,
            ..info(id)
        };
        let model = Anthropic::new(free, "k").site(site);
        let (text, _) = body(&model, &Request::new().user("hi"));
        assert!(!text.contains("thinking"), "{text}");
        assert!(Driven::list_headers(&*model.inner).is_empty());
    }
    let budget = ModelInfo {
        thinking: ThinkingControl::Budget,
        max_output_tokens: 64_000,
        ..info("anthropic/claude-small-9")
    };
    let request = Request::new().options(with(Some(Effort::Low))).user("hi");
    let (text, _) = body(&Anthropic::new(budget, "k"), &request);
    let sent: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        sent["thinking"],
        json!({"type": "enabled", "budget_tokens": 2_048, "block_binding": drop})
    );
}

/// The warnings of an answer that begins with this report, and the raw usage.
fn reported(transformations: Value) -> (Vec<Warning>, Value) {
    let protocol = model().inner.protocol().clone();
    let seed = CallIdSeed {
        turn: 1,
        attempt: 0,
    };
    let mut decoder = Wire::decoder(&protocol, &protocol.info, seed);
    let mut out = VecDeque::new();
    let start = json!({"type": "message_start", "message": {
        "id": "m", "usage": {"input_tokens": 1}, "input_transformations": transformations,
    }});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}});
    for data in [start, end] {
        let event = data["type"].as_str().expect("a name");
        let data = data.to_string();
        decoder
            .frame(Frame { event, data: &data }, &mut out)
            .expect("an event");
    }
    let reply = decoder.end(&mut out).expect("a reply");
    let warnings = out.into_iter().filter_map(|chunk| match chunk {
        Chunk::Warned { warning } => Some(warning),
        _ => None,
    });
    (warnings.collect(), Value::clone(&reply.raw_usage))
}

#[test]
fn answer_warns_when_the_api_dropped_thinking() {
    let dropped = |path: &str, reason: &str| json!({"type": "thinking_dropped", "path": path, "reason": reason});
    let (warnings, raw) = reported(json!([
        dropped("messages.1.content.0", "prefix_binding_mismatch"),
        dropped("messages.3.content.0", "prefix_binding_mismatch"),
        {"type": "thinking_mismatch_allowed", "path": "messages.5.content.0", "reason": "prefix_binding_mismatch"},
    ]));
    let text = "2 thinking blocks of earlier replies were dropped by the API, from messages.1.content.0 on: the \
                conversation before them has changed";
    let expect = Warning {
        kind: WarningKind::ThinkingDropped,
        message: text.into(),
    };
    assert_eq!(warnings, [expect]);
    assert_eq!(
        raw["input_transformations"].as_array().map(Vec::len),
        Some(3)
    );
    let silent = [
        json!([]),
        Value::Null,
        json!("odd"),
        json!([1, {"type": "later"}, {}]),
        json!([dropped("messages.1.content.0", "model_binding_mismatch")]),
    ];
    for report in silent {
        assert_eq!(reported(report.clone()).0, [], "{report}");
    }
}
