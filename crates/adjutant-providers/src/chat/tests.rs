//! Tests of the wire: conformance, and the bytes of requests.

mod calls;
mod dialects;

use adjutant_llm::{
    Block, Call, CallId, CallResult, Content, Document, Entry, FinishReason, Format, Image, Inputs,
    Options, Reply, Request, RequestOption, Source, Status, Summary, Thinking, ToolDecl,
    Transcript, Turn, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    driver::{Driven, tests as play},
    segments::Prepared,
};

const ID: &str = "openai/gpt-5.4";

fn model() -> Chat {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    Chat::new(
        ModelInfo {
            inputs,
            ..ModelInfo::new(ID)
        },
        "sk-secret",
    )
}

/// The body of a request, and its warnings.
fn body(model: &Chat, request: &Request) -> (String, Vec<String>) {
    let Prepared { body, warnings, .. } = Driven::encode(&*model.inner, request);
    let text = String::from_utf8(body.to_vec()).expect("text");
    serde_json::from_str::<Value>(&text).expect("a body is JSON");
    (text, warnings.iter().map(ToString::to_string).collect())
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

fn call(block: u32, args: &str) -> Block {
    let id = CallId {
        turn: 3,
        attempt: 0,
        block,
    };
    Block::Call(Call {
        id,
        wire_id: Some("call_1".into()),
        name: "read".into(),
        args: args.into(),
        extra: Default::default(),
    })
}

fn turn(stop: FinishReason, blocks: Vec<Block>, results: Vec<CallResult>) -> Entry {
    let mut reply = Reply::new(ID.into(), stop);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    let mut open = Turn::open(Arc::new(reply.clone()));
    for (call, result) in reply.calls().zip(results) {
        open.put(call.id, Arc::new(result))
            .expect("the call is open");
    }
    Entry::Turn(open.close().expect("every call has its result"))
}

fn image() -> Content {
    Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 {
            data: "aGk=".into(),
        },
    })
}

#[tokio::test(start_paused = true)]
async fn answers_become_chunks_when_anything_is_sent() {
    play::conform(&model().inner, "chat").await;
}

#[tokio::test(start_paused = true)]
async fn answer_is_read_when_it_comes_as_one_document() {
    let call = r#"{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}"#;
    let said = format!(
        r#"{{"role":"assistant","reasoning_content":"Hm.","content":"Look.","tool_calls":[{call}]}}"#
    );
    let usage = r#"{"prompt_tokens":3,"completion_tokens":7}"#;
    let answer = |member: &str| {
        format!(
            r#"{{"id":"x","choices":[{{"index":0,"{member}":{said},"finish_reason":"tool_calls"}}],"usage":{usage}}}"#
        )
    };
    let (document, event) = (answer("message"), answer("delta"));
    play::document_says_the_same(&model().inner, &document, &[&event]).await;
}

/// Returns the blocks of an answer whose text comes in these pieces.
async fn describe_text(provider: &str, pieces: &[&str]) -> Vec<String> {
    let model = Chat::new(ModelInfo::new(format!("{provider}/m")), "sk-secret");
    let event = |text: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {delta}\n\n")
    };
    let mut stream: String = pieces.iter().map(|it| event(it)).collect();
    stream.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let items = play::play(&model.inner, &[stream.as_bytes()], play::End::Clean).await;
    let Some(Ok(adjutant_llm::Chunk::Done(reply))) = items.last() else {
        unreachable!("it is a success: {items:?}")
    };
    let text = |block: &Arc<Block>| match &**block {
        Block::Text(text) => format!("text {}", text.text),
        Block::Thinking(thinking) => format!("thinking {}", thinking.text),
        other => format!("{other:?}"),
    };
    reply.blocks.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn think_tags_are_thinking_only_at_the_start() {
    for (said, expect) in [
        (
            "<think>Hm.</think>Hello",
            &["thinking Hm.", "text Hello"][..],
        ),
        (
            "\n<think>\nHm.\n</think>\n\nHello",
            &["thinking \nHm.\n", "text Hello"],
        ),
        ("<think>\n\n</think>\n\nHello", &["text Hello"]),
        ("<think></think>Hello", &["text Hello"]),
        (
            "<think>a < b </thin c</think>Hello",
            &["thinking a < b </thin c", "text Hello"],
        ),
        ("<think>It goes on", &["thinking It goes on"]),
        ("<think>It goes on</thi", &["thinking It goes on</thi"]),
        ("Hello <think>x</think>", &["text Hello <think>x</think>"]),
        ("<thinking>x", &["text <thinking>x"]),
        ("<thi", &["text <thi"]),
        (" Hello", &["text  Hello"]),
        (
            "<think>a</think>b<think>c</think>",
            &["thinking a", "text b<think>c</think>"],
        ),
    ] {
        let bounds: Vec<usize> = (0..=said.len())
            .filter(|at| said.is_char_boundary(*at))
            .collect();
        for cut in &bounds {
            let pieces = [&said[..*cut], &said[*cut..]];
            assert_eq!(describe_text("vllm", &pieces).await, expect, "{pieces:?}");
        }
        let single: Vec<&str> = bounds.windows(2).map(|it| &said[it[0]..it[1]]).collect();
        assert_eq!(describe_text("groq", &single).await, expect, "{said:?}");
        let vendor = describe_text("deepseek", &[said]).await;
        assert_eq!(vendor, [format!("text {said}")]);
    }
}

#[test]
fn answers_break_nothing_when_they_are_garbled() {
    play::survive(&model().inner, "chat");
}

#[test]
fn body_is_written_byte_for_byte_when_all_is_set() {
    let tool = ToolDecl {
        name: "read".into(),
        description: "Reads.".into(),
        schema: Arc::new(json!({"type": "object", "properties": {}})),
    };
    let options = Options {
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        ..Options::default()
    }
    .extra("seed", 5);
    let request = Request::new()
        .system("Be \"brief\".")
        .tools([tool])
        .options(options)
        .user("hi");
    let expect = r#"{"model":"gpt-5.4","max_completion_tokens":100,"stream":true,"stream_options":{"include_usage":true},"store":false,"temperature":0.5,"stop":["END"],"prompt_cache_key":"adjutant-15a59c2488aa7501","seed":5,"tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"hi"}]}"#;
    assert_eq!(body(&model(), &request), (expect.to_owned(), vec![]));
}

#[test]
fn body_leaves_out_options_when_the_model_refuses_them() {
    let info = ModelInfo {
        refuses: vec![RequestOption::MaxOutputTokens, RequestOption::Stop],
        ..ModelInfo::new(ID)
    };
    let options = Options {
        stop: vec!["x".into()],
        ..Options::default()
    }
    .extra("stream_options", json!({}));
    let (text, warnings) = body(
        &Chat::new(info, Key::none()),
        &Request::new().options(options).user("hi"),
    );
    assert_eq!(
        text,
        r#"{"model":"gpt-5.4","stream":true,"store":false,"prompt_cache_key":"adjutant-af64724c8602eb6e","stream_options":{},"messages":[{"role":"user","content":"hi"}]}"#
    );
    assert_eq!(warnings, ["stop was dropped: openai/gpt-5.4 refuses it"]);
}

#[test]
fn body_cuts_the_stop_texts_when_they_are_too_many_or_empty() {
    let stops = |texts: &[&str]| {
        let options = Options {
            stop: texts.iter().map(|it| (*it).into()).collect(),
            ..Options::default()
        };
        let (text, warnings) = body(&model(), &Request::new().options(options).user("hi"));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        (value["stop"].clone(), warnings)
    };
    let empty = || "an empty stop was dropped: openai/gpt-5.4 takes none".to_owned();
    let cut = || "stop was cut from 5 texts to 4: openai/gpt-5.4 takes no more".to_owned();
    assert_eq!(
        stops(&["a", "b", "c", "\n"]),
        (json!(["a", "b", "c", "\n"]), vec![])
    );
    assert_eq!(
        stops(&["a", "b", "c", "d", "e"]),
        (json!(["a", "b", "c", "d"]), vec![cut()])
    );
    assert_eq!(
        stops(&["a", "", "b", "c", "d", "e"]),
        (json!(["a", "b", "c", "d"]), vec![empty(), cut()])
    );
    assert_eq!(stops(&["", ""]), (Value::Null, vec![empty()]));
}

#[test]
fn body_names_the_format_as_the_vendor_takes_it_when_the_name_is_any() {
    let named = |name: &str| {
        let options = Options {
            format: Some(Format::new(name, json!({"type": "object"}))),
            ..Options::default()
        };
        let (text, _) = body(&model(), &Request::new().options(options).user("hi"));
        serde_json::from_str::<Value>(&text).expect("JSON")["response_format"]["json_schema"]["name"].clone()
    };
    assert_eq!(named("my answer.v2"), "my_answer_v2");
    assert_eq!(
        (named(""), named(&"x".repeat(65))),
        (json!("answer"), json!("x".repeat(64)))
    );
}

#[test]
fn turn_sends_a_message_for_each_result_when_calls_are_parallel() {
    let mut ran = CallResult::ok("b");
    ran.args = Some(r#"{"path":"b"}"#.into());
    let mut pictures = CallResult::ok("c");
    pictures.content = vec![image(), Content::text("c"), Content::text("d")];
    let mut only = CallResult::ok("");
    only.content = vec![image()];
    let think = Block::Thinking(Thinking {
        text: "hm".into(),
        signature: None,
        redacted: false,
        extra: Default::default(),
    });
    check(
        [
            turn(
                FinishReason::Calls,
                vec![
                    think,
                    call(1, r#"{"n": 1}"#),
                    call(2, ""),
                    call(3, "x"),
                    call(4, ""),
                ],
                vec![CallResult::ok("a"), ran, pictures, only],
            ),
            Entry::User(UserMessage::text("go on")),
        ],
        json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"n\": 1}"}},
                {"id": "c3_0_2", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
                {"id": "c3_0_3", "type": "function",
                 "function": {"name": "read", "arguments": "{\"INVALID_JSON\":\"x\"}"}},
                {"id": "c3_0_4", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a"},
            {"role": "tool", "tool_call_id": "c3_0_2", "content": "b"},
            {"role": "tool", "tool_call_id": "c3_0_3", "content": "c\nd"},
            {"role": "tool", "tool_call_id": "c3_0_4", "content": "(see the attached files)"},
            {"role": "user", "content": [
                {"type": "text", "text": "Attached image(s) from tool result:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "user", "content": "go on"},
        ]),
    );
}

#[test]
fn turn_sends_text_alone_when_it_was_cut_short() {
    for stop in [
        FinishReason::Interrupted,
        FinishReason::Refused,
        FinishReason::Filtered,
    ] {
        let no = || vec![CallResult::new(Status::Cancelled, "no")];
        check(
            [turn(
                stop,
                vec![Block::text("ha"), Block::text("lf"), call(2, "{}")],
                no(),
            )],
            json!([{"role": "assistant", "content": "half"}]),
        );
        check([turn(stop, vec![call(0, "{}")], no())], json!([]));
    }
    check(
        [turn(FinishReason::End, vec![Block::text(" ")], vec![])],
        json!([]),
    );
}

#[test]
fn user_content_is_sent_in_its_forms_when_it_has_media() {
    let document = |source| {
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: Some("n.pdf".into()),
            source,
        })
    };
    let url = Source::Url {
        url: "https://a.example/x".into(),
    };
    let content = vec![
        Content::text("look"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: url.clone(),
        }),
        document(Source::Base64 {
            data: "aGk=".into(),
        }),
        document(url),
    ];
    check(
        [
            Entry::User(UserMessage::from(content)),
            Entry::Summary(Summary {
                text: "so far".into(),
                covers: 3,
            }),
        ],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://a.example/x"}},
                {"type": "file", "file": {"filename": "n.pdf", "file_data": "data:application/pdf;base64,aGk="}},
                {"type": "text", "text": "[document omitted: this model takes no addresses of documents]"},
            ]},
            {"role": "user", "content": "so far"},
        ]),
    );
    let plain = Chat::new(ModelInfo::new(ID), Key::none());
    let request = Request::new().user(UserMessage::from(vec![image(), image()]));
    let (text, warnings) = body(&plain, &request);
    assert!(
        text.ends_with(
            r#"[{"role":"user","content":"[image omitted: this model takes no images]"}]}"#
        ),
        "{text}"
    );
    assert_eq!(warnings, ["[image omitted: this model takes no images]"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn body_is_a_prefix_of_the_next_one_when_entries_are_appended(
        entries in crate::anthropic::tests::entries(),
        system in "(s)?",
        provider in prop::sample::select(vec!["openai", "openrouter/anthropic", "mistral", "zai", "perplexity"]),
    ) {
        let model = Chat::new(ModelInfo::new(format!("{provider}/m")), "sk-secret");
        let tool = ToolDecl { name: "read".into(), description: "".into(), schema: Arc::new(json!({"type": "object"})) };
        let mut request = Request::new().system(system.clone()).tools([tool.clone()]);
        let unmarked = |request: &Request| {
            String::from_utf8(Driven::encode(&*model.inner, request).body.to_unmarked()).expect("text")
        };
        let mut before = String::new();
        for entry in &entries {
            request.entries.push(entry.clone());
            body(&model, &request);
            let text = unmarked(&request);
            prop_assert!(text.starts_with(&before));
            before = text[..text.len() - 2].to_owned();
        }
        let fresh = Request::from_entries(Transcript::from_iter(entries)).system(system).tools([tool]);
        prop_assert_eq!(body(&model, &fresh).0, body(&model, &request).0);
    }
}
