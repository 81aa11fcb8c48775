//! Tests of what each dialect makes of a request.

use adjutant_llm::{Cache, Effort, Extra, Format, Text, ThinkingControl, ToolChoice};

use super::*;
use crate::{
    chat::wire::nine,
    driver::{Auth, Decode},
    sse::Frame,
};

fn info(id: &str, efforts: &[Effort]) -> ModelInfo {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    ModelInfo {
        inputs,
        efforts: efforts.to_vec(),
        thinking: ThinkingControl::Level,
        ..ModelInfo::new(id)
    }
}

fn hosted(id: &str) -> Chat {
    Chat::new(
        info(id, &[Effort::Off, Effort::Low, Effort::High]),
        "sk-secret",
    )
}

fn tool() -> ToolDecl {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolDecl {
        name: "read".into(),
        description: "Reads.".into(),
        schema: Arc::new(schema),
    }
}

fn format() -> Format {
    Format::new(
        "found",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    )
}

/// A turn of a model: it thought, said something, called, and was answered with a text and a picture.
fn thought(id: &str) -> Entry {
    let place = CallId {
        turn: 3,
        attempt: 0,
        block: 2,
    };
    let detail = json!({"type": "reasoning.encrypted", "data": "ZW5j", "id": "call_1", "index": 0});
    let extra = Extra::from(json!({"field": "reasoning", "reasoning_details": [detail]}));
    let mut call = Call {
        wire_id: Some("call_1".into()),
        ..Call::new(place, "read", r#"{"path":"a"}"#)
    };
    call.extra = Extra::from(json!({"extra_content": {"google": {"thought_signature": "c2ln"}}}));
    let annotated = Extra::from(json!({"annotations": []}));
    let mut reply = Reply::new(id.into(), FinishReason::Calls);
    reply.blocks = vec![
        Arc::new(Block::Thinking(Thinking {
            extra,
            ..Thinking::new("hm")
        })),
        Arc::new(Block::Text(Text {
            text: "Reading.".into(),
            extra: annotated,
        })),
        Arc::new(Block::Call(call)),
    ];
    let mut result = CallResult::ok("");
    result.content = vec![Content::text("a"), image()];
    let mut open = Turn::open(Arc::new(reply));
    open.put(place, Arc::new(result)).expect("the call is open");
    Entry::Turn(open.close().expect("every call has its result"))
}

fn value(model: &Chat, request: &Request) -> (Value, Vec<String>) {
    let (text, warnings) = body(model, request);
    (serde_json::from_str(&text).expect("JSON"), warnings)
}

/// Checks the fields of a body beside the model, the limit, the stream and the messages; and the warnings.
#[track_caller]
fn check(model: &Chat, options: Options, expect: Value, expect_warnings: &[&str]) {
    let request = Request::new()
        .tools([tool()])
        .options(Options {
            cache: Cache::Off,
            ..options
        })
        .user("hi");
    let (mut body, warnings) = value(model, &request);
    let fields = body.as_object_mut().expect("an object");
    for name in [
        "model",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "stream_options",
        "store",
        "messages",
    ] {
        fields.remove(name);
    }
    let function = json!({"name": "read", "description": "Reads.", "parameters": *tool().schema});
    let tools = fields.remove("tools").unwrap_or_default();
    assert!(
        tools.is_null() || tools == json!([{"type": "function", "function": function}]),
        "{tools}"
    );
    assert_eq!(
        (body, warnings),
        (
            expect,
            expect_warnings.iter().map(ToString::to_string).collect()
        )
    );
}

/// Checks the messages of a request with these entries.
#[track_caller]
fn check_messages(model: &Chat, entries: impl IntoIterator<Item = Entry>, expect: Value) {
    let (body, _) = value(
        model,
        &Request::from_entries(Transcript::from_iter(entries)),
    );
    assert_eq!(body["messages"], expect);
}

#[test]
fn bodies_are_as_recorded_when_everything_is_asked_of_each_dialect() {
    let folder =
        std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chat-requests");
    for dialect in crate::Dialect::all() {
        let id = match &*dialect.name {
            "openrouter" => "openrouter/anthropic/m".to_owned(),
            name => format!("{name}/m"),
        };
        let options = Options {
            thinking: Some(Effort::High),
            tool_choice: ToolChoice::Required,
            sequential_calls: true,
            format: Some(format()),
            temperature: Some(0.5),
            stop: vec!["END".into()],
            cache_key: Some("k".into()),
            server_tools: vec![json!({"type": "web_search"})],
            ..Options::default()
        };
        let entries = [
            Entry::User(UserMessage::from(vec![Content::text("look"), image()])),
            thought(&id),
            Entry::User(UserMessage::text("go on")),
        ];
        let request = Request::from_entries(Transcript::from_iter(entries))
            .system("Be brief.")
            .tools([tool()])
            .options(options);
        let (body, warnings) = value(&hosted(&id), &request);
        let text = serde_json::to_string_pretty(&json!({"body": body, "warnings": warnings}))
            .expect("JSON")
            + "\n";
        let recorded = std::fs::read_to_string(folder.join(format!("{}.json", dialect.name)))
            .unwrap_or_default();
        assert_eq!(text, recorded, "{}", dialect.name);
    }
}

#[test]
fn thinking_is_told_in_the_words_of_the_dialect() {
    let told = |id: &str, efforts: &[Effort], effort, expect| {
        check(
            &Chat::new(info(id, efforts), "sk"),
            Options {
                thinking: Some(effort),
                ..Options::default()
            },
            expect,
            &[],
        );
    };
    let (all, toggle) = (Effort::ALL, [Effort::Off, Effort::High]);
    told(
        "openai/m",
        &[Effort::Low, Effort::Max],
        Effort::Max,
        json!({"reasoning_effort": "max"}),
    );
    told(
        "openai/m",
        &[Effort::Low, Effort::Xhigh],
        Effort::Xhigh,
        json!({"reasoning_effort": "xhigh"}),
    );
    told(
        "openai/m",
        &all,
        Effort::Off,
        json!({"reasoning_effort": "none"}),
    );
    let beside = "thinking was dropped: openai/m does not think beside tools on this wire";
    let high = || Options {
        thinking: Some(Effort::High),
        ..Options::default()
    };
    check(
        &hosted("openai/m"),
        high(),
        json!({"reasoning_effort": "none"}),
        &[beside],
    );
    let (body, _) = value(
        &hosted("openai/m"),
        &Request::new().options(high()).user("hi"),
    );
    assert_eq!(body["reasoning_effort"], "high");
    told(
        "groq/m",
        &all,
        Effort::Off,
        json!({"reasoning_effort": "none"}),
    );
    told(
        "deepseek/m",
        &all,
        Effort::Medium,
        json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    );
    told(
        "deepseek/m",
        &all,
        Effort::Off,
        json!({"thinking": {"type": "disabled"}}),
    );
    told(
        "zai/m",
        &all,
        Effort::Off,
        json!({"thinking": {"type": "disabled"}, "tool_stream": true}),
    );
    told(
        "moonshot/k3",
        &[Effort::Low, Effort::High],
        Effort::Low,
        json!({"reasoning_effort": "low"}),
    );
    told(
        "moonshot/k2.6",
        &toggle,
        Effort::Off,
        json!({"thinking": {"type": "disabled"}}),
    );
    told(
        "moonshot/k2.6",
        &toggle,
        Effort::High,
        json!({"thinking": {"type": "enabled"}}),
    );
    told(
        "together/m",
        &toggle,
        Effort::High,
        json!({"reasoning": {"enabled": true}}),
    );
    told(
        "together/m",
        &[Effort::Low, Effort::High],
        Effort::High,
        json!({"reasoning_effort": "high"}),
    );
    told(
        "qwen/m",
        &toggle,
        Effort::Off,
        json!({"enable_thinking": false}),
    );
    let off = json!({"chat_template_kwargs": {"enable_thinking": false}});
    told("vllm/m", &toggle, Effort::Off, off);
    told(
        "openrouter/m",
        &all,
        Effort::Off,
        json!({"reasoning": {"effort": "none"}}),
    );
    let model = |id: &str| {
        Chat::new(
            ModelInfo {
                thinking: ThinkingControl::Budget,
                ..info(id, &all)
            },
            "sk",
        )
    };
    check(
        &model("openrouter/m"),
        high(),
        json!({"reasoning": {"max_tokens": 7_168}}),
        &[],
    );
    check(
        &model("qwen/m"),
        high(),
        json!({"enable_thinking": true, "thinking_budget": 7_168}),
        &[],
    );
    let mut named = crate::Dialect::for_provider("groq").clone();
    named.thinking = crate::dialect::ThinkingFormat::Name;
    check(
        &hosted("groq/m").dialect(named.clone()),
        high(),
        json!({"thinking": "high"}),
        &[],
    );
    named.thinking = crate::dialect::ThinkingFormat::None;
    let dropped = "thinking was dropped: groq/m cannot be told how much to think";
    check(
        &hosted("groq/m").dialect(named),
        high(),
        json!({}),
        &[dropped],
    );
    // Without an effort nothing is said, and what the caller says itself stands.
    check(&hosted("deepseek/m"), Options::default(), json!({}), &[]);
    let own = json!({"effort": "low"});
    check(
        &hosted("openrouter/m"),
        high().extra("reasoning", own.clone()),
        json!({"reasoning": own}),
        &[],
    );
    let off = Options {
        thinking: Some(Effort::Off),
        ..Options::default()
    };
    let silent = Chat::new(info("perplexity/m", &all), "sk");
    let dropped = "thinking was dropped: perplexity/m has no word for off";
    check(
        &silent,
        off,
        json!({}),
        &["tools was dropped: perplexity/m takes none", dropped],
    );
}

#[test]
fn options_are_dropped_when_the_dialect_has_no_word_for_them() {
    let request = |options: Options| Request::new().options(options).user("hi");
    let (body, warnings) = value(
        &hosted("perplexity/m"),
        &request(Options {
            stop: vec!["END".into()],
            cache: Cache::Long,
            ..Options::default()
        }),
    );
    assert_eq!(
        (&body["stop"], &body["prompt_cache_retention"]),
        (&Value::Null, &Value::Null)
    );
    let dropped = [
        "stop was dropped: perplexity/m has no word for it",
        "cache was dropped: perplexity/m has no parameter for a long one",
    ];
    assert_eq!(warnings, dropped);
    let (body, warnings) = value(
        &hosted("openai/m"),
        &request(Options {
            cache: Cache::Long,
            cache_key: Some("k".into()),
            ..Options::default()
        }),
    );
    assert_eq!(
        (&body["prompt_cache_key"], &body["prompt_cache_retention"]),
        (&json!("k"), &Value::Null)
    );
    assert_eq!(
        warnings,
        ["cache was dropped: openai/m has no parameter for a long one"]
    );
    let (body, _) = value(
        &hosted("openai/m"),
        &request(Options {
            cache: Cache::Off,
            cache_key: Some("k".into()),
            ..Options::default()
        }),
    );
    assert_eq!(body["prompt_cache_key"], Value::Null);
}

#[test]
fn calls_are_demanded_as_far_as_the_dialect_can() {
    let named = || Options {
        tool_choice: ToolChoice::Named("read".into()),
        ..Options::default()
    };
    let object = json!({"type": "function", "function": {"name": "read"}});
    check(
        &hosted("groq/m"),
        named(),
        json!({"tool_choice": object}),
        &[],
    );
    let off = || Options {
        thinking: Some(Effort::Off),
        ..named()
    };
    check(
        &hosted("qwen/m"),
        off(),
        json!({"enable_thinking": false, "tool_choice": object}),
        &[],
    );
    let plain = Chat::new(info("moonshot/m", &[]), "sk");
    check(&plain, named(), json!({"tool_choice": object}), &[]);
    let thinks = "tool_choice was dropped: qwen/m cannot be made to call while it thinks";
    check(&hosted("qwen/m"), named(), json!({}), &[thinks]);
    let instead = "any call is demanded instead of read: llama-server/m cannot be told which";
    check(
        &hosted("llama-server/m"),
        named(),
        json!({"tool_choice": "required"}),
        &[instead],
    );
    let dropped = "tool_choice was dropped: ollama/m cannot be made to call";
    check(&hosted("ollama/m"), named(), json!({}), &[dropped]);
    let none = || Options {
        tool_choice: ToolChoice::None,
        ..Options::default()
    };
    check(
        &hosted("moonshot/m"),
        none(),
        json!({"tool_choice": "none"}),
        &[],
    );
    let (body, _) = value(
        &hosted("zai/m"),
        &Request::new().tools([tool()]).options(none()).user("hi"),
    );
    assert_eq!(
        (&body["tools"], &body["tool_choice"]),
        (&Value::Null, &Value::Null)
    );
    let sequential = "sequential_calls was dropped: ollama/m has no word for it";
    check(
        &hosted("ollama/m"),
        Options {
            sequential_calls: true,
            ..Options::default()
        },
        json!({}),
        &[sequential],
    );
    check(
        &hosted("mistral/m"),
        Options {
            sequential_calls: true,
            ..Options::default()
        },
        json!({"parallel_tool_calls": false}),
        &[],
    );
}

#[test]
fn replies_are_held_to_a_schema_as_far_as_the_dialect_can() {
    let loose = Format::new("found", json!({"type": "object"}));
    let schema = |strict: &Value, schema: Value| {
        let mut named = json!({"name": "found", "schema": schema});
        if !strict.is_null() {
            named["strict"] = strict.clone();
        }
        json!({"response_format": {"type": "json_schema", "json_schema": named}})
    };
    let mut closed = (*format().schema).clone();
    closed["additionalProperties"] = json!(false);
    check(
        &hosted("groq/m"),
        Options {
            format: Some(format()),
            ..Options::default()
        },
        schema(&json!(true), closed),
        &[],
    );
    let as_it_is = schema(&Value::Null, (*format().schema).clone());
    check(
        &hosted("together/m"),
        Options {
            format: Some(format()),
            ..Options::default()
        },
        as_it_is,
        &[],
    );
    check(
        &hosted("groq/m"),
        Options {
            format: Some(loose),
            ..Options::default()
        },
        schema(&Value::Null, json!({"type": "object"})),
        &[],
    );
    let words = "Answer with one JSON object that fits this JSON schema, and with nothing else:\n\
                 {\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}";
    let asked = json!([{"role": "system", "content": words}, {"role": "user", "content": "hi"}]);
    let request = Request::new()
        .options(Options {
            format: Some(format()),
            ..Options::default()
        })
        .user("hi");
    let (body, warnings) = value(&hosted("deepseek/m"), &request);
    assert_eq!(
        (&body["response_format"], &body["messages"]),
        (&json!({"type": "json_object"}), &asked)
    );
    assert_eq!(warnings, Vec::<String>::new());
    let prompted = ModelInfo {
        structured: adjutant_llm::Structured::Prompt,
        ..info("deepseek/m", &[])
    };
    let (body, warnings) = value(&Chat::new(prompted, "sk"), &request);
    assert_eq!(
        (&body["response_format"], &body["messages"]),
        (&Value::Null, &asked)
    );
    assert_eq!(
        warnings,
        ["the format is asked for in words alone: deepseek/m has no mode for it"]
    );
}

#[test]
fn thinking_comes_back_when_the_model_itself_thought_it() {
    let call = |id: &str| {
        json!([{"id": id, "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"},
                "extra_content": {"google": {"thought_signature": "c2ln"}}}])
    };
    let first = |id: &str| {
        value(
            &hosted(id),
            &Request::from_entries(Transcript::from_iter([thought(id)])),
        )
        .0["messages"][0]
            .clone()
    };
    let mut expect =
        json!({"role": "assistant", "content": "Reading.", "tool_calls": call("call_1")});
    assert_eq!(first("openai/m"), expect);
    expect["reasoning"] = "hm".into();
    assert_eq!(first("cerebras/m"), expect);
    let all = expect.as_object_mut().expect("an object");
    let text = all.remove("reasoning").expect("it is there");
    all.insert("reasoning_content".to_owned(), text);
    assert_eq!(first("deepseek/m"), expect);
    let foreign = value(
        &hosted("deepseek/m"),
        &Request::from_entries(Transcript::from_iter([thought("x/y")])),
    )
    .0;
    let bare = json!([{"id": "c3_0_2", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]);
    let expect = json!({"role": "assistant", "content": "Reading.", "reasoning_content": "", "tool_calls": bare});
    assert_eq!(foreign["messages"][0], expect);
    let detail =
        json!([{"type": "reasoning.encrypted", "data": "ZW5j", "id": "call_1", "index": 0}]);
    let expect = json!({"role": "assistant", "content": "Reading.", "reasoning_details": detail, "tool_calls": call("call_1")});
    assert_eq!(first("openrouter/m"), expect);
    let in_parts = Extra::from(json!({"field": "content"}));
    let blocks = vec![
        Block::Thinking(Thinking {
            extra: in_parts,
            ..Thinking::new("hm")
        }),
        Block::text("Yes."),
    ];
    let mut reply = Reply::new("mistral/m".into(), FinishReason::End);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    let turn = Turn::open(Arc::new(reply)).close().expect("no calls");
    check_messages(
        &hosted("mistral/m"),
        [Entry::Turn(turn)],
        json!([{"role": "assistant", "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": true},
            {"type": "text", "text": "Yes."},
        ]}]),
    );
}

#[test]
fn roles_take_turns_when_the_dialect_demands_it() {
    let user = |text: &str| Entry::User(UserMessage::text(text));
    let said = |text: &str| super::turn(FinishReason::End, vec![Block::text(text)], vec![]);
    let called = || {
        super::turn(
            FinishReason::Calls,
            vec![call(2, "{}")],
            vec![CallResult::ok("a")],
        )
    };
    check_messages(
        &hosted("perplexity/m"),
        [
            said("dropped"),
            user("a"),
            user("b"),
            said("c"),
            said("d"),
            called(),
            user("e"),
        ],
        json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "Understood."},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "d"},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "[called read with {}]"},
            {"role": "user", "content": [{"type": "text", "text": "[read answered:]"}, {"type": "text", "text": "a"}]},
            {"role": "assistant", "content": "Understood."},
            {"role": "user", "content": "e"},
        ]),
    );
    let id = "00000DCLa";
    assert_eq!(
        nine(CallId {
            turn: 3,
            attempt: 0,
            block: 2
        }),
        id
    );
    check_messages(
        &hosted("mistral/m"),
        [called(), user("e"), user("f")],
        json!([
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": id, "name": "read", "content": "a"},
            {"role": "assistant", "content": "Understood."},
            {"role": "user", "content": "e"},
            {"role": "user", "content": "f"},
        ]),
    );
}

#[test]
fn pictures_stand_in_results_when_the_dialect_takes_them_there() {
    let mut dialect = crate::Dialect::for_provider("openai").clone();
    dialect.result_images = true;
    let (body, _) = value(
        &hosted("openai/m").dialect(dialect),
        &Request::from_entries(Transcript::from_iter([thought("x/y")])),
    );
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let expect = json!({"role": "tool", "tool_call_id": "c3_0_2", "content": [picture, {"type": "text", "text": "a"}]});
    assert_eq!(
        (
            &body["messages"][1],
            body["messages"].as_array().map(Vec::len)
        ),
        (&expect, Some(2))
    );
}

#[test]
fn marks_stand_in_the_last_texts_when_a_model_of_anthropic_is_behind_a_router() {
    let model = hosted("openrouter/anthropic/m");
    let request = |cache| {
        let entries = [
            Entry::User(UserMessage::text("a")),
            thought("x/y"),
            Entry::User(UserMessage::text("b")),
        ];
        let options = Options {
            cache,
            ..Options::default()
        };
        Request::from_entries(Transcript::from_iter(entries))
            .system("s")
            .options(options)
    };
    let (body, _) = value(&model, &request(Cache::Long));
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let marked = |text: &str| json!([{"type": "text", "text": text, "cache_control": mark}]);
    assert_eq!(
        body["messages"][0],
        json!({"role": "system", "content": marked("s")})
    );
    assert_eq!(
        body["messages"][1],
        json!({"role": "user", "content": marked("a")})
    );
    assert_eq!(
        body["messages"][5],
        json!({"role": "user", "content": marked("b")})
    );
    let (text, _) = super::body(&model, &request(Cache::Off));
    assert!(!text.contains("cache_control"), "{text}");
    let (text, _) = super::body(&hosted("openrouter/openai/m"), &request(Cache::Long));
    assert!(!text.contains("cache_control"), "{text}");
}

#[test]
fn requests_go_to_the_vendor_with_its_key_when_nothing_else_is_set() {
    let address = |model: &Chat| Wire::address(model.inner.protocol(), model.inner.info());
    let bearer = Address::new("/chat/completions");
    assert_eq!(address(&hosted("groq/m")), bearer);
    assert_eq!(
        Driven::endpoint(&*hosted("groq/m").inner).host(),
        "api.groq.com"
    );
    assert_eq!(Driven::endpoint(&*hosted("nobody/m").inner).host(), "");
    let mut azure = crate::Dialect::for_provider("azure").clone();
    azure.path = "/chat/completions?api-version=2024-10-21".into();
    let model = hosted("azure/m")
        .base_url("https://r.openai.azure.com/openai/deployments/m")
        .dialect(azure);
    let path = "/chat/completions?api-version=2024-10-21".to_owned();
    assert_eq!(
        address(&model),
        Address::new(path).auth(Auth::Header("api-key"))
    );
    assert_eq!(Driven::endpoint(&*model.inner).host(), "r.openai.azure.com");
}

#[test]
fn reply_is_an_overflow_when_a_vendor_cuts_off_in_silence() {
    let end = |id: &str| {
        let model = Chat::new(
            ModelInfo {
                context_window: 1_000,
                ..ModelInfo::new(id)
            },
            "sk",
        );
        let mut decoder = Driven::decoder(
            &*model.inner,
            CallIdSeed {
                turn: 3,
                attempt: 0,
            },
        );
        let data = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1001,"completion_tokens":1}}"#;
        let mut chunks = std::collections::VecDeque::new();
        decoder
            .frame(Frame { event: "", data }, &mut chunks)
            .expect("an event");
        decoder
            .end(&mut chunks)
            .map(|reply| reply.stop)
            .map_err(|error| error.kind())
    };
    assert_eq!(end("zai/m"), Err(adjutant_llm::ErrorKind::Overflow));
    assert_eq!(end("openai/m"), Ok(FinishReason::End));
}

#[test]
fn reply_is_refused_when_more_comes_beside_its_text_than_can_be_kept() {
    let notes = |count: usize| {
        let mut decoder = Driven::decoder(
            &*hosted("openai/m").inner,
            CallIdSeed {
                turn: 3,
                attempt: 0,
            },
        );
        let list = vec!["{}"; count].join(",");
        let data = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"a","annotations":[{list}]}}}}]}}"#
        );
        let flow = decoder.frame(
            Frame {
                event: "",
                data: &data,
            },
            &mut Default::default(),
        );
        flow.map(|_| ())
            .map_err(|error| (error.kind(), error.message().to_owned()))
    };
    assert_eq!(notes(4_096), Ok(()));
    let message = "the reply has more than 4,096 notes beside its text".to_owned();
    assert_eq!(
        notes(4_097),
        Err((adjutant_llm::ErrorKind::Protocol, message))
    );
}

proptest! {
    #[test]
    fn nine_tells_calls_apart_when_they_are_not_the_same(
        one in (0_u64..1 << 33, 0_u32..256, 0_u32..4_096),
        other in (0_u64..1 << 33, 0_u32..256, 0_u32..4_096),
    ) {
        let [a, b] = [one, other].map(|(turn, attempt, block)| nine(CallId { turn, attempt, block }));
        prop_assert!(a.len() == 9 && a.chars().all(|it| it.is_ascii_alphanumeric()));
        prop_assert_eq!(a == b, one == other);
    }
}

#[test]
fn ids_of_calls_go_back_to_their_vendor_when_it_takes_them() {
    let turn = |id: &str, turn: u64, wire_ids: &[&str]| {
        let calls = (0..).zip(wire_ids).map(|(block, wire_id)| {
            let at = CallId {
                turn,
                attempt: 0,
                block,
            };
            let mut call = Call::new(at, "read_file", "{}");
            call.wire_id = Some((*wire_id).into());
            Arc::new(Block::Call(call))
        });
        let mut reply = Reply::new(id.into(), FinishReason::Calls);
        reply.blocks = calls.collect();
        Entry::Turn(Turn::open(Arc::new(reply)).close_with(|_| CallResult::ok("a")))
    };
    let ids = |model: &str, turns: &[Entry]| {
        let (body, _) = value(
            &hosted(model),
            &Request::from_entries(Transcript::from_iter(turns.iter().cloned())),
        );
        let messages = body["messages"].as_array().expect("a list").clone();
        let calls: Vec<Value> = messages
            .iter()
            .flat_map(|it| it["tool_calls"].as_array().cloned().unwrap_or_default())
            .map(|it| it["id"].clone())
            .collect();
        let results: Vec<Value> = messages
            .iter()
            .filter(|it| it["role"] == "tool")
            .map(|it| it["tool_call_id"].clone())
            .collect();
        assert_eq!(calls, results, "results follow their calls");
        calls
    };
    let kimi = "vllm/moonshotai/Kimi-K2.7";
    let first = turn(kimi, 1, &["functions.read_file:0", "functions.read_file:1"]);
    let again = turn(kimi, 2, &["functions.read_file:0"]);
    let other = turn("anthropic/claude-sonnet-5", 3, &["toolu_1"]);
    let odd = turn(kimi, 4, &["chatcmpl-tool-1"]);
    assert_eq!(
        ids(kimi, &[first.clone(), again.clone(), other.clone(), odd]),
        [
            "functions.read_file:0",
            "functions.read_file:1",
            "functions.read_file:2097152",
            "functions.read_file:3145728",
            "functions.read_file:4194304",
        ]
    );
    // Another family at the same provider, and another provider.
    for model in ["vllm/qwen3", "together/moonshotai/Kimi-K2.7"] {
        let sent = ids(model, std::slice::from_ref(&first));
        assert!(!sent.contains(&json!("functions.read_file:0")), "{model}");
    }
    let long = "x".repeat(41);
    let table = [
        ("openai/gpt-5", "call_1", true),
        ("openai/gpt-5", &*long, false),
        ("vllm/qwen3", &long, true),
        ("vllm/qwen3", "with space", false),
        ("vllm/qwen3", "", false),
        ("vllm/qwen3", "c9_0_0", false),
        ("mistral/large", "abcDEF123", true),
        ("mistral/large", "call_1", false),
    ];
    for (model, id, is_kept) in table {
        let sent = ids(model, &[turn(model, 1, &[id])]);
        assert_eq!(sent[0] == id, is_kept, "{model}: {id}: {sent:?}");
    }
    // The next model of the same family.
    assert_eq!(
        ids("openai/gpt-5.5", &[turn("openai/gpt-5", 1, &["call_1"])]),
        ["call_1"]
    );
}
