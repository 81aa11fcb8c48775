//! A model call is one span under the names of the conventions, and nothing at all where nobody listens.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_llm::{
    Block, BlockKind, Call, CallId, CallResult, Chunk, ChunkStream, Content, Effort, Entry, Error,
    ErrorKind, FinishReason, Format, Image, Model, ModelInfo, Options, Reply, Request, Script,
    ScriptedModel, Source, Status, Thinking, ThinkingControl, Turn, Usage, UserMessage, complete,
    model_fn,
    telemetry::{
        Contents, METRICS_TARGET, Traced, agent_span, record_result, record_usage, semconv,
        tool_span,
    },
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

/// A subscriber that keeps the fields of each span and of each event, in order.
#[derive(Debug, Clone, Default)]
struct Kept {
    seen: Arc<Mutex<Vec<Fields>>>,
    /// Ids of spans, in the order in which they were entered last and not left.
    inside: Arc<Mutex<Vec<u64>>>,
    /// It takes events with numbers to measure alone, by the names of their fields, as the layer of `tracing-opentelemetry` does.
    measures: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Fields {
    /// The place of the span that it stands in, counted from 1; 0 for none.
    under: u64,
    values: BTreeMap<&'static str, Value>,
}

impl Kept {
    fn listen() -> (Self, DefaultGuard) {
        let kept = Self::default();
        (kept.clone(), tracing::subscriber::set_default(kept))
    }

    fn spans(&self) -> Vec<Fields> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter()
            .filter(|it| it.values.contains_key("otel.name"))
            .cloned()
            .collect()
    }

    fn metrics(&self) -> Vec<Fields> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter()
            .filter(|it| !it.values.contains_key("otel.name"))
            .cloned()
            .collect()
    }

    fn keep(&self, record: impl FnOnce(&mut Fields)) -> u64 {
        let under = self
            .inside
            .lock()
            .expect("no panic")
            .last()
            .copied()
            .unwrap_or_default();
        let mut seen = self.seen.lock().expect("no panic");
        let mut fields = Fields {
            under,
            ..Fields::default()
        };
        record(&mut fields);
        seen.push(fields);
        seen.len() as u64
    }
}

impl Subscriber for Kept {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        match self.measures {
            true => {
                about.is_event()
                    && about
                        .fields()
                        .iter()
                        .any(|field| field.name().starts_with("histogram."))
            }
            false => about.is_span() || about.target() == METRICS_TARGET,
        }
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.keep(|fields| span.record(fields)))
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let mut seen = self.seen.lock().expect("no panic");
        values.record(&mut seen[span.into_u64() as usize - 1]);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        assert_eq!(*event.metadata().level(), Level::DEBUG);
        self.keep(|fields| event.record(fields));
    }

    fn enter(&self, span: &span::Id) {
        self.inside.lock().expect("no panic").push(span.into_u64());
    }

    fn exit(&self, span: &span::Id) {
        assert_eq!(
            self.inside.lock().expect("no panic").pop(),
            Some(span.into_u64())
        );
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.values
            .insert(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.values.insert(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.values.insert(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.values.insert(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.values.insert(field.name(), value.into());
    }
}

#[track_caller]
fn check(fields: &Fields, under: u64, expect: Value) {
    assert_eq!(serde_json::to_value(&fields.values).expect("JSON"), expect);
    assert_eq!(fields.under, under);
}

fn info() -> ModelInfo {
    let efforts = vec![Effort::Low, Effort::High];
    ModelInfo {
        efforts,
        thinking: ThinkingControl::Level,
        ..ModelInfo::new("google/gemini-x")
    }
}

fn usage() -> Usage {
    Usage {
        input_uncached: 10,
        cache_read: 20,
        cache_write: 30,
        cache_write_1h: 0,
        output: 7,
        reasoning: 5,
    }
}

/// A model whose first piece comes after 250 ms, and whose reply comes 750 ms after that.
fn slow() -> impl Model {
    model_fn(info(), |_| {
        let mut reply = Reply::new("google/gemini-x-001".into(), FinishReason::Length);
        reply.wire_id = Some("resp_1".into());
        reply.usage = usage();
        let text = Arc::new(Block::text("Hi."));
        reply.blocks.push(Arc::clone(&text));
        let start = |attempt| Chunk::Start {
            attempt,
            model: "google/gemini-x".into(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        let cause = Error::new(ErrorKind::Overloaded, "busy");
        let retracted = Usage {
            input_uncached: 1,
            output: 2,
            ..Usage::default()
        };
        let chunks = vec![
            (0, start(0)),
            (
                0,
                Chunk::Retracted {
                    attempt: 0,
                    cause,
                    usage: retracted,
                },
            ),
            (0, start(1)),
            (
                250,
                Chunk::Open {
                    block: 0,
                    kind: BlockKind::Text,
                },
            ),
            (
                0,
                Chunk::Close {
                    block: 0,
                    content: text,
                },
            ),
            (750, Chunk::Done(Arc::new(reply))),
        ];
        let stream = futures_util::stream::iter(chunks).then(|(wait, chunk)| async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            Ok(chunk)
        });
        Box::pin(stream)
    })
}

#[tokio::test(start_paused = true)]
async fn traced_makes_one_span_when_a_subscriber_listens() {
    let (kept, _listening) = Kept::listen();
    let options = Options {
        max_output_tokens: Some(64),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        thinking: Some(Effort::Medium),
        format: Some(Format::new("x", json!({}))),
        ..Options::default()
    };
    let request = Request::new()
        .system("Secret.")
        .user("Secret?")
        .options(options);
    complete(&Traced::new(slow()), request)
        .await
        .expect("a reply");
    let [span] = &kept.spans()[..] else {
        panic!("one span: {kept:?}")
    };
    let expect = json!({
        "otel.name": "chat gemini-x",
        "otel.kind": "client",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-x",
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": "[\"END\"]",
        "gen_ai.request.reasoning.level": "high",
        "gen_ai.request.stream": true,
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.model": "gemini-x-001",
        "gen_ai.response.finish_reasons": "[\"length\"]",
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 61,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_write.input_tokens": 30,
        "gen_ai.usage.reasoning.output_tokens": 5,
    });
    check(span, 0, expect);
    let [metrics] = &kept.metrics()[..] else {
        panic!("one set of metrics: {kept:?}")
    };
    let expect = json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-x",
        "histogram.gen_ai.client.inference.duration": 1.0,
        "histogram.gen_ai.client.inference.time_to_first_chunk": 0.25,
        "monotonic_counter.gen_ai.client.inference.usage.input_tokens": 61,
        "monotonic_counter.gen_ai.client.inference.usage.output_tokens": 9,
        "monotonic_counter.gen_ai.client.inference.usage.cache_read.input_tokens": 20,
        "monotonic_counter.gen_ai.client.inference.usage.cache_write.input_tokens": 30,
        "monotonic_counter.gen_ai.client.inference.usage.reasoning.output_tokens": 5,
    });
    check(metrics, 1, expect);
}

#[tokio::test(start_paused = true)]
async fn traced_measures_when_no_span_is_wanted() {
    let kept = Kept {
        measures: true,
        ..Kept::default()
    };
    let _listening = tracing::subscriber::set_default(kept.clone());
    complete(&Traced::new(slow()), Request::new())
        .await
        .expect("a reply");
    assert_eq!((kept.spans().len(), kept.metrics().len()), (0, 1));
}

#[tokio::test]
async fn traced_records_what_was_said_when_told_to() {
    let (kept, _listening) = Kept::listen();
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 1,
    };
    let mut reply = Reply::new("scripted/model".into(), FinishReason::Calls);
    reply.blocks = vec![
        Arc::new(Block::Thinking(Thinking::new("Hm."))),
        Arc::new(Block::Call(Call::new(id, "look", "{"))),
    ];
    let mut open = Turn::open(Arc::new(reply));
    open.put(id, Arc::new(CallResult::ok("seen")))
        .expect("the call waits for its result");
    let picture = |source| {
        Content::Image(Image {
            media_type: "image/png".into(),
            source,
        })
    };
    let content = vec![
        Content::text("Look!"),
        picture(Source::Base64 {
            data: "AAAA".into(),
        }),
        picture(Source::Url {
            url: "https://a.example".into(),
        }),
    ];
    let entries = [
        Entry::User(UserMessage::from(content)),
        Entry::Turn(open.close().expect("every call has its result")),
    ];
    let request = Request::from_entries(entries.into_iter().collect()).system("Be brief.");
    let model = ScriptedModel::new([Script::new().call("look", json!({"at": 1}))]);
    complete(
        &Traced {
            model,
            contents: Contents::Recorded,
        },
        request,
    )
    .await
    .expect("a reply");
    let [span] = &kept.spans()[..] else {
        panic!("one span: {kept:?}")
    };
    let said = |name| -> Value {
        serde_json::from_str(span.values[name].as_str().expect("it is recorded"))
            .expect("it is JSON")
    };
    assert_eq!(
        said(semconv::SYSTEM_INSTRUCTIONS),
        json!([{"type": "text", "content": "Be brief."}])
    );
    let input = json!([
        {"role": "user", "parts": [
            {"type": "text", "content": "Look!"},
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": ""},
            {"type": "uri", "mime_type": "image/png", "modality": "image", "uri": "https://a.example"},
        ]},
        {"role": "assistant", "parts": [
            {"type": "reasoning", "content": "Hm."},
            {"type": "tool_call", "id": "c1_0_1", "name": "look", "arguments": "{"},
        ]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1_0_1", "response": "seen"}]},
    ]);
    assert_eq!(said(semconv::INPUT_MESSAGES), input);
    let output = json!([{
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c2_0_0", "name": "look", "arguments": {"at": 1}}],
        "finish_reason": "tool_call",
    }]);
    assert_eq!(said(semconv::OUTPUT_MESSAGES), output);
}

#[tokio::test]
async fn traced_keeps_the_newest_messages_when_there_are_too_many() {
    let (kept, _listening) = Kept::listen();
    let entries = (0..3).map(|n| Entry::User(format!("{n}{}", "x".repeat(100_000)).into()));
    let model = ScriptedModel::new([Script::new()]);
    let traced = Traced {
        model,
        contents: Contents::Recorded,
    };
    complete(&traced, Request::from_entries(entries.collect()))
        .await
        .expect("a reply");
    let spans = kept.spans();
    let input = spans[0].values[semconv::INPUT_MESSAGES]
        .as_str()
        .expect("it is recorded");
    let input: Value = serde_json::from_str(input).expect("it is JSON");
    let begins: Vec<_> = (1..3)
        .map(|n| input[n]["parts"][0]["content"].as_str().map(|it| &it[..2]))
        .collect();
    assert_eq!(
        (input.as_array().map(Vec::len), begins),
        (Some(3), vec![Some("1x"), Some("2x")])
    );
    assert_eq!(
        input[0],
        json!({"role": "system", "parts": [{"type": "omitted"}]})
    );
}

#[tokio::test]
async fn traced_names_the_error_when_a_call_fails_or_is_dropped() {
    let (kept, _listening) = Kept::listen();
    let script = || Script::new().text("half an answer").usage(usage());
    let error = Error::new(ErrorKind::RateLimited, "too fast");
    let model = Traced {
        model: ScriptedModel::new([script().fail(error), script()]),
        contents: Contents::Recorded,
    };
    complete(&model, Request::new())
        .await
        .expect_err("the script fails");
    let mut stream = model.stream(Request::new());
    for _ in 0..3 {
        stream
            .next()
            .await
            .expect("the stream goes on")
            .expect("a chunk");
    }
    drop(stream);
    let endless = Traced::new(model_fn(
        info(),
        |_| Box::pin(futures_util::stream::empty()),
    ));
    complete(&endless, Request::new())
        .await
        .expect_err("the stream ends without a reply");
    let of = |name: &str| -> Vec<Value> {
        kept.spans()
            .iter()
            .map(|span| span.values.get(name).cloned().unwrap_or_default())
            .collect()
    };
    assert_eq!(
        of(semconv::ERROR_TYPE),
        ["rate_limited", "cancelled", "protocol"]
    );
    assert_eq!(of("otel.status_code"), ["ERROR", "ERROR", "ERROR"]);
    // The last one may not say what was said.
    let descriptions = [json!("too fast"), Value::Null, Value::Null];
    assert_eq!(of("otel.status_description"), descriptions);
    assert_eq!(
        of(semconv::RESPONSE_FINISH_REASONS),
        ["[\"error\"]", "[\"error\"]", "[\"error\"]"]
    );
    assert_eq!(of(semconv::USAGE_INPUT_TOKENS), [60, 0, 0]);
    let errors: Vec<Value> = kept
        .metrics()
        .iter()
        .map(|it| it.values[semconv::ERROR_TYPE].clone())
        .collect();
    assert_eq!(errors, ["rate_limited", "cancelled", "protocol"]);
}

#[tokio::test]
async fn traced_gives_the_inner_stream_when_nobody_listens() {
    let place = Arc::new(Mutex::new(0));
    let told = Arc::clone(&place);
    let address = |stream: &ChunkStream| std::ptr::from_ref(&**stream).cast::<()>() as usize;
    let model = Traced::new(model_fn(info(), move |_| {
        let stream: ChunkStream = Box::pin(futures_util::stream::iter([Err(Error::new(
            ErrorKind::Config,
            "x",
        ))]));
        *told.lock().expect("no panic") = address(&stream);
        stream
    }));
    let stream = model.stream(Request::new());
    assert_eq!(address(&stream), *place.lock().expect("no panic"));
    let (_kept, _listening) = Kept::listen();
    let stream = model.stream(Request::new());
    assert_ne!(address(&stream), *place.lock().expect("no panic"));
}

#[test]
fn spans_of_agents_and_tools_hold_their_names_when_opened() {
    let (kept, _listening) = Kept::listen();
    let agent = agent_span("clerk", "a1", "t1", &ModelInfo::new("anthropic/claude-x"));
    let _inside = agent.enter();
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let call = Call::new(id, "look", "{\"at\":1}");
    let result = CallResult::new(Status::TimedOut, "too slow");
    record_result(
        &tool_span(&call, Contents::Omitted),
        &result,
        Contents::Omitted,
    );
    record_result(
        &tool_span(&call, Contents::Recorded),
        &CallResult::ok("seen"),
        Contents::Recorded,
    );
    record_usage(
        &agent,
        &Usage {
            input_uncached: 3,
            output: 4,
            ..Usage::default()
        },
    );
    let [agent, failed, seen] = &kept.spans()[..] else {
        panic!("three spans: {kept:?}")
    };
    let expect = json!({
        "otel.name": "invoke_agent clerk",
        "otel.kind": "internal",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.agent.name": "clerk",
        "gen_ai.agent.id": "a1",
        "gen_ai.conversation.id": "t1",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
    });
    check(agent, 0, expect);
    let tool = |more: Value| {
        let mut fields = json!({
            "otel.name": "execute_tool look",
            "otel.kind": "internal",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": "c1_0_0",
        });
        for (name, value) in more.as_object().expect("an object") {
            fields[name] = value.clone();
        }
        fields
    };
    check(
        failed,
        1,
        tool(json!({"error.type": "timed_out", "otel.status_code": "ERROR"})),
    );
    let contents =
        json!({"gen_ai.tool.call.arguments": "{\"at\":1}", "gen_ai.tool.call.result": "seen"});
    check(seen, 1, tool(contents));
}
