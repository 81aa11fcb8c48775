//! Tests of thinking that is bound to what comes before it.
//!
//! Source: "Preserved thinking", platform.claude.com, 2026-11.

use std::collections::VecDeque;

use adjutant_llm::{Chunk, ToolChange, Warning, WarningKind};

use super::*;
use crate::{driver::Decode, sse::Frame};

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
        let changes = match site {
            Site::Own => "inline-tools-2026-09-15",
            _ => "mid-conversation-tool-changes-2026-07-01",
        };
        let betas = ["thinking-binding-controls-2026-08-01", changes];
        let betas = betas.map(|beta| ("anthropic-beta", beta));
        assert_eq!(Driven::list_headers(&*model.inner), betas);
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

/// A conversation whose replies are recorded with the digest of the request that they answer.
#[derive(Clone)]
struct Session {
    model: Anthropic,
    request: Request,
    replies: usize,
}

impl Session {
    /// A session with a server that does not know the settings for bound thinking.
    fn without_settings(site: Site, id: &str) -> Self {
        let model = Anthropic::new(info(id), "k").site(site);
        let refusal = refusal("thinking.adaptive.block_binding: Extra inputs are not permitted");
        assert!(Wire::remedy(model.inner.protocol(), &refusal).is_some());
        Self::new(model)
    }

    fn new(model: Anthropic) -> Self {
        Self {
            model,
            request: Request::new()
                .system("Be brief.")
                .tools([tool("read"), tool("write")]),
            replies: 0,
        }
    }

    fn user(mut self, text: &str) -> Self {
        self.request = self.request.user(text);
        self
    }

    /// Adds a reply whose thinking has the signature `sig-<number>`.
    fn reply(mut self) -> Self {
        let prefix = Driven::encode(&*self.model.inner, &self.request).prefix;
        self.replies += 1;
        let mut reply = Reply::new(self.model.inner.info().id.clone(), FinishReason::End);
        reply.prefix_digest = prefix.map(|it| it.to_string().into());
        let signature = format!("sig-{}", self.replies);
        reply.blocks = [thinking("", Some(&signature), false), Block::text("done")]
            .map(Arc::new)
            .into();
        let turn = Turn::open(Arc::new(reply))
            .close()
            .expect("it has no calls");
        self.request.entries.push(Entry::Turn(turn));
        self
    }

    /// Shows the same entries with another text of the user at this place.
    fn edited(mut self, at: usize, text: &str) -> Self {
        let entries = self.request.entries.iter_from(0).enumerate();
        let entries = entries.map(|(place, stored)| {
            if place == at {
                Entry::User(UserMessage::text(text))
            } else {
                stored.entry.clone()
            }
        });
        self.request.entries = Transcript::from_iter(entries.collect::<Vec<_>>());
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.request);
        self
    }

    /// The numbers of the replies whose thinking is sent, and whether a warning says that some is not.
    fn sent(&self) -> (Vec<usize>, bool) {
        let (text, warnings) = body(&self.model, &self.request);
        let has = |number: &usize| text.contains(&format!("\"sig-{number}\""));
        let sent = (1..=self.replies).filter(has).collect();
        (sent, warnings.iter().any(|it| it.contains("left out")))
    }
}

fn refusal(message: &str) -> Error {
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Error::new(adjutant_llm::ErrorKind::Invalid, "400").with(|it| {
        it.status = Some(400);
        it.body = Some(body.to_string().into());
    })
}

fn option(change: impl FnOnce(Options) -> Options) -> impl FnOnce(&mut Request) {
    |request| request.options = Arc::new(change(Options::clone(&request.options)))
}

/// Source: "Preserved thinking", platform.claude.com, 2026-11, "What counts as an edit".
#[test]
fn thinking_is_left_out_when_the_prefix_has_changed_and_the_api_does_not_drop_it() {
    let all = || vec![1, 2];
    for (site, id) in sites() {
        let start = || {
            Session::without_settings(site, id)
                .user("a")
                .reply()
                .user("b")
                .reply()
        };
        assert_eq!(start().user("c").sent(), (all(), false), "{id}");
        type Change = fn(Session) -> Session;
        let valid: [(&str, Change); 6] = [
            ("order of tools", |it| {
                it.with(|it| it.tools = [tool("write"), tool("read")].into())
            }),
            ("marks", |it| {
                it.with(option(|it| Options {
                    cache: Cache::Off,
                    ..it
                }))
            }),
            ("effort", |it| {
                it.with(option(|it| Options {
                    thinking: Some(Effort::Low),
                    ..it
                }))
            }),
            ("thinking off", |it| {
                it.with(option(|it| Options {
                    thinking: Some(Effort::Off),
                    ..it
                }))
            }),
            ("deferred tool", |it| {
                let deferred = json!({"type": "custom", "name": "later", "defer_loading": true});
                it.with(option(|it| Options {
                    server_tools: vec![deferred],
                    ..it
                }))
            }),
            ("white space", |it| {
                it.with(|it| it.system = "Be brief.\n".into())
            }),
        ];
        for (name, change) in valid {
            assert_eq!(change(start()).sent(), (all(), false), "{id}: {name}");
        }
        let stale: [(&str, Change); 5] = [
            ("system", |it| it.with(|it| it.system = "Be long.".into())),
            ("tool added", |it| {
                it.with(|it| it.tools = [tool("read")].into())
            }),
            ("server tool", |it| {
                let search = json!({"type": "web_search_20250305", "name": "web_search"});
                it.with(option(|it| Options {
                    server_tools: vec![search],
                    ..it
                }))
            }),
            ("schema", |it| {
                let mut other = tool("read");
                other.schema = Arc::new(json!({"type": "object"}));
                it.with(|it| it.tools = [other, tool("write")].into())
            }),
            ("first message", |it| it.edited(0, "A")),
        ];
        for (name, change) in stale {
            let changed = change(start());
            assert_eq!(changed.sent(), (vec![], true), "{id}: {name}");
            // From there on, later thinking fits again.
            let later = changed.user("c").reply().user("d").reply();
            assert_eq!(later.sent().0, [3, 4], "{id}: {name}");
        }
        assert_eq!(start().edited(2, "B").sent(), (vec![1], true), "{id}");
        let there = start()
            .with(|it| it.system = "Be long.".into())
            .user("c")
            .reply();
        let back = there.with(|it| it.system = "Be brief.".into());
        assert_eq!(back.sent(), (all(), true), "{id}");
        assert_eq!(back.user("d").reply().sent().0, [1, 2, 4], "{id}");
    }
}

#[test]
fn thinking_is_sent_when_the_api_drops_it_or_its_digest_is_missing() {
    let change = |it: &mut Request| it.system = "Be long.".into();
    for (site, id) in sites() {
        let model = Anthropic::new(info(id), "k").site(site);
        let session = Session::new(model).user("a").reply().user("b").reply();
        assert_eq!(session.clone().with(change).sent(), (vec![1, 2], false));
        let off = session.with(option(|it| Options {
            thinking: Some(Effort::Off),
            ..it
        }));
        assert_eq!(off.sent(), (vec![1, 2], false));
        assert_eq!(
            off.with(change).sent(),
            (vec![], true),
            "the settings exclude `disabled`"
        );
    }
    let mut session = Session::without_settings(Site::Own, ID).user("a");
    let block = thinking("", Some("sig-1"), false);
    session.request.entries.push(turn(
        ID,
        FinishReason::End,
        vec![block, Block::text("x")],
        vec![],
    ));
    session.replies = 1;
    assert_eq!(session.with(change).sent(), (vec![1], false));
}

#[test]
fn thinking_stays_valid_when_another_model_answers_in_between() {
    let session = Session::without_settings(Site::Own, "anthropic/claude-fable-5-1")
        .user("a")
        .reply()
        .user("b");
    let other = turn(
        "openai/gpt-6.2",
        FinishReason::End,
        vec![Block::text("x")],
        vec![],
    );
    let session = session.with(|it| {
        it.entries.push(other);
    });
    let session = session.user("c").reply().user("d");
    assert_eq!(session.sent(), (vec![1, 2], false));
}

#[test]
fn blank_text_is_returned_when_it_separates_signed_blocks() {
    let model = Anthropic::new(info(ID), "k");
    let sent = |blocks: Vec<Block>| {
        let entries = [turn(ID, FinishReason::Length, blocks, vec![])];
        let (text, _) = body(
            &model,
            &Request::from_entries(Transcript::from_iter(entries)),
        );
        let value: Value = serde_json::from_str(&text).expect("JSON");
        value["messages"].clone()
    };
    let signed = |name: &str| thinking("", Some(name), false);
    let shown = |name: &str| json!({"type": "thinking", "thinking": "", "signature": name});
    let text = |text: &str| json!({"type": "text", "text": text});
    let blocks = vec![
        Block::text(" "),
        signed("a"),
        Block::text("\n"),
        signed("b"),
        Block::text(""),
        Block::text("x"),
        thinking("unsigned", None, false),
        Block::text(""),
        signed("c"),
    ];
    let expect = [shown("a"), text("\n"), shown("b"), text("x"), shown("c")];
    assert_eq!(
        sent(blocks),
        json!([{"role": "assistant", "content": expect}])
    );
    let silent = vec![signed("a"), Block::text(" "), signed("b")];
    assert_eq!(sent(silent), json!([]));
}

#[test]
fn refusals_have_a_remedy_when_they_name_thinking() {
    let bound = "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different \
                 conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". \
                 That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.";
    let unsigned = "messages.5.content.2: Invalid `signature` in `redacted_thinking` block";
    let unplaced = "Invalid `signature` in `thinking` block";
    // The message, where thinking ends, and whether the settings are sent afterwards.
    let cases = [
        (bound, Some(Some(3)), false),
        (unsigned, Some(Some(5)), true),
        (unplaced, Some(Some(0)), true),
        (
            "thinking.adaptive.block_binding: Extra inputs are not permitted",
            Some(None),
            false,
        ),
        ("invalid beta flag", Some(None), false),
        (
            "Unexpected value(s) `x` for the `anthropic-beta` header",
            Some(None),
            false,
        ),
        (
            "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags",
            Some(None),
            false,
        ),
        ("max_tokens: Field required", None, true),
    ];
    for (message, expect, asks) in cases {
        let model = Anthropic::new(info(ID), "k");
        let wire = model.inner.protocol();
        let remedy = Wire::remedy(wire, &refusal(message));
        assert_eq!(remedy.map(|it| it.thinking_from), expect, "{message}");
        assert_eq!(wire.asks_to_drop(), asks, "{message}");
        assert_eq!(
            !Driven::list_headers(&*model.inner).is_empty(),
            asks,
            "{message}"
        );
        if expect == Some(None) {
            assert_eq!(
                Wire::remedy(wire, &refusal(message)),
                None,
                "it helps once: {message}"
            );
            let elsewhere = model.clone().base_url("http://127.0.0.1:1");
            assert!(
                elsewhere.inner.protocol().asks_to_drop(),
                "another server may know it"
            );
        }
        let other = refusal(message).with(|it| it.status = Some(500));
        assert_eq!(Wire::remedy(wire, &other), None);
    }
    let free = Anthropic::new(ModelInfo::new(ID), "k");
    assert_eq!(
        Wire::remedy(free.inner.protocol(), &refusal("invalid beta flag")),
        None
    );
    assert!(Wire::remedy(free.inner.protocol(), &refusal(unsigned)).is_some());
}

#[test]
fn tools_are_added_by_a_message_of_the_system_when_a_conversation_has_begun() {
    let tool = |name: &str| ToolDecl {
        name: name.into(),
        description: "Looks.".into(),
        schema: Arc::new(json!({"type": "object"})),
    };
    let definition =
        json!({"name": "late", "description": "Looks.", "input_schema": {"type": "object"}});
    for (site, id) in sites() {
        let model = Anthropic::new(info(id), "k").site(site);
        let change = ToolChange {
            added: vec![tool("late")],
            removed: vec!["first".into()],
            provider: ModelInfo::new(id).provider().into(),
            server_tools: vec![json!({"type": "web_search_1", "name": "web_search"})],
            removed_server_tools: vec!["web_fetch".into()],
        };
        let changed = UserMessage {
            tools: Some(Arc::new(change)),
            ..Vec::new().into()
        };
        let mut request = Request::new().tools([tool("first")]).user("hi");
        request.added = [tool("late")].into();
        let (before, _) = body(&model, &request);
        request.entries.push(Entry::User(changed));
        let (with, warnings) = body(&model, &request);
        // A message of the user comes first, whenever it is written.
        let request = request.user("and?");
        let (text, _) = body(&model, &request);
        let mut reply = Reply::new(id.into(), FinishReason::End);
        reply.blocks = vec![Arc::new(Block::Text(Text {
            text: "ok".into(),
            extra: Extra::default(),
        }))];
        let turn = Turn::open(Arc::new(reply)).close().expect("no calls");
        let mut replied = request.clone();
        replied.entries.push(Entry::Turn(turn));
        let (after, _) = body(&model, &replied);
        let tail = |text: &str| -> Value {
            let body: Value = serde_json::from_str(text).expect("JSON");
            body["messages"].clone()
        };
        let text_of = |text: &str| json!([{"type": "text", "text": text}]);
        let user = |text: &str| json!({"role": "user", "content": text_of(text)});
        let reference = |name: &str| json!({"type": "tool_reference", "name": name});
        let mut blocks = match site {
            Site::Own => vec![
                json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}),
                json!({"type": "tool_addition", "tool": {"type": "tool_definition",
                    "definition": {"type": "web_search_1", "name": "web_search"}}}),
            ],
            _ => vec![json!({"type": "tool_addition", "tool": reference("late")})],
        };
        blocks.extend(
            ["first", "web_fetch"]
                .map(|name| json!({"type": "tool_removal", "tool": reference(name)})),
        );
        let system = json!({"role": "system", "content": blocks});
        assert_eq!(tail(&before), json!([user("hi")]), "{id}");
        assert_eq!(tail(&with), json!([user("hi"), system]), "{id}");
        assert_eq!(
            tail(&text),
            json!([user("hi"), user("and?"), system]),
            "{id}"
        );
        let assistant = json!({"role": "assistant", "content": text_of("ok")});
        assert_eq!(
            tail(&after),
            json!([user("hi"), user("and?"), system, assistant]),
            "{id}"
        );
        assert_eq!(warnings.is_empty(), site == Site::Own, "{warnings:?}");
        let body: Value = serde_json::from_str(&after).expect("JSON");
        let mut deferred = definition.clone();
        deferred["defer_loading"] = true.into();
        let expect = if site == Site::Own {
            None
        } else {
            Some(&deferred)
        };
        let tools = body["tools"].as_array().expect("tools");
        assert_eq!(tools.iter().find(|it| it["name"] == "late"), expect, "{id}");
    }
}
