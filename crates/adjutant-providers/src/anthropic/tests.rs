//! Tests of the wire: conformance, and the bytes of requests.

mod binding;
mod marks;
mod options;
mod usage;

use adjutant_llm::{
    Block, Cache, Call, CallId, CallResult, Content, Custom, Document, Effort, Entry, Extra,
    FinishReason, Format, Image, Inputs, Options, Reply, Request, RequestOption, Source, Status,
    Structured, Summary, Text, Thinking, ThinkingControl, ToolChoice, ToolDecl, Transcript, Turn,
    UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    driver::{Driven, tests as play},
    segments::Prepared,
};

const ID: &str = "anthropic/claude-sonnet-5";
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn model() -> Anthropic {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    Anthropic::new(
        ModelInfo {
            inputs,
            ..ModelInfo::new(ID)
        },
        "sk-secret",
    )
}

/// The body of a request without the marks of its messages, and its warnings.
fn body(model: &Anthropic, request: &Request) -> (String, Vec<String>) {
    let Prepared { body, warnings, .. } = Driven::encode(&*model.inner, request);
    (
        json_text(body.to_unmarked()),
        warnings.iter().map(ToString::to_string).collect(),
    )
}

/// The body of a request as it is sent.
fn marked(model: &Anthropic, request: &Request) -> String {
    json_text(Driven::encode(&*model.inner, request).body.to_vec())
}

fn json_text(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).expect("text");
    serde_json::from_str::<Value>(&text).expect("a body is JSON");
    text
}

fn tool(name: &str) -> ToolDecl {
    let schema = Arc::new(json!({"type": "object", "properties": {}}));
    ToolDecl {
        name: name.into(),
        description: "Reads.".into(),
        schema,
    }
}

/// Checks the messages of a request that shows these entries.
#[track_caller]
fn check(entries: impl IntoIterator<Item = Entry>, expect: Value) {
    let (text, _) = body(
        &model(),
        &Request::from_entries(Transcript::from_iter(entries)),
    );
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["messages"], expect);
}

fn id(block: u32) -> CallId {
    CallId {
        turn: 3,
        attempt: 0,
        block,
    }
}

fn call(block: u32, args: &str) -> Block {
    Block::Call(Call {
        id: id(block),
        wire_id: Some("toolu_1".into()),
        name: "read".into(),
        args: args.into(),
        extra: Default::default(),
    })
}

fn turn(model: &str, stop: FinishReason, blocks: Vec<Block>, results: Vec<CallResult>) -> Entry {
    let mut reply = Reply::new(model.into(), stop);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    let mut open = Turn::open(Arc::new(reply.clone()));
    for (call, result) in reply.calls().zip(results) {
        open.put(call.id, Arc::new(result))
            .expect("the call is open");
    }
    Entry::Turn(open.close().expect("every call has its result"))
}

fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Block {
    Block::Thinking(Thinking {
        text: text.into(),
        signature: signature.map(Into::into),
        redacted,
        extra: Default::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn answers_become_chunks_when_anything_is_sent() {
    play::conform(&model().inner, "anthropic").await;
}

#[tokio::test(start_paused = true)]
async fn answer_is_read_when_it_comes_as_one_document() {
    let thinking = r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln"}"#;
    let text = r#"{"type":"text","text":"Look."}"#;
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}}"#;
    let usage = r#"{"input_tokens":3,"output_tokens":7}"#;
    let document = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","content":[{thinking},{text},{call}],"stop_reason":"tool_use","usage":{usage}}}"#
    );
    let open = |index: u8, block: &str| {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
    };
    let close = |index: u8| format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    let events = [
        r#"{"type":"message_start","message":{"id":"msg_1"}}"#,
        &open(0, thinking),
        &close(0),
        &open(1, text),
        &close(1),
        &open(2, call),
        &close(2),
        &format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"tool_use"}},"usage":{usage}}}"#
        ),
        r#"{"type":"message_stop"}"#,
    ];
    play::document_says_the_same(&model().inner, &document, &events).await;
}

#[test]
fn answers_break_nothing_when_they_are_garbled() {
    play::survive(&model().inner, "anthropic");
}

#[test]
fn body_is_written_byte_for_byte_when_all_is_set() {
    let options = Options {
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        ..Options::default()
    }
    .extra("top_k", 5);
    let request = Request::new()
        .system("Be \"brief\".")
        .tools([tool("read")])
        .options(options)
        .user("hi");
    let expect = r#"{"model":"claude-sonnet-5","max_tokens":100,"stream":true,"temperature":0.5,"stop_sequences":["END"],"top_k":5,"system":[{"type":"text","text":"Be \"brief\".","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"read","description":"Reads.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#;
    assert_eq!(marked(&model(), &request), expect);
    let unmarked = expect.replace(
        "\"hi\",\"cache_control\":{\"type\":\"ephemeral\"}",
        "\"hi\"",
    );
    assert_eq!(body(&model(), &request), (unmarked, vec![]));
}

#[test]
fn body_warns_when_options_are_refused() {
    let info = ModelInfo {
        refuses: vec![RequestOption::Temperature],
        ..ModelInfo::new(ID)
    };
    let model = Anthropic::new(info, "k").base_url("http://127.0.0.1:1");
    let options = Options {
        max_output_tokens: Some(10_000),
        temperature: Some(1.0),
        ..Options::default()
    }
    .extra("stream", false);
    let (text, warnings) = body(&model, &Request::new().options(options).user("hi"));
    assert_eq!(
        text,
        r#"{"model":"claude-sonnet-5","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
    );
    assert_eq!(
        warnings,
        [
            "temperature was dropped: anthropic/claude-sonnet-5 refuses it",
            "max_output_tokens was lowered from 10000 to 8192: anthropic/claude-sonnet-5 allows no more",
            "the extra field stream was dropped: it is made of the request itself",
        ]
    );
}

#[test]
fn turn_sends_all_results_in_one_message_when_calls_are_parallel() {
    let mut ran = CallResult::ok("b");
    ran.args = Some(r#"{"path":"b"}"#.into());
    check(
        [turn(
            ID,
            FinishReason::Calls,
            vec![
                Block::text("Look."),
                Block::text(""),
                call(1, r#"{"n":9007199254740993}"#),
                call(2, "{}"),
                call(3, "x"),
            ],
            vec![
                CallResult::ok("a"),
                ran,
                CallResult::new(Status::Truncated, ""),
            ],
        )],
        json!([
            {"role": "assistant", "content": [
                {"type": "text", "text": "Look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"n": 9_007_199_254_740_993_u64}},
                {"type": "tool_use", "id": "c3_0_2", "name": "read", "input": {"path": "b"}},
                {"type": "tool_use", "id": "c3_0_3", "name": "read", "input": {"INVALID_JSON": "x"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a"}]},
                {"type": "tool_result", "tool_use_id": "c3_0_2", "content": [{"type": "text", "text": "b"}]},
                {"type": "tool_result", "tool_use_id": "c3_0_3", "is_error": true,
                 "content": [{"type": "text", "text": "the call failed"}]},
            ]},
        ]),
    );
}

#[test]
fn turn_replays_thinking_when_it_is_of_the_same_model() {
    let opaque = |issuer: &str| Block::Opaque {
        issuer: issuer.into(),
        value: json!({"type": "compaction", "x": 1}),
    };
    let blocks = || {
        vec![
            thinking("", Some("sig"), false),
            thinking("hm", None, false),
            thinking("", Some("enc"), true),
            opaque("anthropic"),
            opaque("openai"),
            Block::text("a"),
        ]
    };
    check(
        [turn(ID, FinishReason::Length, blocks(), vec![])],
        json!([{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "sig"},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "compaction", "x": 1},
            {"type": "text", "text": "a"},
        ]}]),
    );
    check(
        [turn(
            "anthropic/claude-opus-5",
            FinishReason::End,
            blocks(),
            vec![],
        )],
        json!([{"role": "assistant", "content": [{"type": "compaction", "x": 1}, {"type": "text", "text": "a"}]}]),
    );
    check(
        [turn(
            ID,
            FinishReason::Length,
            vec![thinking("hm", Some("s"), false)],
            vec![],
        )],
        json!([]),
    );
}

#[test]
fn turn_sends_text_alone_when_it_was_cut_short() {
    for stop in [
        FinishReason::Interrupted,
        FinishReason::Refused,
        FinishReason::Filtered,
    ] {
        let blocks = vec![
            thinking("", Some("s"), false),
            Block::text("half"),
            call(2, "{}"),
        ];
        check(
            [turn(
                ID,
                stop,
                blocks,
                vec![CallResult::new(Status::Cancelled, "no")],
            )],
            json!([{"role": "assistant", "content": [{"type": "text", "text": "half"}]}]),
        );
        check(
            [turn(
                ID,
                stop,
                vec![call(0, "{}")],
                vec![CallResult::new(Status::Cancelled, "no")],
            )],
            json!([]),
        );
    }
}

#[test]
fn user_content_is_sent_in_its_forms_when_it_has_media() {
    let base64 = |data: &str| Source::Base64 { data: data.into() };
    let document = |media_type: &str, source| {
        Content::Document(Document {
            media_type: media_type.into(),
            name: Some("n".into()),
            source,
        })
    };
    let content = vec![
        Content::text(" "),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: base64("aGk="),
        }),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: Source::Url {
                url: "https://a.example".into(),
            },
        }),
        document("application/pdf", base64("aGk=")),
        document("text/csv", base64("aGk=")),
    ];
    check(
        [
            Entry::User(UserMessage::from(content)),
            Entry::User(UserMessage::text(" \n")),
            Entry::Custom(Custom {
                kind: "x".into(),
                value: Value::Null,
            }),
            Entry::Summary(Summary {
                text: "so far".into(),
                covers: 3,
            }),
        ],
        json!([
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "image", "source": {"type": "url", "url": "https://a.example"}},
                {"type": "document", "title": "n",
                 "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
                {"type": "document", "title": "n", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
            ]},
            {"role": "user", "content": [{"type": "text", "text": "so far"}]},
        ]),
    );
}

/// Arbitrary entries: users, turns with calls, cut-off turns, and what is not sent at all.
pub(crate) fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let text = "[a-z\"\\\\ é🦀\n]{0,40}";
    let entry = prop_oneof![
        text.prop_map(|text| Entry::User(UserMessage::text(text))),
        text.prop_map(|text| Entry::Summary(Summary {
            text: text.into(),
            covers: 1
        })),
        Just(Entry::Custom(Custom {
            kind: "x".into(),
            value: Value::Null
        })),
        (text, text, any::<bool>()).prop_map(|(said, args, whole)| {
            let stop = if whole {
                FinishReason::Calls
            } else {
                FinishReason::Interrupted
            };
            turn(
                ID,
                stop,
                vec![Block::text(said), call(1, &args)],
                vec![CallResult::ok("x".repeat(30_000))],
            )
        }),
    ];
    prop::collection::vec(entry, 1..12)
}

#[test]
fn turn_is_replayed_exactly_when_its_provider_ran_tools() {
    let opaque = |value: &Value| Block::Opaque {
        issuer: "anthropic".into(),
        value: value.clone(),
    };
    let used = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust"}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let pending =
        json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_fetch", "input": {}});
    let fallback = json!({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}});
    let cited = json!([{"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "e"}]);
    let text = Block::Text(Text {
        text: "a".into(),
        extra: Extra::from(json!({"citations": cited})),
    });
    let blocks = || {
        vec![
            opaque(&fallback),
            opaque(&used),
            opaque(&found),
            text.clone(),
            Block::text(" "),
            opaque(&pending),
        ]
    };
    let shown = json!({"type": "text", "text": "a", "citations": cited});
    let sent = |content: Value| json!([{"role": "assistant", "content": content}]);
    check(
        [turn(ID, FinishReason::Paused, blocks(), vec![])],
        sent(json!([fallback, used, found, shown, pending])),
    );
    // A call that never got its result is refused.
    check(
        [turn(ID, FinishReason::Length, blocks(), vec![])],
        sent(json!([fallback, used, found, shown])),
    );
    let plain = json!({"type": "text", "text": "a"});
    check(
        [turn("anthropic/x", FinishReason::End, blocks(), vec![])],
        sent(json!([fallback, used, found, plain])),
    );
    check(
        [turn(
            ID,
            FinishReason::Length,
            vec![thinking("", Some("s"), false), opaque(&pending)],
            vec![],
        )],
        json!([]),
    );
    let by_code = json!({"type": "code_execution_20250825", "tool_id": "srvtoolu_2"});
    let Block::Call(mut made) = call(1, "{}") else {
        unreachable!("a call")
    };
    made.extra = Extra::from(json!({"caller": by_code}));
    check(
        [turn(
            ID,
            FinishReason::Calls,
            vec![opaque(&pending), Block::Call(made)],
            vec![CallResult::ok("x")],
        )],
        json!([
            {"role": "assistant", "content": [
                pending, {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}, "caller": by_code},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x"}]},
            ]},
        ]),
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn body_is_a_prefix_of_the_next_one_when_entries_are_appended(entries in entries(), has_tools in any::<bool>()) {
        let model = model();
        let mut request = Request::new().system("s");
        if has_tools {
            request = request.tools([tool("read"), tool("write")]);
        }
        let mut before = String::new();
        for entry in &entries {
            request.entries.push(entry.clone());
            let (text, _) = body(&model, &request);
            prop_assert!(text.starts_with(&before));
            before = text[..text.len() - 2].to_owned();
            let marked = marked(&model, &request);
            prop_assert!(marked.matches("cache_control").count() <= 4);
            prop_assert_eq!(marked.replace(MARK, ""), text.replace(MARK, ""));
        }
        let mut fresh = Request::from_entries(Transcript::from_iter(entries)).system("s");
        fresh.tools = Arc::clone(&request.tools);
        prop_assert_eq!(marked(&model, &fresh), marked(&model, &request));
    }
}
