//! Tests of the wire: conformance, and the bytes of requests.

use adjutant_llm::{
    Block, Cache, Call, CallId, CallResult, Content, Custom, Document, Effort, Entry, Extra,
    FinishReason, Format, Image, Inputs, Options, PromptCache, Reply, Request, RequestOption,
    Source, Status, Summary, Text, Thinking, ToolChoice, ToolDecl, Transcript, Turn, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    driver::{Decode, Driven, tests as play},
    segments::Prepared,
    sse::Frame,
};

mod outputs;

const ID: &str = "openai/gpt-5.4";

fn info() -> ModelInfo {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    ModelInfo {
        inputs,
        prompt_cache: PromptCache::Retention,
        ..ModelInfo::new(ID)
    }
}

fn thinker() -> OpenAi {
    let efforts = vec![Effort::Off, Effort::Low, Effort::High, Effort::Xhigh];
    OpenAi::new(ModelInfo { efforts, ..info() }, "sk-secret")
}

fn model() -> OpenAi {
    OpenAi::new(info(), "sk-secret")
}

fn tool() -> ToolDecl {
    ToolDecl {
        name: "read".into(),
        description: "Reads.".into(),
        schema: Arc::new(json!({"type": "object", "properties": {}})),
    }
}

/// The body of a request, and its warnings.
fn body(model: &OpenAi, request: &Request) -> (String, Vec<String>) {
    let Prepared { body, warnings, .. } = Driven::encode(&*model.inner, request);
    let text = String::from_utf8(body.to_vec()).expect("text");
    serde_json::from_str::<Value>(&text).expect("a body is JSON");
    (text, warnings.iter().map(ToString::to_string).collect())
}

/// A body as a value, without its input and what is always the same.
fn head(model: &OpenAi, request: &Request) -> (Value, Vec<String>) {
    let (text, warnings) = body(model, request);
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    let fields = value.as_object_mut().expect("an object");
    for (name, expect) in [
        ("model", json!("gpt-5.4")),
        ("stream", json!(true)),
        ("input", json!([])),
    ] {
        assert_eq!(fields.remove(name), Some(expect));
    }
    (value, warnings)
}

/// Checks the input of a request that shows these entries, and what is said about it.
#[track_caller]
fn check(entries: impl IntoIterator<Item = Entry>, expect: Value, warned: &[&str]) {
    let (text, warnings) = body(
        &model(),
        &Request::from_entries(Transcript::from_iter(entries)),
    );
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["input"], expect);
    assert_eq!(warnings, warned);
}

fn call(block: u32, args: &str, extra: Value) -> Block {
    let mut call = Call::new(
        CallId {
            turn: 3,
            attempt: 0,
            block,
        },
        "read",
        args,
    );
    (call.wire_id, call.extra) = (Some("call_1".into()), Extra::from(extra));
    Block::Call(call)
}

fn text(text: &str, extra: Value) -> Block {
    Block::Text(Text {
        text: text.into(),
        extra: Extra::from(extra),
    })
}

fn thinking(signature: Option<&str>, extra: Value) -> Block {
    let mut thinking = Thinking::new("hm");
    (thinking.signature, thinking.extra) = (signature.map(Into::into), Extra::from(extra));
    Block::Thinking(thinking)
}

fn opaque(value: Value) -> Block {
    Block::Opaque {
        issuer: "openai".into(),
        value,
    }
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

fn image(source: Source) -> Content {
    Content::Image(Image {
        media_type: "image/png".into(),
        source,
    })
}

fn document(source: Source) -> Content {
    Content::Document(Document {
        media_type: "application/pdf".into(),
        name: Some("n.pdf".into()),
        source,
    })
}

fn base64() -> Source {
    Source::Base64 {
        data: "aGk=".into(),
    }
}

fn url() -> Source {
    Source::Url {
        url: "https://a.example/x".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn answers_become_chunks_when_anything_is_sent() {
    play::conform(&model().inner, "openai").await;
}

#[tokio::test(start_paused = true)]
async fn answer_is_read_when_it_comes_as_one_document() {
    let document = r#"{"id":"resp_1","object":"response","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"c2ln"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Look.","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"path\":\"a\"}"}],"usage":{"input_tokens":3,"output_tokens":7}}"#;
    let event = format!(r#"{{"type":"response.completed","response":{document}}}"#);
    play::document_says_the_same(&model().inner, document, &[&event]).await;
}

#[test]
fn answers_break_nothing_when_they_are_garbled() {
    play::survive(&model().inner, "openai");
}

#[test]
fn requests_go_to_the_responses_of_the_host_when_they_are_sent() {
    let expect = Address::new("/responses");
    assert_eq!(model().inner.protocol().address(&info()), expect);
    let hosts = [
        model(),
        model().base_url("https://x.openai.azure.com/openai/v1/"),
    ];
    let hosts = hosts.map(|it| Driven::endpoint(&*it.inner).host().to_owned());
    assert_eq!(hosts, ["api.openai.com", "x.openai.azure.com"]);
}

#[test]
fn body_is_written_byte_for_byte_when_all_is_set() {
    let options = Options {
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        thinking: Some(Effort::Xhigh),
        tool_choice: ToolChoice::Named("read".into()),
        sequential_calls: true,
        format: Some(Format::new(
            "answer",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        )),
        cache: Cache::Long,
        cache_key: Some("k".into()),
        server_tools: vec![json!({"type": "web_search"})],
        ..Options::default()
    }
    .extra("service_tier", "flex");
    let request = Request::new()
        .system("Be \"brief\".")
        .tools([tool()])
        .options(options)
        .user("hi");
    let expect = concat!(
        r#"{"model":"gpt-5.4","instructions":"Be \"brief\".","store":false,"stream":true,"max_output_tokens":100,"#,
        r#""temperature":0.5,"prompt_cache_key":"k","prompt_cache_retention":"24h","#,
        r#""include":["reasoning.encrypted_content"],"reasoning":{"effort":"xhigh","summary":"auto"},"#,
        r#""text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":"#,
        r#"{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},"strict":true}},"service_tier":"flex","#,
        r#""tool_choice":{"type":"function","name":"read"},"parallel_tool_calls":false,"#,
        r#""tools":[{"type":"function","name":"read","description":"Reads.","parameters":"#,
        r#"{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],"#,
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#,
    );
    assert_eq!(body(&thinker(), &request), (expect.to_owned(), vec![]));
}

#[test]
fn body_drops_options_and_says_so_when_they_cannot_be_sent() {
    let info = ModelInfo {
        refuses: vec![RequestOption::Temperature],
        ..info()
    };
    let options = Options {
        max_output_tokens: Some(1),
        temperature: Some(1.0),
        stop: vec!["END".into()],
        thinking: Some(Effort::High),
        cache: Cache::Off,
        cache_key: Some("k".into()),
        sequential_calls: true,
        tool_choice: ToolChoice::None,
        ..Options::default()
    };
    let options = options.extra("previous_response_id", "resp_1");
    let (fields, warnings) = head(&OpenAi::new(info, "k"), &Request::new().options(options));
    assert_eq!(fields, json!({"store": false, "max_output_tokens": 16}));
    assert_eq!(
        warnings,
        [
            "temperature was dropped: openai/gpt-5.4 refuses it",
            "thinking was dropped: openai/gpt-5.4 cannot be told how much to think",
            "max_output_tokens was raised from 1 to 16: the Responses API takes no less",
            "stop was dropped: the Responses API has no such option",
            "the extra field previous_response_id was dropped: it is made of the request itself",
        ]
    );
}

#[test]
fn body_joins_extra_fields_with_options_when_both_make_one_field() {
    let open = json!({"type": "object"});
    let format = Some(Format::new("answer", open.clone()));
    let options = Options {
        thinking: Some(Effort::Off),
        format,
        cache: Cache::Off,
        ..Options::default()
    }
    .extra("include", json!(["file_search_call.results"]))
    .extra("reasoning", json!({"summary": "detailed"}))
    .extra("text", json!({"verbosity": "low"}))
    .extra("store", true)
    .extra("max_output_tokens", 7);
    let format = json!({"type": "json_schema", "name": "answer", "schema": open, "strict": false});
    let expect = json!({
        "include": ["file_search_call.results", "reasoning.encrypted_content"],
        "reasoning": {"effort": "none", "summary": "detailed"},
        "text": {"format": format, "verbosity": "low"},
        "store": true,
        "max_output_tokens": 7,
    });
    assert_eq!(
        head(&thinker(), &Request::new().options(options)),
        (expect, vec![])
    );
}

#[test]
fn body_asks_for_a_call_when_one_is_demanded() {
    let choice = |choice| {
        let request = Request::new().tools([tool()]).options(Options {
            tool_choice: choice,
            ..Options::default()
        });
        head(&model(), &request).0["tool_choice"].clone()
    };
    assert_eq!(choice(ToolChoice::Auto), Value::Null);
    assert_eq!(choice(ToolChoice::None), "none");
    assert_eq!(choice(ToolChoice::Required), "required");
}

#[test]
fn body_names_the_conversation_when_the_host_knows_such_names() {
    let other = || model().base_url("https://a.example/v1");
    let long = |model: &OpenAi, options: Options| {
        let request = Request::new().options(Options {
            cache_key: Some("k".into()),
            cache: Cache::Long,
            ..options
        });
        let (fields, warnings) = head(model, &request);
        (
            fields["prompt_cache_key"].clone(),
            fields["prompt_cache_retention"].clone(),
            warnings,
        )
    };
    let dropped =
        || vec!["cache was dropped: this host or model has no parameter for a long one".to_owned()];
    let plain = Options::default;
    assert_eq!(long(&model(), plain()), (json!("k"), json!("24h"), vec![]));
    let own = model().base_url("https://api.openai.com/v1/").cache_keys();
    assert_eq!(long(&own, plain()), (json!("k"), json!("24h"), vec![]));
    assert_eq!(
        long(&other(), plain()),
        (Value::Null, Value::Null, dropped())
    );
    assert_eq!(
        long(&other().cache_keys(), plain()),
        (json!("k"), Value::Null, dropped())
    );
    let given = plain().extra("prompt_cache_retention", "24h");
    assert_eq!(long(&other(), given), (Value::Null, json!("24h"), vec![]));
    let (_, warnings) = head(
        &other(),
        &Request::new().options(Options {
            cache_key: Some("k".into()),
            ..plain()
        }),
    );
    assert_eq!(warnings, [""; 0]);
}

/// Source: openai-python 3.57.0, 2026-11.
#[test]
fn body_controls_the_prompt_cache_as_model_and_host_can() {
    use PromptCache::{Key, Options as Newer, Retention};
    let openai = |info| OpenAi::new(info, "sk");
    let azure = |info| OpenAi::new(info, "sk").azure();
    type Host = fn(ModelInfo) -> OpenAi;
    let cases: [(Host, PromptCache, Cache, Value, bool); 8] = [
        (openai, Key, Cache::Long, json!({}), true),
        (
            openai,
            Retention,
            Cache::Long,
            json!({"prompt_cache_retention": "24h"}),
            false,
        ),
        (
            openai,
            Newer,
            Cache::Long,
            json!({"prompt_cache_options": {"ttl": "12h"}}),
            false,
        ),
        (openai, Newer, Cache::Short, json!({}), false),
        (
            openai,
            Newer,
            Cache::Off,
            json!({"prompt_cache_options": {"mode": "explicit"}}),
            false,
        ),
        (openai, Retention, Cache::Off, json!({}), false),
        (
            azure,
            Newer,
            Cache::Off,
            json!({"prompt_cache_options": {"mode": "explicit"}}),
            false,
        ),
        (azure, Newer, Cache::Long, json!({}), true),
    ];
    for (host, prompt_cache, cache, expect, is_warned) in cases {
        let model = host(ModelInfo {
            prompt_cache,
            ..info()
        });
        let request = Request::new().options(Options {
            cache,
            ..Options::default()
        });
        let (mut fields, warnings) = head(&model, &request);
        let members = fields.as_object_mut().expect("an object");
        members.retain(|name, _| {
            ["prompt_cache_retention", "prompt_cache_options"].contains(&&**name)
        });
        assert_eq!(fields, expect, "{prompt_cache:?} {cache:?}");
        assert_eq!(
            !warnings.is_empty(),
            is_warned,
            "{prompt_cache:?} {cache:?}"
        );
    }
}

#[test]
fn effort_is_the_highest_of_the_model_when_it_does_not_list_max() {
    let low = [Effort::Low, Effort::High];
    let cases = [
        (vec![], Effort::Max, None),
        (low.to_vec(), Effort::Max, Some("high")),
        (vec![Effort::Low, Effort::Xhigh], Effort::Max, Some("xhigh")),
        (vec![Effort::Low, Effort::Max], Effort::Max, Some("max")),
        (low.to_vec(), Effort::Xhigh, Some("high")),
    ];
    for (efforts, thinking, expect) in cases {
        let model = OpenAi::new(ModelInfo { efforts, ..info() }, "sk");
        let request = Request::new().options(Options {
            thinking: Some(thinking),
            ..Options::default()
        });
        let effort = head(&model, &request).0["reasoning"]["effort"].clone();
        assert_eq!(effort.as_str(), expect);
    }
}

#[test]
fn body_names_the_format_as_the_vendor_takes_it_when_the_name_is_any() {
    let named = |name: &str| {
        let options = Options {
            format: Some(Format::new(name, json!({"type": "object"}))),
            ..Options::default()
        };
        head(&model(), &Request::new().options(options)).0["text"]["format"]["name"].clone()
    };
    assert_eq!(named("my answer.v2"), "my_answer_v2");
    assert_eq!(
        (named(""), named(&"x".repeat(65))),
        (json!("answer"), json!("x".repeat(64)))
    );
}

#[test]
fn turn_leaves_out_what_a_client_runs_when_nothing_answered_it() {
    let plain = json!({"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "a", "annotations": []},
    ]});
    let left_out = "a call of a tool that is not ours was left out: nothing answered it";
    let kinds = [
        "custom_tool_call",
        "local_shell_call",
        "computer_call",
        "shell_call",
        "apply_patch_call",
    ];
    for kind in kinds.into_iter().chain(["mcp_approval_request"]) {
        let call = opaque(json!({"type": kind, "id": "x_1", "call_id": "call_1"}));
        check(
            [turn(
                ID,
                FinishReason::End,
                vec![call, text("a", Value::Null)],
                vec![],
            )],
            json!([plain]),
            &[left_out],
        );
    }
    // A hosted shell answers its call itself.
    let ran =
        json!({"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed"});
    let output =
        json!({"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []});
    let other = opaque(json!({"type": "shell_call", "id": "sh_2", "call_id": "call_2"}));
    let blocks = vec![
        opaque(ran.clone()),
        opaque(output.clone()),
        other,
        text("a", Value::Null),
    ];
    check(
        [turn(ID, FinishReason::End, blocks, vec![])],
        json!([ran, output, plain]),
        &[left_out],
    );
}

#[test]
fn turn_sends_an_item_for_each_call_and_result_when_calls_are_parallel() {
    let mut ran = CallResult::ok("b");
    ran.args = Some(r#"{"path":"b"}"#.into());
    let mut media = CallResult::ok("c");
    media
        .content
        .extend([image(base64()), document(url()), Content::text(" ")]);
    let mut nothing = CallResult::ok("");
    nothing.content = vec![Content::text("x"), Content::text("y")];
    let none = || Value::Null;
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let call_of = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": arguments});
    check(
        [
            turn(
                "anthropic/claude-sonnet-5",
                FinishReason::Calls,
                vec![
                    text("Look", json!({"id": "msg_1"})),
                    text(" here.", none()),
                    call(1, r#"{"n": 9007199254740993}"#, json!({"id": "fc_1"})),
                    call(2, "{}", none()),
                    call(3, "", none()),
                    call(4, "x", none()),
                ],
                vec![CallResult::ok("a"), ran, media, nothing],
            ),
            Entry::User(UserMessage::text("go on")),
        ],
        json!([
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "Look", "annotations": []},
                {"type": "output_text", "text": " here.", "annotations": []},
            ]},
            call_of("c3_0_1", r#"{"n": 9007199254740993}"#),
            call_of("c3_0_2", r#"{"path":"b"}"#),
            call_of("c3_0_3", "{}"),
            call_of("c3_0_4", r#"{"INVALID_JSON":"x"}"#),
            output("c3_0_1", json!("a")),
            output("c3_0_2", json!("b")),
            output("c3_0_3", json!([
                {"type": "input_text", "text": "c"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
                {"type": "input_file", "file_url": "https://a.example/x"},
            ])),
            output("c3_0_4", json!("x\ny")),
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
        ]),
        &[],
    );
}

#[test]
fn turn_replays_items_with_their_ids_when_their_reasoning_goes_back() {
    let summary = json!([{"type": "summary_text", "text": "hm"}]);
    let annotations = json!([{"type": "url_citation", "url": "https://a.example"}]);
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let blocks = vec![
        text("first", json!({"id": "msg_0", "phase": "commentary"})),
        thinking(Some("enc"), json!({"id": "rs_1", "summary": summary})),
        thinking(Some("enc2"), json!({"id": "rs_2", "summary": []})),
        opaque(search.clone()),
        text(
            "one",
            json!({"id": "msg_1", "phase": "commentary", "annotations": annotations}),
        ),
        text("two", json!({"id": "msg_1", "phase": "commentary"})),
        text("three", json!({"id": "msg_2"})),
        call(
            7,
            "{}",
            json!({"id": "fc_1", "namespace": "files", "caller": {"type": "direct"}}),
        ),
        call(8, "{}", json!({"id": "no_prefix"})),
        call(9, "{}", json!({"id": format!("fc_{}", "x".repeat(62))})),
    ];
    let results = vec![
        CallResult::ok("a"),
        CallResult::ok("b"),
        CallResult::ok("c"),
    ];
    let said = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    check(
        [turn(ID, FinishReason::Calls, blocks, results)],
        json!([
            {"type": "message", "role": "assistant", "content": [said("first")], "phase": "commentary"},
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "enc"},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "enc2"},
            search,
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [
                {"type": "output_text", "text": "one", "annotations": annotations}, said("two"),
            ], "phase": "commentary", "status": "completed"},
            {"type": "message", "id": "msg_2", "role": "assistant", "content": [said("three")], "status": "completed"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}",
             "namespace": "files", "caller": {"type": "direct"}},
            {"type": "function_call", "call_id": "c3_0_8", "name": "read", "arguments": "{}"},
            {"type": "function_call", "call_id": "c3_0_9", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "a"},
            {"type": "function_call_output", "call_id": "c3_0_8", "output": "b"},
            {"type": "function_call_output", "call_id": "c3_0_9", "output": "c"},
        ]),
        &[],
    );
}

#[test]
fn turn_drops_reasoning_and_ids_when_they_would_stand_alone() {
    let said = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let plain = json!({"type": "message", "role": "assistant", "content": [said("a")]});
    let whole = || thinking(Some("enc"), json!({"id": "rs_1", "summary": []}));
    let a = || text("a", json!({"id": "msg_1"}));
    // Nothing follows it.
    check(
        [turn(ID, FinishReason::Length, vec![a(), whole()], vec![])],
        json!([plain]),
        &[],
    );
    check(
        [turn(
            ID,
            FinishReason::End,
            vec![whole(), text("", json!({"id": "msg_1"}))],
            vec![],
        )],
        json!([]),
        &[],
    );
    // It cannot go back, so what it led to stands for itself.
    for gone in [
        thinking(None, json!({"id": "rs_1"})),
        thinking(Some("enc"), Value::Null),
    ] {
        check(
            [turn(
                ID,
                FinishReason::End,
                vec![gone, whole(), a()],
                vec![],
            )],
            json!([
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}, plain,
            ]),
            &[],
        );
    }
    let search = || opaque(json!({"type": "web_search_call", "id": "ws_1"}));
    let left_out =
        "what the provider ran itself was left out: the reasoning that it goes with is not sent";
    check(
        [turn(
            ID,
            FinishReason::End,
            vec![thinking(None, json!({})), search(), a()],
            vec![],
        )],
        json!([plain]),
        &[left_out],
    );
    // Another model of the provider.
    let compaction = json!({"type": "compaction", "encrypted_content": "e"});
    let blocks = vec![whole(), opaque(compaction.clone()), search(), a()];
    check(
        [turn("openai/gpt-5.5", FinishReason::End, blocks, vec![])],
        json!([compaction, plain]),
        &[left_out],
    );
    let picture = opaque(json!({"type": "image_generation_call", "id": "ig_1", "result": "aGk="}));
    let no_picture =
        "a generated picture was left out: the API takes none back that it did not store";
    check(
        [turn(ID, FinishReason::End, vec![picture, a()], vec![])],
        json!([plain]),
        &[no_picture],
    );
}

#[test]
fn turn_replays_readable_reasoning_when_the_model_encrypts_none() {
    let content = json!([{"type": "reasoning_text", "text": "hm"}]);
    check(
        [turn(
            ID,
            FinishReason::End,
            vec![
                thinking(
                    None,
                    json!({"id": "rs_1", "summary": [], "content": content}),
                ),
                text("a", Value::Null),
            ],
            vec![],
        )],
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": content},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        ]),
        &[],
    );
}

/// Source: "Troubleshooting reasoning", docs.x.ai, 2026-11.
#[test]
fn turn_replays_reasoning_without_an_id_when_the_vendor_gives_none() {
    let reasoning = thinking(Some("enc"), json!({"summary": []}));
    check(
        [turn(
            ID,
            FinishReason::End,
            vec![reasoning, text("a", Value::Null)],
            vec![],
        )],
        json!([
            {"type": "reasoning", "summary": [], "encrypted_content": "enc"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        ]),
        &[],
    );
}

#[test]
fn turn_continues_on_responses_when_it_was_recorded_on_chat_completions() {
    let nested = json!([{"type": "url_citation", "url_citation": {"url": "https://a.example"}}]);
    let blocks = vec![
        thinking(None, json!({"field": "reasoning_content"})),
        text("a", json!({"annotations": nested})),
        call(7, r#"{"n":1}"#, json!({"extra_content": {}})),
        opaque(json!({"type": "sources", "citations": ["https://a.example"]})),
    ];
    let mut result = CallResult::ok("b");
    result.content.push(image(base64()));
    let said = json!({"type": "output_text", "text": "a", "annotations": []});
    let outputs = json!([
        {"type": "input_text", "text": "b"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
    ]);
    check(
        [turn(ID, FinishReason::Calls, blocks, vec![result])],
        json!([
            {"type": "message", "role": "assistant", "content": [said]},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": r#"{"n":1}"#},
            {"type": "function_call_output", "call_id": "call_1", "output": outputs},
        ]),
        &[],
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
        let blocks = vec![
            thinking(Some("enc"), json!({"id": "rs_1"})),
            text("half", json!({"id": "msg_1"})),
            call(2, "{}", json!({"id": "fc_1"})),
        ];
        check(
            [turn(ID, stop, blocks, no())],
            json!([{"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "half", "annotations": []},
            ]}]),
            &[],
        );
        check(
            [turn(ID, stop, vec![call(0, "{}", Value::Null)], no())],
            json!([]),
            &[],
        );
    }
}

#[test]
fn user_content_is_sent_in_its_forms_when_it_has_media() {
    let content = vec![
        Content::text("look"),
        image(url()),
        image(base64()),
        document(base64()),
        document(url()),
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
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "detail": "auto", "image_url": "https://a.example/x"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
                {"type": "input_file", "filename": "n.pdf", "file_data": "data:application/pdf;base64,aGk="},
                {"type": "input_file", "file_url": "https://a.example/x"},
            ]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "so far"}]},
        ]),
        &[],
    );
    let plain = OpenAi::new(ModelInfo::new(ID), Key::none());
    let request = Request::new().user(UserMessage::from(vec![image(base64()), image(base64())]));
    let (text, warnings) = body(&plain, &request);
    assert!(
        text.ends_with(
            r#"[{"type":"input_text","text":"[image omitted: this model takes no images]"}]}]}"#
        ),
        "{text}"
    );
    assert_eq!(warnings, ["[image omitted: this model takes no images]"]);
}

#[tokio::test(start_paused = true)]
async fn replies_go_back_as_they_came_when_a_stream_was_read() {
    let answer = include_str!("../../tests/fixtures/openai/thinking.sse");
    let mut items = play::play(&model().inner, &[answer.as_bytes()], play::End::Clean).await;
    let Some(Ok(adjutant_llm::Chunk::Done(reply))) = items.pop() else {
        unreachable!("the reply is whole: {items:?}")
    };
    let turn = Turn::open(reply).close().expect("there are no calls");
    let said = |text: &str| json!({"type": "summary_text", "text": text});
    check(
        [Entry::Turn(turn)],
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [said("**Looking**"), said("Then.")],
             "encrypted_content": "gAAAAwhole"},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAAsilent"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [
                {"type": "output_text", "text": "a", "annotations": []},
            ], "phase": "final_answer", "status": "completed"},
        ]),
        &[],
    );
}

/// Arbitrary entries of this wire: replies that think, call, and were cut off.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let said = "[a-z\"\\\\ é🦀\n]{0,40}";
    let stop = prop::sample::select(vec![
        FinishReason::Calls,
        FinishReason::Length,
        FinishReason::Interrupted,
    ]);
    let entry = prop_oneof![
        said.prop_map(|text| Entry::User(UserMessage::text(text))),
        (said, said, stop, any::<bool>()).prop_map(|(said, args, stop, whole)| {
            let signature = whole.then_some("enc");
            let blocks = vec![
                thinking(signature, json!({"id": "rs_1", "summary": []})),
                text(&said, json!({"id": "msg_1"})),
                call(2, &args, json!({"id": "fc_1"})),
            ];
            turn(ID, stop, blocks, vec![CallResult::ok("x".repeat(30_000))])
        }),
    ];
    prop::collection::vec(entry, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn body_is_a_prefix_of_the_next_one_when_entries_are_appended(
        entries in prop_oneof![entries(), crate::anthropic::tests::entries()],
        system in "(s)?",
    ) {
        let model = thinker();
        let request = |entries: Vec<Entry>| {
            let request = Request::from_entries(Transcript::from_iter(entries)).system(system.clone()).tools([tool()]);
            request.options(Options { thinking: Some(Effort::High), ..Options::default() })
        };
        let unmarked = |request: &Request| {
            let Prepared { body, .. } = Driven::encode(&*model.inner, request);
            String::from_utf8(body.to_unmarked()).expect("text")
        };
        let mut growing = request(vec![]);
        let mut before = unmarked(&growing);
        for entry in &entries {
            before.truncate(before.len() - "]}".len());
            growing.entries.push(entry.clone());
            let now = unmarked(&growing);
            prop_assert!(now.starts_with(&before));
            before = now;
        }
        prop_assert_eq!(unmarked(&request(entries)), before);
    }
}
