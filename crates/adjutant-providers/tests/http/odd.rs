//! Answers whose pieces are odd: halves of characters, and calls that are numbered in their own way; on each wire.

use std::sync::Arc;

use adjutant_llm::{Block, Request, ToolDecl, complete};

use crate::server::{Nobody, events, model, serve};

/// The text, the thinking, and the calls of a reply.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    thinking: String,
    calls: Vec<(String, String)>,
}

async fn ask(wire: &str, answer: &str) -> Said {
    let server = serve(vec![events(answer)]).await;
    let model = model(wire, &server.base_url, "sk-secret", Nobody);
    let reply = complete(&model, Request::new().user("hi"))
        .await
        .map_err(|error| format!("{wire}: {error}: {answer}"))
        .expect("the model replies");
    let mut said = Said::default();
    for block in &reply.blocks {
        match &**block {
            Block::Text(it) => said.text.push_str(&it.text),
            Block::Thinking(it) => said.thinking.push_str(&it.text),
            Block::Call(it) => said.calls.push((it.name.to_string(), it.args.to_string())),
            _ => {}
        }
    }
    said
}

/// An answer of events with these data; an event is named by its type.
fn answer(data: &[String]) -> String {
    let event = |data: &String| {
        let kind = serde_json::from_str::<serde_json::Value>(
            &data.replace("\\ud83d", "").replace("\\ude00", ""),
        );
        let kind = kind
            .ok()
            .and_then(|it| Some(it.get("type")?.as_str()?.to_owned()));
        let name = kind
            .map(|kind| format!("event: {kind}\n"))
            .unwrap_or_default();
        format!("{name}data: {data}\n\n")
    };
    data.iter().map(event).collect()
}

/// The kind of a delta.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Args,
}

/// An answer of a wire with these deltas, each a JSON string.
fn deltas(wire: &str, kind: Kind, deltas: &[&str]) -> String {
    let chat = |delta: &str| {
        let delta = match kind {
            Kind::Text => format!(r#"{{"content":{delta}}}"#),
            Kind::Thinking => format!(r#"{{"reasoning_content":{delta}}}"#),
            Kind::Args => {
                format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{delta}}}}}]}}"#)
            }
        };
        format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
    };
    let anthropic = |delta: &str| {
        let delta = match kind {
            Kind::Text => format!(r#""type":"text_delta","text":{delta}"#),
            Kind::Thinking => format!(r#""type":"thinking_delta","thinking":{delta}"#),
            Kind::Args => format!(r#""type":"input_json_delta","partial_json":{delta}"#),
        };
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{{delta}}}}}"#)
    };
    let openai = |delta: &str| {
        let name = match kind {
            Kind::Text => "output_text",
            Kind::Thinking => "reasoning_text",
            Kind::Args => "function_call_arguments",
        };
        format!(r#"{{"type":"response.{name}.delta","output_index":0,"delta":{delta}}}"#)
    };
    let gemini = |delta: &str| {
        let thought = kind == Kind::Thinking;
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":{delta},"thought":{thought}}}]}}}}]}}"#
        )
    };
    let deltas = deltas.iter();
    let data: Vec<String> = match wire {
        "anthropic" => {
            let block = match kind {
                Kind::Text => r#"{"type":"text","text":""}"#,
                Kind::Thinking => r#"{"type":"thinking","thinking":"","signature":""}"#,
                Kind::Args => r#"{"type":"tool_use","id":"t","name":"read","input":{}}"#,
            };
            [
                r#"{"type":"message_start","message":{"id":"m"}}"#.to_owned(),
                format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#),
            ]
            .into_iter()
            .chain(deltas.map(|it| anthropic(it)))
            .chain([
                r#"{"type":"ping"}"#.to_owned(),
                r#"{"type":"content_block_stop","index":0}"#.to_owned(),
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#.to_owned(),
                r#"{"type":"message_stop"}"#.to_owned(),
            ])
            .collect()
        }
        "openai" => {
            let item = match kind {
                Kind::Text => r#"{"type":"message","id":"m","content":[]}"#,
                Kind::Thinking => r#"{"type":"reasoning","id":"r","summary":[]}"#,
                Kind::Args => {
                    r#"{"type":"function_call","id":"f","call_id":"c","name":"read","arguments":""}"#
                }
            };
            [format!(
                r#"{{"type":"response.output_item.added","output_index":0,"item":{item}}}"#
            )]
            .into_iter()
            .chain(deltas.map(|it| openai(it)))
            .chain([
                r#"{"type":"response.completed","response":{"status":"completed"}}"#.to_owned(),
            ])
            .collect()
        }
        "gemini" => deltas
            .map(|it| gemini(it))
            .chain([r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned()])
            .collect(),
        _ => {
            let name = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":""}}]}}]}"#;
            (kind == Kind::Args)
                .then(|| name.to_owned())
                .into_iter()
                .chain(deltas.map(|it| chat(it)))
                .chain([
                    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned(),
                    "[DONE]".to_owned(),
                ])
                .collect()
        }
    };
    answer(&data)
}

#[tokio::test]
async fn halves_of_a_character_are_joined_or_replaced_when_deltas_hold_them() {
    let table: [(&[&str], &str); 7] = [
        (&[r#""Hi \ud83d""#, r#""\ude00 there""#], "Hi 😀 there"),
        (&[r#""\ud83d""#, r#""\ude00""#], "😀"),
        (
            &[r#""a\ud83d""#, r#""\ude00\ud83d""#, r#""\ude00b""#],
            "a😀😀b",
        ),
        (&[r#""a\ud83d""#, r#""b""#], "a\u{fffd}b"),
        (&[r#""a\ude00b\ud83dc""#], "a\u{fffd}b\u{fffd}c"),
        (&[r#""a""#, r#""b\ud83d""#], "ab\u{fffd}"),
        (&[r#""a\ud83d\ude00b""#, r#""c""#], "a😀bc"),
    ];
    for wire in ["anthropic", "openai", "gemini", "chat"] {
        for (pieces, expect) in table {
            let said = ask(wire, &deltas(wire, Kind::Text, pieces)).await;
            assert_eq!(said.text, expect, "{wire}: {pieces:?}");
            let said = ask(wire, &deltas(wire, Kind::Thinking, pieces)).await;
            assert_eq!(said.thinking, expect, "{wire}: {pieces:?}");
            if wire == "gemini" {
                continue;
            }
            let quoted: Vec<_> = [&[r#""{\"a\":\"""#], pieces, &[r#""\"}""#]].concat();
            let said = ask(wire, &deltas(wire, Kind::Args, &quoted)).await;
            let args = format!(r#"{{"a":"{expect}"}}"#);
            assert_eq!(
                said.calls,
                [("read".to_owned(), args)],
                "{wire}: {quoted:?}"
            );
        }
    }
}

#[tokio::test]
async fn halves_are_replaced_when_the_json_of_arguments_holds_them() {
    let expect = |args: &str| vec![("read".to_owned(), args.to_owned())];
    for wire in ["anthropic", "openai", "chat"] {
        let pieces = [r#""{\"a\":\"\\ud83d""#, r#""\\ude00\\ud83d\"}""#];
        let said = ask(wire, &deltas(wire, Kind::Args, &pieces)).await;
        assert_eq!(
            said.calls,
            expect(r#"{"a":"\ud83d\ude00\ufffd"}"#),
            "{wire}"
        );
    }
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"a":"\ud83d"}}}]},"finishReason":"STOP"}]}"#;
    let said = ask("gemini", &format!("data: {call}\n\n")).await;
    assert_eq!(said.calls, expect(r#"{"a":"\ufffd"}"#));
}

#[tokio::test]
async fn calls_are_told_apart_when_their_pieces_are_numbered_oddly() {
    let start = |index: &str, id: &str, name: &str| {
        format!(
            r#"{{"type":"content_block_start",{index}"content_block":{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}}}"#
        )
    };
    let piece = |index: &str, args: &str| {
        let args = serde_json::to_string(args).expect("JSON");
        format!(
            r#"{{"type":"content_block_delta",{index}"delta":{{"type":"input_json_delta","partial_json":{args}}}}}"#
        )
    };
    let end = [
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let (zero, one, none) = (r#""index":0,"#, r#""index":1,"#, "");
    let (text, null) = (r#""index":"0","#, r#""index":null,"#);
    let a = vec![("read".to_owned(), r#"{"a":1}"#.to_owned())];
    let mut both = a.clone();
    both.push(("list".to_owned(), r#"{"b":2}"#.to_owned()));
    let messages = [
        (
            "drifting index",
            vec![
                start(zero, "t1", "read"),
                piece(zero, r#"{"a""#),
                piece(one, ":1}"),
            ],
            &a,
        ),
        (
            "all arguments once more",
            vec![
                start(zero, "t1", "read"),
                piece(zero, r#"{"a""#),
                piece(zero, ":1}"),
                piece(zero, r#"{"a":1}"#),
            ],
            &a,
        ),
        (
            "one index for all, never closed",
            vec![
                start(zero, "t1", "read"),
                piece(zero, r#"{"a":1}"#),
                start(zero, "t2", "list"),
                piece(zero, r#"{"b":2}"#),
            ],
            &both,
        ),
        (
            "index as a text",
            vec![
                start(text, "t1", "read"),
                piece(text, r#"{"a":1}"#),
                start(one, "t2", "list"),
                piece(one, r#"{"b":2}"#),
            ],
            &both,
        ),
        (
            "no index",
            vec![
                start(none, "t1", "read"),
                piece(null, r#"{"a":1}"#),
                r#"{"type":"content_block_stop"}"#.to_owned(),
                start(none, "t2", "list"),
                piece(none, r#"{"b":2}"#),
            ],
            &both,
        ),
    ];
    for (report, data, expect) in messages {
        let said = ask("anthropic", &answer(&[data, end.to_vec()].concat())).await;
        assert_eq!(said.calls, *expect, "{report}");
    }
    let added = |index: &str, id: &str, name: &str| {
        format!(
            r#"{{"type":"response.output_item.added",{index}"item":{{"type":"function_call","id":"{id}","call_id":"c{id}","name":"{name}","arguments":""}}}}"#
        )
    };
    let grown = |place: &str, args: &str| {
        let args = serde_json::to_string(args).expect("JSON");
        format!(r#"{{"type":"response.function_call_arguments.delta",{place}"delta":{args}}}"#)
    };
    let completed = r#"{"type":"response.completed","response":{"status":"completed"}}"#.to_owned();
    let (zero, one) = (r#""output_index":0,"#, r#""output_index":1,"#);
    let responses = [
        (
            "drifting index, another id",
            vec![
                added(zero, "f1", "read"),
                grown(r#""output_index":0,"item_id":"x1","#, r#"{"a""#),
                grown(r#""output_index":1,"item_id":"x2","#, ":1}"),
            ],
            &a,
        ),
        (
            "index as a text",
            vec![
                added(r#""output_index":"0","#, "f1", "read"),
                grown(r#""output_index":"0","#, r#"{"a":1}"#),
                added(r#""output_index":"1","#, "f2", "list"),
                grown(r#""output_index":"1","#, r#"{"b":2}"#),
            ],
            &both,
        ),
        (
            "no index",
            vec![
                added(none, "f1", "read"),
                grown(none, r#"{"a":1}"#),
                added(none, "f2", "list"),
                grown(none, r#"{"b":2}"#),
            ],
            &both,
        ),
        (
            "one index for all",
            vec![
                added(zero, "f1", "read"),
                grown(zero, r#"{"a":1}"#),
                added(zero, "f2", "list"),
                grown(zero, r#"{"b":2}"#),
            ],
            &both,
        ),
        (
            "a call after a text, under the index of the text",
            vec![
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#.to_owned(),
                added(one, "f1", "read"),
                grown(zero, r#"{"a":1}"#),
            ],
            &a,
        ),
    ];
    for (report, data, expect) in responses {
        let said = ask("openai", &answer(&[data, vec![completed.clone()]].concat())).await;
        assert_eq!(said.calls, *expect, "{report}");
    }
    let call = r#"{"functionCall":{"id":"g1","name":"read","args":{"a":1}}}"#;
    let again = format!(
        "data: {{\"candidates\":[{{\"index\":\"0\",\"content\":{{\"parts\":[{call}]}}}}]}}\n\n"
    );
    let stop = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
    let said = ask("gemini", &format!("{again}{again}{stop}")).await;
    assert_eq!(said.calls, a);
}

#[tokio::test]
async fn tools_are_declared_as_vendors_read_them_and_calls_get_their_keys_back() {
    let schema = serde_json::json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "$filter": {"type": "string", "pattern": "^(?!x)"},
            "p": {"type": "array", "items": [{"type": "number"}, {"type": "number"}]},
        },
        "required": ["$filter"],
    });
    let tool = ToolDecl {
        name: "read".into(),
        description: "Reads.".into(),
        schema: Arc::new(schema),
    };
    let calls = [r#""{\"_filter\":""#, r#""\"a\",\"p\":[1,2]}""#];
    for wire in ["anthropic", "openai", "gemini", "chat"] {
        let answer = if wire == "gemini" {
            let call = r#"{"functionCall":{"name":"read","args":{"_filter":"a","p":[1,2]}}}"#;
            format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{call}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
            )
        } else {
            deltas(wire, Kind::Args, &calls)
        };
        let mut server = serve(vec![events(&answer)]).await;
        let model = model(wire, &server.base_url, "sk-secret", Nobody);
        let request = Request::new().tools([tool.clone()]).user("hi");
        let reply = complete(&model, request).await.expect("a reply");
        let args: Vec<_> = reply.calls().map(|call| call.args.to_string()).collect();
        assert_eq!(args, [r#"{"$filter":"a","p":[1,2]}"#], "{wire}");
        let body = server.next().await.body;
        assert!(
            !body.contains("$filter") && !body.contains("$schema"),
            "{wire}: {body}"
        );
        assert!(
            !body.contains("(?!") && !body.contains(r#""items":["#),
            "{wire}: {body}"
        );
        let declared = r#""p":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":{}}"#;
        assert!(body.contains(declared), "{wire}: {body}");
        assert!(body.contains(r#""required":["_filter"]"#), "{wire}: {body}");
    }
}
