//! Tests of the wire: conformance, and the bytes of requests.

use adjutant_llm::{
    Block, Cache, Call, CallId, CallResult, Content, Custom, Document, Effort, Entry, Extra,
    FinishReason, Format, Image, Inputs, Options, Reply, Request, RequestOption, Source, Status,
    Summary, Text, Thinking, ThinkingControl, ToolChoice, ToolDecl, Transcript, Turn, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    driver::{Driven, tests as play},
    segments::Prepared,
};

const ID: &str = "gemini/gemini-3.8-flash";
const OLD: &str = "gemini/gemini-2.5-pro";

fn info(id: &str) -> ModelInfo {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    ModelInfo {
        inputs,
        ..ModelInfo::new(id)
    }
}

fn model(id: &str) -> Gemini {
    Gemini::new(info(id), "AIza-secret")
}

/// The body of a request, and its warnings.
fn body(model: &Gemini, request: &Request) -> (String, Vec<String>) {
    let Prepared { body, warnings, .. } = Driven::encode(&*model.inner, request);
    let text = String::from_utf8(body.to_vec()).expect("text");
    serde_json::from_str::<Value>(&text).expect("a body is JSON");
    (text, warnings.iter().map(ToString::to_string).collect())
}

/// Checks the contents of a request to a model that shows these entries; gives the warnings.
#[track_caller]
fn check(id: &str, entries: impl IntoIterator<Item = Entry>, expect: Value) -> Vec<String> {
    let (text, warnings) = body(
        &model(id),
        &Request::from_entries(Transcript::from_iter(entries)),
    );
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["contents"], expect);
    warnings
}

/// Checks a member of the body of a request with these options, and the warnings.
#[track_caller]
fn check_option(
    info: ModelInfo,
    tools: &[ToolDecl],
    options: Options,
    path: &str,
    expect: Value,
    warns: &[&str],
) {
    let request = Request::new().tools(tools).options(options).user("hi");
    let (text, warnings) = body(&Gemini::new(info, "k"), &request);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value.pointer(path).unwrap_or(&Value::Null), &expect);
    assert_eq!(warnings, warns);
}

fn tool(name: &str, schema: Value) -> ToolDecl {
    ToolDecl {
        name: name.into(),
        description: "Reads.".into(),
        schema: Arc::new(schema),
    }
}

fn call(block: u32, wire_id: Option<&str>, args: &str, signature: Option<&str>) -> Block {
    let mut call = Call::new(
        CallId {
            turn: 3,
            attempt: 0,
            block,
        },
        "read",
        args,
    );
    call.wire_id = wire_id.map(Into::into);
    call.extra = signed(signature);
    Block::Call(call)
}

fn signed(signature: Option<&str>) -> Extra {
    signature
        .map(|it| Extra::from(json!({"thoughtSignature": it})))
        .unwrap_or_default()
}

fn said(text: &str, signature: Option<&str>) -> Block {
    Block::Text(Text {
        text: text.into(),
        extra: signed(signature),
    })
}

fn thought(text: &str, signature: Option<&str>) -> Block {
    Block::Thinking(Thinking {
        signature: signature.map(Into::into),
        ..Thinking::new(text)
    })
}

fn opaque(value: Value) -> Block {
    Block::Opaque {
        issuer: "gemini".into(),
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

/// The user message that a turn follows.
fn asked() -> Entry {
    Entry::User(UserMessage::text("hi"))
}

fn question() -> Value {
    json!({"role": "user", "parts": [{"text": "hi"}]})
}

fn image(media_type: &str, source: Source) -> Content {
    Content::Image(Image {
        media_type: media_type.into(),
        source,
    })
}

fn document(name: Option<&str>, source: Source) -> Content {
    Content::Document(Document {
        media_type: "application/pdf".into(),
        name: name.map(Into::into),
        source,
    })
}

fn bytes() -> Source {
    Source::Base64 {
        data: "aGk=".into(),
    }
}

fn at(url: &str) -> Source {
    Source::Url { url: url.into() }
}

#[tokio::test(start_paused = true)]
async fn answers_become_chunks_when_anything_is_sent() {
    play::conform(&model(ID).inner, "gemini").await;
}

#[tokio::test(start_paused = true)]
async fn answer_is_read_when_it_comes_as_one_document() {
    let document = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"Look."},{"functionCall":{"name":"read","args":{"path":"a"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":7}}"#;
    play::document_says_the_same(&model(ID).inner, document, &[document]).await;
}

#[test]
fn answers_break_nothing_when_they_are_garbled() {
    play::survive(&model(ID).inner, "gemini");
}

#[test]
fn errors_are_retryable_when_the_model_made_what_cannot_be_used() {
    let error = |data: &str| {
        let protocol = model(ID).inner.protocol().clone();
        let mut decoder = Wire::decoder(
            &protocol,
            &protocol.info,
            CallIdSeed {
                turn: 1,
                attempt: 0,
            },
        );
        let frame = crate::sse::Frame { event: "", data };
        let flow = crate::driver::Decode::frame(&mut decoder, frame, &mut Default::default());
        let error = flow.expect_err("a failure");
        (
            error.is_retryable(),
            error.retry_after().map(|it| it.as_secs()),
        )
    };
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "OTHER",
    ] {
        assert_eq!(
            error(&json!({"candidates": [{"finishReason": reason}]}).to_string()),
            (true, None),
            "{reason}"
        );
    }
    assert_eq!(
        error(r#"{"candidates":[{"finishReason":"MISSING_THOUGHT_SIGNATURE"}]}"#),
        (false, None)
    );
    assert_eq!(
        error(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#),
        (false, None)
    );
    let quota = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[{"retryDelay":"37s"}]}}"#;
    assert_eq!(error(quota), (true, Some(37)));
}

#[test]
fn address_keeps_its_form_when_a_model_has_an_odd_name() {
    let path = |id: &str| {
        let model = model(id);
        Wire::address(model.inner.protocol(), model.inner.info()).path
    };
    assert_eq!(
        path(ID),
        "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    );
    let odd = "/v1beta/models/..%2F..%2Fa%3Fb%23c%25d%3Ae%20%C3%A9:streamGenerateContent?alt=sse";
    assert_eq!(path("gemini/../../a?b#c%d:e é"), odd);
}

#[test]
fn body_is_written_byte_for_byte_when_all_is_set() {
    let tools = [
        tool(
            "read",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        tool("now", json!({})),
    ];
    let options = Options {
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        thinking: Some(Effort::Low),
        tool_choice: ToolChoice::Named("read".into()),
        server_tools: vec![json!({"googleSearch": {}})],
        ..Options::default()
    }
    .extra("safetySettings", json!([]))
    .extra("generationConfig", json!({"topK": 5}));
    let efforts = vec![Effort::Low, Effort::High];
    let info = ModelInfo {
        efforts,
        thinking: ThinkingControl::Level,
        ..info(ID)
    };
    let request = Request::new()
        .system("Be \"brief\".")
        .tools(tools)
        .options(options)
        .user("hi");
    let expect = r#"{"systemInstruction":{"parts":[{"text":"Be \"brief\"."}]},"tools":[{"functionDeclarations":[{"name":"read","description":"Reads.","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}},{"name":"now","description":"Reads."}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]},"includeServerSideToolInvocations":true},"generationConfig":{"maxOutputTokens":100,"temperature":0.5,"stopSequences":["END"],"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"low"},"topK":5},"safetySettings":[],"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    assert_eq!(
        body(&Gemini::new(info, "k"), &request),
        (expect.to_owned(), vec![])
    );
}

#[test]
fn body_holds_contents_alone_when_nothing_is_set() {
    let model = Gemini::new(
        ModelInfo {
            refuses: vec![RequestOption::MaxOutputTokens],
            ..info(ID)
        },
        "k",
    );
    let expect = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    assert_eq!(
        body(&model, &Request::new().user("hi")),
        (expect.to_owned(), vec![])
    );
    assert_eq!(
        body(&model, &Request::new()),
        (r#"{"contents":[]}"#.to_owned(), vec![])
    );
}

#[test]
fn body_warns_when_options_have_no_place() {
    let options = Options {
        sequential_calls: true,
        cache: Cache::Long,
        cache_key: Some("k".into()),
        stop: ["a", "b", "c", "d", "e", "f"].map(Into::into).to_vec(),
        tool_choice: ToolChoice::Required,
        server_tools: vec![json!({"googleSearch": {}})],
        ..Options::default().extra("tools", json!([]))
    };
    check_option(
        info(ID),
        &[],
        options,
        "/generationConfig",
        json!({"maxOutputTokens": 8192, "stopSequences": ["a", "b", "c", "d", "e"]}),
        &[
            "the extra field tools was dropped: it is made of the request itself",
            "tool_choice was dropped: calls of tools that the provider runs cannot be demanded",
            "sequential_calls was dropped: this wire has no such option",
            "cache was changed from long to short: this wire caches by itself, for minutes",
            "stop was shortened from 6 texts to 5: this wire takes no more",
        ],
    );
}

#[test]
fn tool_config_follows_the_choice_when_there_are_tools() {
    let tools = [tool("read", json!({"type": "object"}))];
    let check = |options: Options, expect: Value| {
        check_option(info(ID), &tools, options, "/toolConfig", expect, &[])
    };
    check(Options::default(), Value::Null);
    let chosen = |tool_choice| Options {
        tool_choice,
        ..Options::default()
    };
    check(
        chosen(ToolChoice::None),
        json!({"functionCallingConfig": {"mode": "NONE"}}),
    );
    check(
        chosen(ToolChoice::Required),
        json!({"functionCallingConfig": {"mode": "ANY"}}),
    );
    let given = json!({"functionCallingConfig": {"mode": "VALIDATED"}});
    let options = chosen(ToolChoice::Required).extra("toolConfig", given.clone());
    check(options, given);
}

#[test]
fn thinking_is_a_level_or_a_budget_when_a_model_is_told_so() {
    #[track_caller]
    fn check(id: &str, control: ThinkingControl, wanted: Effort, expect: Value, warns: &[&str]) {
        let info = ModelInfo {
            efforts: Effort::ALL.to_vec(),
            thinking: control,
            ..ModelInfo::new(id)
        };
        let options = Options {
            thinking: Some(wanted),
            ..Options::default()
        };
        check_option(
            info,
            &[],
            options,
            "/generationConfig/thinkingConfig",
            expect,
            warns,
        );
    }
    let level = |name: &str| json!({"includeThoughts": true, "thinkingLevel": name});
    check(
        ID,
        ThinkingControl::Level,
        Effort::Minimal,
        level("minimal"),
        &[],
    );
    check(
        ID,
        ThinkingControl::Level,
        Effort::Medium,
        level("medium"),
        &[],
    );
    check(ID, ThinkingControl::Level, Effort::Max, level("high"), &[]);
    let warn = "thinking was changed from off to minimal: there is no level below that";
    check(
        ID,
        ThinkingControl::Level,
        Effort::Off,
        json!({"thinkingLevel": "minimal"}),
        &[warn],
    );
    let budget = |tokens: u32| json!({"includeThoughts": true, "thinkingBudget": tokens});
    let steps = [128, 128, 2_048, 8_192, 32_768, 32_768];
    for (effort, tokens) in Effort::ALL.into_iter().zip(steps) {
        check(OLD, ThinkingControl::Budget, effort, budget(tokens), &[]);
    }
    let flash = "gemini/gemini-2.5-flash";
    check(
        flash,
        ThinkingControl::Budget,
        Effort::Off,
        json!({"thinkingBudget": 0}),
        &[],
    );
    for (effort, tokens) in Effort::ALL
        .into_iter()
        .skip(1)
        .zip([512, 2_048, 8_192, 24_576, 24_576])
    {
        check(flash, ThinkingControl::Budget, effort, budget(tokens), &[]);
    }
}

#[test]
fn format_is_sent_when_the_model_takes_it() {
    let format = || {
        Format::new(
            "answer",
            json!({"type": "object", "properties": {"a": {"const": "x"}}}),
        )
    };
    let config = json!({
        "maxOutputTokens": 8192,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"a": {"enum": ["x"]}}, "title": "answer"},
    });
    let options = || Options {
        format: Some(format()),
        ..Options::default()
    };
    let tools = [tool("read", json!({"type": "object"}))];
    check_option(
        info(OLD),
        &[],
        options(),
        "/generationConfig",
        config.clone(),
        &[],
    );
    check_option(
        info(ID),
        &tools,
        options(),
        "/generationConfig",
        config,
        &[],
    );
    let warn = "format was dropped: gemini/gemini-2.5-pro takes no schema beside tools";
    check_option(
        info(OLD),
        &tools,
        options(),
        "/generationConfig",
        json!({"maxOutputTokens": 8192}),
        &[warn],
    );
    let warn =
        "the schema of the format was simplified: it holds rules that this wire does not know";
    let options = Options {
        format: Some(Format::new("n", json!({"type": "string", "pattern": "a"}))),
        ..Options::default()
    };
    let schema = json!({"type": "string", "title": "n"});
    check_option(
        info(ID),
        &[],
        options,
        "/generationConfig/responseJsonSchema",
        schema,
        &[warn],
    );
}

#[test]
fn turn_sends_all_results_in_one_content_when_calls_are_parallel() {
    let mut ran = CallResult::ok("b");
    ran.args = Some(r#"{"path":"b"}"#.into());
    let blocks = vec![
        said("Look.", None),
        call(1, Some("k1"), r#"{"n":9007199254740993}"#, Some("QQ==")),
        call(2, Some("k2"), "{}", None),
        call(3, None, "x", None),
    ];
    let failed = CallResult::new(Status::Failed, "");
    check(
        ID,
        [
            asked(),
            turn(
                ID,
                FinishReason::Calls,
                blocks,
                vec![CallResult::ok("a"), ran, failed],
            ),
        ],
        json!([
            question(),
            {"role": "model", "parts": [
                {"text": "Look."},
                {"functionCall": {"id": "k1", "name": "read", "args": {"n": 9_007_199_254_740_993_u64}},
                 "thoughtSignature": "QQ=="},
                {"functionCall": {"id": "k2", "name": "read", "args": {"path": "b"}}},
                {"functionCall": {"name": "read", "args": {"INVALID_JSON": "x"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "k1", "name": "read", "response": {"output": "a"}}},
                {"functionResponse": {"id": "k2", "name": "read", "response": {"output": "b"}}},
                {"functionResponse": {"name": "read", "response": {"error": "the call failed"}}},
            ]},
        ]),
    );
}

#[test]
fn turn_returns_signatures_in_their_parts_when_it_is_own() {
    let blocks = || {
        vec![
            thought("hm", None),
            thought("", Some("QUI=")),
            thought("", None),
            said("a", None),
            said("b", Some("QUJD")),
            said("", Some("QUJDRA")),
            said("", None),
            said("c", Some("not base64!")),
            Block::Text(Text {
                text: "".into(),
                extra: Extra::from(json!({"groundingMetadata": {}})),
            }),
        ]
    };
    check(
        ID,
        [turn(ID, FinishReason::End, blocks(), vec![])],
        json!([{"role": "model", "parts": [
            {"text": "hm", "thought": true},
            {"text": "", "thought": true, "thoughtSignature": "QUI="},
            {"text": "a"},
            {"text": "b", "thoughtSignature": "QUJD"},
            {"text": "", "thoughtSignature": "QUJDRA"},
            {"text": "c"},
        ]}]),
    );
    let foreign =
        json!([{"role": "model", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}]);
    check(
        ID,
        [turn(
            "gemini/gemini-3.5-pro",
            FinishReason::End,
            blocks(),
            vec![],
        )],
        foreign.clone(),
    );
    check(
        OLD,
        [turn(
            "anthropic/claude-opus-5",
            FinishReason::End,
            blocks(),
            vec![],
        )],
        foreign,
    );
}

#[test]
fn turn_stands_in_for_a_signature_when_the_first_call_has_none() {
    let entry = |model: &str, signature| {
        let blocks = vec![
            call(0, Some("toolu_1"), "{}", signature),
            call(1, Some("toolu_2"), "{}", None),
        ];
        turn(
            model,
            FinishReason::Calls,
            blocks,
            vec![CallResult::ok("a"), CallResult::ok("b")],
        )
    };
    let expect = |ids: [&str; 2], signature: Option<&str>| {
        let mut parts =
            ids.map(|id| json!({"functionCall": {"id": id, "name": "read", "args": {}}}));
        if let Some(signature) = signature {
            parts[0]["thoughtSignature"] = json!(signature);
        }
        let results = ids.iter().zip(["a", "b"]).map(
            |(id, output)| json!({"functionResponse": {"id": id, "name": "read", "response": {"output": output}}}),
        );
        json!([question(), {"role": "model", "parts": parts}, {"role": "user", "parts": results.collect::<Vec<_>>()}])
    };
    let (ours, theirs) = (["c3_0_0", "c3_0_1"], ["toolu_1", "toolu_2"]);
    let stand_in = Some("skip_thought_signature_validator");
    check(
        ID,
        [asked(), entry("anthropic/claude-opus-5", Some("QQ=="))],
        expect(ours, stand_in),
    );
    // Calls follow a content of the user, so one stands in at the beginning.
    let mut alone = expect(ours, stand_in);
    alone[0]["parts"][0]["text"] = json!("Go on.");
    check(ID, [entry("anthropic/claude-opus-5", Some("QQ=="))], alone);
    check(
        "gemini/gemini-flash-latest",
        [asked(), entry("x/y", None)],
        expect(ours, stand_in),
    );
    check(
        OLD,
        [asked(), entry("anthropic/claude-opus-5", Some("QQ=="))],
        expect(ours, None),
    );
    check(
        ID,
        [asked(), entry(ID, Some("QQ=="))],
        expect(theirs, Some("QQ==")),
    );
    check(
        ID,
        [asked(), entry(ID, Some("?"))],
        expect(theirs, stand_in),
    );
    check(OLD, [asked(), entry(OLD, None)], expect(theirs, None));
    check(
        "gemini/gemma-4-31b-it",
        [asked(), entry("x/y", None)],
        expect(ours, None),
    );
}

#[test]
fn turn_returns_opaque_parts_when_this_provider_made_them() {
    let step = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s"}, "thoughtSignature": "QQ=="});
    let code = json!({"executableCode": {"code": "1"}, "thoughtSignature": "QQ=="});
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let blocks = || {
        vec![
            opaque(step.clone()),
            opaque(code.clone()),
            opaque(picture.clone()),
            opaque(json!({"groundingMetadata": {}})),
            opaque(json!(5)),
            said("a", None),
        ]
    };
    let own = json!([{"role": "model", "parts": [step, code, picture, {"text": "a"}]}]);
    assert_eq!(
        check(ID, [turn(ID, FinishReason::End, blocks(), vec![])], own),
        [""; 0]
    );
    let parts = json!([{"executableCode": {"code": "1"}}, picture, {"text": "a"}]);
    let warnings = check(
        ID,
        [turn(OLD, FinishReason::End, blocks(), vec![])],
        json!([{"role": "model", "parts": parts}]),
    );
    let warn =
        "steps of a server tool were left out: only the model that took them can go on from them";
    assert_eq!(warnings, [warn]);
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
            thought("", Some("QQ==")),
            said("half", Some("QQ==")),
            call(2, None, "{}", Some("QQ==")),
        ];
        check(
            ID,
            [turn(ID, stop, blocks, no())],
            json!([{"role": "model", "parts": [{"text": "half"}]}]),
        );
        check(
            ID,
            [turn(ID, stop, vec![call(0, None, "{}", None)], no())],
            json!([]),
        );
    }
}

#[test]
fn results_hold_media_when_the_model_takes_them_there() {
    let entry = |id: &str| {
        let mut pictures = CallResult::ok("c");
        pictures.content = vec![
            Content::text("c"),
            image("image/png", bytes()),
            Content::text("d"),
        ];
        let mut only = CallResult::ok("");
        only.content = vec![
            document(Some("n.pdf"), bytes()),
            image("image/gif", bytes()),
        ];
        let mut linked = CallResult::new(Status::Failed, "");
        linked.content = vec![image("image/png", at("https://a.example/x.png"))];
        let calls = (0..3)
            .map(|block| call(block, Some(&format!("k{block}")), "{}", Some("QQ==")))
            .collect();
        turn(id, FinishReason::Calls, calls, vec![pictures, only, linked])
    };
    let calls = ["k0", "k1", "k2"].map(
        |id| json!({"functionCall": {"id": id, "name": "read", "args": {}}, "thoughtSignature": "QQ=="}),
    );
    let blob = |media_type: &str| json!({"inlineData": {"mimeType": media_type, "data": "aGk="}});
    let link = json!({"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/x.png"}});
    let result = |id: &str, response: Value| json!({"functionResponse": {"id": id, "name": "read", "response": response}});
    let nested = |id: &str, response: Value, media: &str| json!({"functionResponse": {"id": id, "name": "read", "response": response, "parts": [blob(media)]}});
    check(
        ID,
        [asked(), entry(ID)],
        json!([
            question(),
            {"role": "model", "parts": calls},
            {"role": "user", "parts": [
                nested("k0", json!({"output": "c\nd"}), "image/png"),
                nested("k1", json!({"output": "[file: n.pdf]"}), "application/pdf"),
                result("k2", json!({"error": "(see the attached files)"})),
            ]},
            {"role": "user", "parts": [
                {"text": "Attached file(s) from tool result:"}, blob("image/gif"), link,
            ]},
        ]),
    );
    check(
        OLD,
        [asked(), entry(OLD)],
        json!([
            question(),
            {"role": "model", "parts": calls},
            {"role": "user", "parts": [
                result("k0", json!({"output": "c\nd"})),
                result("k1", json!({"output": "(see the attached files)"})),
                result("k2", json!({"error": "(see the attached files)"})),
            ]},
            {"role": "user", "parts": [
                {"text": "Attached file(s) from tool result:"},
                blob("image/png"), {"text": "[file: n.pdf]"}, blob("application/pdf"), blob("image/gif"), link,
            ]},
        ]),
    );
}

#[test]
fn user_content_is_sent_in_its_forms_when_it_has_media() {
    let content = vec![
        Content::text(" "),
        image("image/png", bytes()),
        image("", at("https://a.example/x")),
        document(Some("n"), bytes()),
        document(None, at("file:///etc/passwd")),
    ];
    let omitted = "[file omitted: its address is not one that this model can fetch]";
    let warnings = check(
        ID,
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
            {"role": "user", "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                {"fileData": {"fileUri": "https://a.example/x"}},
                {"text": "[file: n]"},
                {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
                {"text": omitted},
            ]},
            {"role": "user", "parts": [{"text": "so far"}]},
        ]),
    );
    assert_eq!(warnings, [omitted]);
}

/// Arbitrary entries: users, turns with calls and signatures, cut-off turns, and what is not sent at all.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
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
        (text, text, any::<bool>(), any::<bool>()).prop_map(|(text, args, whole, own)| {
            let stop = if whole {
                FinishReason::Calls
            } else {
                FinishReason::Interrupted
            };
            let blocks = vec![
                thought(&text, None),
                said(&text, Some("QQ==")),
                call(2, None, &args, None),
            ];
            let mut result = CallResult::ok("x".repeat(30_000));
            result.content.push(image("image/gif", bytes()));
            turn(if own { ID } else { OLD }, stop, blocks, vec![result])
        }),
    ];
    prop::collection::vec(entry, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn body_is_a_prefix_of_the_next_one_when_entries_are_appended(entries in entries()) {
        let model = model(ID);
        let options = Options { server_tools: vec![json!({"googleSearch": {}})], ..Options::default() };
        let frame = |request: Request| {
            request.system("s").tools([tool("read", json!({"type": "object"}))]).options(options.clone())
        };
        let mut request = frame(Request::new());
        let mut before = String::new();
        for entry in &entries {
            request.entries.push(entry.clone());
            let (text, _) = body(&model, &request);
            prop_assert!(text.starts_with(&before));
            before = text[..text.len() - 2].to_owned();
        }
        let fresh = frame(Request::from_entries(Transcript::from_iter(entries)));
        prop_assert_eq!(body(&model, &fresh).0, body(&model, &request).0);
    }
}

#[test]
fn usage_is_bounded_when_each_event_adds_to_it() {
    let protocol = model(ID).inner.protocol().clone();
    let mut decoder = Wire::decoder(
        &protocol,
        &protocol.info,
        CallIdSeed {
            turn: 1,
            attempt: 0,
        },
    );
    let mut out = std::collections::VecDeque::new();
    let mut take = |usage: &str| {
        let data = format!(r#"{{"usageMetadata":{usage}}}"#);
        let frame = crate::sse::Frame {
            event: "",
            data: &data,
        };
        crate::driver::Decode::frame(&mut decoder, frame, &mut out).expect("an event");
    };
    for at in 1..=100 {
        let mut usage = json!({"promptTokenCount": at});
        usage["k".repeat(at)] = json!(at);
        take(&usage.to_string());
    }
    take(&json!({"promptTokenCount": 200, "x": "x".repeat(20_000)}).to_string());
    take(&format!(
        r#"{{"promptTokenCount":300,"deep":{}{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    ));
    crate::driver::Decode::cut(&mut decoder, &mut out);
    let Some(adjutant_llm::Chunk::Usage { usage, raw }) = out.pop_back() else {
        unreachable!("a usage is told")
    };
    assert_eq!(usage.input_uncached, 300);
    assert_eq!(
        raw.as_object()
            .map(|it| (it.len(), it.contains_key("deep"))),
        Some((64, false))
    );
}
