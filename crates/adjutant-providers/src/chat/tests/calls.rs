//! The pieces of calls as servers really send them, each from a public report.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::ModelInfo;
use serde_json::{Value, json};

use crate::{
    blocks::CallIdSeed, chat::decode::Decoder, dialect::Dialect, driver::Decode, sse::Frame,
};

/// Decodes pieces of calls, one (or a list) an event: the name, the arguments and the id of each call.
fn calls(pieces: &[Value]) -> Result<Vec<(String, String, String)>, String> {
    let seed = CallIdSeed {
        turn: 1,
        attempt: 0,
    };
    let mut decoder = Decoder::new(
        Arc::new(ModelInfo::new("test/model")),
        Dialect::for_provider("openai"),
        seed,
    );
    let mut out = VecDeque::new();
    let stop = json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"});
    let choices = pieces
        .iter()
        .map(|piece| match piece {
            Value::Array(pieces) => pieces.clone(),
            piece => vec![piece.clone()],
        })
        .map(|pieces| json!({"index": 0, "delta": {"tool_calls": pieces}}))
        .chain([stop]);
    for choice in choices {
        let data = json!({"choices": [choice]}).to_string();
        let frame = Frame {
            event: "",
            data: &data,
        };
        decoder
            .frame(frame, &mut out)
            .map_err(|error| error.to_string())?;
    }
    let reply = decoder.end(&mut out).map_err(|error| error.to_string())?;
    let call = |call: &adjutant_llm::Call| {
        let id = call.wire_id.as_deref().unwrap_or("-");
        (call.name.to_string(), call.args.to_string(), id.to_owned())
    };
    Ok(reply.calls().map(call).collect())
}

/// A piece of a call; `null` stands for what is missing.
fn piece(index: Value, id: Value, name: Value, args: Value) -> Value {
    let mut piece =
        json!({"index": index, "id": id, "function": {"name": name, "arguments": args}});
    let function = piece["function"].as_object_mut().expect("an object");
    function.retain(|_, value| !value.is_null());
    let members = piece.as_object_mut().expect("an object");
    members.retain(|_, value| !value.is_null());
    piece
}

#[test]
fn calls_are_told_apart_when_servers_number_them_in_their_own_way() {
    let n = || Value::Null;
    let one = |id: &'static str| vec![("read", r#"{"a":1}"#, id)];
    let two = |first: &'static str, second: &'static str| {
        vec![
            ("read", r#"{"a":1}"#, first),
            ("list", r#"{"b":2}"#, second),
        ]
    };
    let table = [
        // Nebius with gpt-oss: the last piece comes under the next index.
        (
            "drifting index",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(0), n(), n(), json!(r#"{"a""#)),
                piece(json!(1), n(), n(), json!(":1}")),
            ],
            one("c1"),
        ),
        (
            "index that drifts in each piece, before another call",
            vec![
                piece(json!(0), json!("c1"), json!("read"), n()),
                piece(json!(1), n(), n(), json!(r#"{"a""#)),
                piece(json!(2), n(), n(), json!(":1}")),
                piece(json!(3), json!("c2"), json!("list"), json!("")),
                piece(json!(3), n(), n(), json!(r#"{"b":2}"#)),
            ],
            two("c1", "c2"),
        ),
        // elizaOS/eliza 16973, 2026-07.
        (
            "all arguments once more at the end",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), n(), n(), json!(":1}")),
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a":1}"#)),
            ],
            one("c1"),
        ),
        (
            "all arguments once more, spaced, without a name",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), n(), n(), json!(":1}")),
                piece(json!(0), n(), n(), json!(r#"{"a": 1}"#)),
            ],
            vec![("read", r#"{"a": 1}"#, "c1")],
        ),
        (
            "all arguments once more under the next index",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), n(), n(), json!(":1}")),
                piece(json!(1), n(), n(), json!(r#"{"a":1}"#)),
            ],
            one("c1"),
        ),
        // NousResearch/hermes-agent 35718, 2026-05: Baidu Qianfan.
        (
            "all arguments so far in each piece",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(0), n(), n(), json!(r#"{"a"#)),
                piece(json!(0), n(), n(), json!(r#"{"a":1"#)),
                piece(json!(0), n(), n(), json!(r#"{"a":1}"#)),
            ],
            one("c1"),
        ),
        (
            "an object that begins like the one around it",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a":"#)),
                piece(json!(0), n(), n(), json!(r#"{"a":1}}"#)),
            ],
            vec![("read", r#"{"a":{"a":1}}"#, "c1")],
        ),
        // su-kaka/gcli2api 406, 2026-08, and huggingface/smolagents 1958, 2026-01.
        (
            "whole calls that share an index, without ids",
            vec![
                piece(json!(0), n(), json!("read"), json!(r#"{"a":1}"#)),
                piece(json!(0), n(), json!("list"), json!(r#"{"b":2}"#)),
            ],
            two("-", "-"),
        ),
        (
            "calls of one name that share an index, without ids",
            vec![
                piece(json!(0), n(), json!("read"), json!(r#"{"a":1}"#)),
                piece(json!(0), n(), json!("read"), json!(r#"{"a":2}"#)),
            ],
            vec![("read", r#"{"a":1}"#, "-"), ("read", r#"{"a":2}"#, "-")],
        ),
        (
            "calls in pieces that share an index, without ids",
            vec![
                piece(json!(0), n(), json!("read"), json!("")),
                piece(json!(0), n(), n(), json!(r#"{"a""#)),
                piece(json!(0), n(), n(), json!(":1}")),
                piece(json!(0), n(), json!("list"), json!("")),
                piece(json!(0), n(), n(), json!(r#"{"b":2}"#)),
            ],
            two("-", "-"),
        ),
        // ollama/ollama 15457, 2026-04.
        (
            "calls that share an index and have ids",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(0), json!("c2"), json!("list"), json!("")),
                piece(json!(0), json!("c1"), n(), json!(r#"{"a":1}"#)),
                piece(json!(0), json!("c2"), n(), json!(r#"{"b":2}"#)),
            ],
            two("c1", "c2"),
        ),
        // SillyTavern/SillyTavern 5948, 2026-08: Fireworks.
        (
            "id and name in each piece",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), json!("c1"), json!("read"), json!(":1}")),
                piece(json!(0), json!("c1"), json!("read"), json!("")),
            ],
            one("c1"),
        ),
        // poolsideai/pool 9, 2026-05.
        (
            "another id in the pieces after the first",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(0), json!("x1"), n(), json!(r#"{"a""#)),
                piece(json!(0), json!("x2"), n(), json!(":1}")),
            ],
            one("c1"),
        ),
        (
            "another id in each piece, with the name",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), json!("x1"), json!("read"), json!(":1}")),
            ],
            one("c1"),
        ),
        // NousResearch/hermes-agent 8259, 2026-04: MiniMax at NVIDIA.
        (
            "the name in each piece, without ids",
            vec![
                piece(json!(0), n(), json!("read"), json!("")),
                piece(json!(0), n(), json!("read"), json!(r#"{"a""#)),
                piece(json!(0), n(), json!("read"), json!(":1}")),
            ],
            one("-"),
        ),
        // continuedev/continue 5849, 2025-05: Gemini behind a gateway.
        (
            "the name in pieces",
            vec![
                piece(json!(0), json!("c1"), json!("re"), json!("")),
                piece(json!(0), n(), json!("ad"), json!("")),
                piece(json!(0), n(), n(), json!(r#"{"a":1}"#)),
            ],
            one("c1"),
        ),
        (
            "the name so far in each piece",
            vec![
                piece(json!(0), n(), json!("re"), n()),
                piece(json!(0), n(), json!("read"), n()),
                piece(json!(0), n(), n(), json!(r#"{"a":1}"#)),
            ],
            one("-"),
        ),
        // chatanywhere/GPT_API_free 254, 2024-06, and ollama/ollama 7881, 2024-11.
        (
            "an index that is a text",
            vec![
                piece(json!("0"), json!("c1"), json!("read"), json!("")),
                piece(json!("0"), n(), n(), json!(r#"{"a":1}"#)),
                piece(json!("1"), json!("c2"), json!("list"), json!(r#"{"b":2}"#)),
            ],
            two("c1", "c2"),
        ),
        (
            "no index",
            vec![
                piece(n(), json!("c1"), json!("read"), json!("")),
                piece(n(), json!("c1"), n(), json!(r#"{"a""#)),
                piece(n(), n(), n(), json!(":1}")),
                piece(n(), json!("c2"), json!("list"), json!(r#"{"b":2}"#)),
            ],
            two("c1", "c2"),
        ),
        (
            "calls with one id, told apart by their index",
            vec![
                piece(json!(0), json!("c"), json!("read"), json!(r#"{"a":1}"#)),
                piece(json!(1), json!("c"), json!("list"), json!("")),
                piece(json!(1), n(), n(), json!(r#"{"b":2}"#)),
            ],
            two("c", "c"),
        ),
        (
            "equal calls with two ids",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!(r#"{"a":1}"#)),
                piece(json!(0), json!("c2"), json!("read"), json!(r#"{"a":1}"#)),
            ],
            vec![("read", r#"{"a":1}"#, "c1"), ("read", r#"{"a":1}"#, "c2")],
        ),
        (
            "equal calls with two numbers",
            vec![
                piece(json!(0), n(), json!("read"), json!(r#"{"a":1}"#)),
                piece(json!(1), n(), json!("read"), json!(r#"{"a":1}"#)),
            ],
            vec![("read", r#"{"a":1}"#, "-"), ("read", r#"{"a":1}"#, "-")],
        ),
        (
            "equal calls in one delta",
            vec![json!([
                piece(n(), n(), json!("read"), json!(r#"{"a":1}"#)),
                piece(n(), n(), json!("read"), json!(r#"{"a":1}"#)),
            ])],
            vec![("read", r#"{"a":1}"#, "-"), ("read", r#"{"a":1}"#, "-")],
        ),
        (
            "calls without arguments",
            vec![
                piece(json!(0), json!("c1"), json!("read"), json!("")),
                piece(json!(1), json!("c2"), json!("list"), json!("")),
            ],
            vec![("read", "", "c1"), ("list", "", "c2")],
        ),
    ];
    for (report, pieces, expect) in table {
        let expect: Vec<_> = expect
            .into_iter()
            .map(|(name, args, id)| (name.to_owned(), args.to_owned(), id.to_owned()))
            .collect();
        assert_eq!(calls(&pieces), Ok(expect), "{report}");
    }
}
