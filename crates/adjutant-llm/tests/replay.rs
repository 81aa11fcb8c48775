//! What was recorded is played back as it was; what was not recorded is an error that shows the difference.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use adjutant_llm::{
    Cassette, Chunk, ChunkStream, Collector, Custom, Ending, Entry, Error, ErrorKind, Exchange,
    Fingerprint, Model, ModelInfo, Options, Recorder, Replay, Request, Retry, Script,
    ScriptedModel, Thinking, ToolDecl, Usage, UserMessage, Warning, WarningKind, complete,
};
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A file in memory; the number is how many bytes there is room for.
#[derive(Debug, Clone, Default)]
struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    writes: Arc<Mutex<Vec<usize>>>,
    room: Option<usize>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().expect("nothing panics");
        if self.room.is_some_and(|room| all.len() + bytes.len() > room) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no room"));
        }
        all.extend_from_slice(bytes);
        self.writes
            .lock()
            .expect("nothing panics")
            .push(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().expect("nothing panics").clone())
            .expect("JSON is UTF-8")
    }

    fn cassette(&self) -> Cassette {
        Cassette::read(self.text().as_bytes()).expect("what was recorded loads")
    }
}

/// Everything the stream gives; it passes the grammar.
async fn drain(stream: ChunkStream) -> Vec<Result<Chunk, Error>> {
    let items: Vec<_> = stream.collect().await;
    let mut collector = Collector::default();
    for chunk in items.iter().flatten() {
        collector.push(chunk).expect("the grammar holds");
    }
    items
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, format!("{kind:?}"))
}

/// What asking for this ends in, in a replay of a recording of those.
async fn mismatch(recorded: &[Request], asked: Request) -> String {
    let exchange = |request: &Request| Exchange::new(request.clone(), Vec::new(), Ending::Cut);
    let model = Replay::new(Cassette::new(
        ModelInfo::new("a/b"),
        recorded.iter().map(exchange).collect(),
    ));
    let error = complete(&model, asked)
        .await
        .expect_err("that was not recorded");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.message().to_owned()
}

#[tokio::test]
async fn recorder_writes_one_line_when_a_stream_ends() {
    let sink = Sink::default();
    let scripts = [
        Script::new().text("Hello.").usage(Usage::default()),
        Script::new().fail(error(ErrorKind::Auth)),
    ];
    let model = Recorder::new(ScriptedModel::new(scripts), sink.clone());
    assert_eq!(sink.text(), "");
    let request = Request::new()
        .user("Hi!")
        .options(Options::default().header("authorization", "secret"));
    complete(&model, request.clone())
        .await
        .expect("it is answered");
    complete(&model, request.clone())
        .await
        .expect_err("it is refused");

    let text = sink.text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        *sink.writes.lock().expect("nothing panics"),
        text.split_inclusive('\n').map(str::len).collect::<Vec<_>>()
    );
    assert!(text.ends_with('\n') && !text.contains("secret"));
    let info = serde_json::to_value(model.info()).expect("an info can be stored");
    assert_eq!(lines[0], json!({"cassette": 1, "info": info}));
    let stored = serde_json::to_value(&request).expect("a request can be stored");
    let usage = serde_json::to_value(Usage::default()).expect("a usage can be stored");
    let limits = json!({"requests_left": null, "tokens_left": null, "reset_after": null});
    let block = json!({"type": "text", "text": "Hello."});
    let expect = json!({
        "fingerprint": Fingerprint::from_request(&request).to_string(),
        "request": stored,
        "chunks": [
            {"chunk": "start", "attempt": 0, "model": "scripted/model", "limits": limits, "warnings": []},
            {"chunk": "open", "block": 0, "kind": {"type": "text"}},
            {"chunk": "delta", "block": 0, "text": "Hello."},
            {"chunk": "close", "block": 0, "content": block},
            {"chunk": "usage", "usage": usage, "raw": null},
            {"chunk": "done", "model": "scripted/model", "blocks": [block], "stop": "end", "usage": usage},
        ],
        "ending": {"type": "done"},
    });
    assert_eq!(lines[1], expect);
    let failed = serde_json::to_value(error(ErrorKind::Auth)).expect("an error can be stored");
    assert_eq!(
        (&lines[2]["ending"], lines.len()),
        (&json!({"type": "failed", "error": failed}), 3)
    );
}

#[tokio::test]
async fn recorder_keeps_what_came_when_a_stream_is_dropped() {
    let sink = Sink::default();
    let model = Recorder::new(
        ScriptedModel::new([Script::new().text("Hello.")]),
        sink.clone(),
    );
    let mut stream = model.stream(Request::new());
    let seen: Vec<_> = stream
        .by_ref()
        .take(2)
        .map(|item| item.expect("it goes well"))
        .collect()
        .await;
    drop(stream);
    assert_eq!(
        sink.cassette().exchanges,
        [Exchange::new(Request::new(), seen.clone(), Ending::Dropped)]
    );
    let played = drain(Replay::new(sink.cassette()).stream(Request::new())).await;
    let end = Error::new(
        ErrorKind::Timeout,
        "the recording ends here, because the stream was dropped",
    );
    assert_eq!(
        played,
        seen.into_iter()
            .map(Ok)
            .chain([Err(end)])
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn recorder_fails_when_it_cannot_write() {
    let scripts = (0..4).map(|_| Script::new().text("Hello.").usage(Usage::default()));
    let sink = Sink {
        room: Some(2_000),
        ..Sink::default()
    };
    let model = Recorder::new(ScriptedModel::new(scripts), sink.clone());
    complete(&model, Request::new())
        .await
        .expect("there is room for one");
    let full = complete(&model, Request::new().user("x".repeat(2_000)))
        .await
        .expect_err("there is no room");
    assert_eq!(
        (full.kind(), full.message()),
        (ErrorKind::Config, "could not write to a cassette: no room")
    );
    let later = complete(&model, Request::new())
        .await
        .expect_err("the recording has a gap");
    assert_eq!(later, full);
    assert_eq!(sink.cassette().exchanges.len(), 1);

    let scripts = [
        Script::new().fail(error(ErrorKind::Auth)),
        Script::new().text("never"),
    ];
    let scripted = Arc::new(ScriptedModel::new(scripts));
    let model = Recorder::new(
        Arc::clone(&scripted),
        Sink {
            room: Some(0),
            ..Sink::default()
        },
    );
    let kinds = [
        complete(&model, Request::new()).await,
        complete(&model, Request::new()).await,
    ];
    let kinds = kinds.map(|it| it.expect_err("nothing can be written").kind());
    assert_eq!(
        (kinds, scripted.requests().len()),
        ([ErrorKind::Auth, ErrorKind::Config], 1)
    );
}

#[tokio::test]
async fn replay_answers_in_order_when_a_request_was_recorded_often() {
    let sink = Sink::default();
    let model = Recorder::new(
        ScriptedModel::new(["a", "b", "c"].map(|text| Script::new().text(text))),
        sink.clone(),
    );
    let other = Request::new().user("other");
    for request in [Request::new(), other.clone(), Request::new()] {
        complete(&model, request).await.expect("it is answered");
    }
    let replay = Replay::new(sink.cassette());
    let mut texts = Vec::new();
    for request in [Request::new(), Request::new(), other] {
        texts.push(
            complete(&replay, request)
                .await
                .expect("it was recorded")
                .text(),
        );
    }
    assert_eq!((texts.concat().as_str(), replay.remaining()), ("acb", 0));
    let error = complete(&replay, Request::new())
        .await
        .expect_err("all is played");
    let expect = "the request was recorded 2 times and is asked once more; nothing is left to play";
    assert_eq!(error.message(), expect);
}

#[tokio::test(start_paused = true)]
async fn replay_retries_again_when_the_recorder_stood_inside() {
    let sink = Sink::default();
    let failed = Script::new()
        .usage(Usage::default())
        .fail(error(ErrorKind::Overloaded));
    let recorder = Recorder::new(
        ScriptedModel::new([failed, Script::new().text("ok")]),
        sink.clone(),
    );
    let live = drain(Retry::new(recorder).stream(Request::new())).await;
    assert_eq!(sink.cassette().exchanges.len(), 2);
    assert_eq!(
        drain(Retry::new(Replay::new(sink.cassette())).stream(Request::new())).await,
        live
    );
}

#[test]
fn fingerprint_stays_when_nothing_changes_the_answer() {
    let same = |one: &Request, other: &Request| {
        Fingerprint::from_request(one) == Fingerprint::from_request(other)
    };
    let tool = |schema: Value| ToolDecl {
        name: "t".into(),
        description: "d".into(),
        schema: Arc::new(schema),
    };
    let request = || {
        Request::new()
            .system("s")
            .user("u")
            .tools([tool(json!({"a": 1, "b": 2}))])
    };
    let options = |options: Options| request().options(options);
    assert!(same(
        &request(),
        &options(Options {
            cache_key: Some("k".into()),
            ..Options::default().header("a", "b")
        })
    ));
    let mut custom = request();
    custom.entries.push(Entry::Custom(Custom {
        kind: "k".into(),
        value: json!(1),
    }));
    custom.turn = Some(request().turn());
    assert!(same(&request(), &custom));
    let mut turn = request();
    turn.turn = Some(9);
    let mut attempt = request();
    attempt.attempt = 1;
    let others = [
        request().system("S"),
        request().user("u"),
        request().tools([tool(json!({"b": 2, "a": 1}))]),
        options(Options {
            temperature: Some(0.5),
            ..Options::default()
        }),
        turn,
        attempt,
    ];
    for other in others {
        assert!(!same(&request(), &other), "{other:?}");
    }
    let text = Fingerprint::from_request(&request()).to_string();
    assert_eq!(
        (text.len(), text.parse()),
        (32, Ok(Fingerprint::from_request(&request())))
    );
}

#[tokio::test]
async fn replay_shows_the_difference_when_a_request_was_not_recorded() {
    assert_eq!(
        mismatch(&[], Request::new()).await,
        "the request was not recorded; nothing is left to play"
    );
    let recorded = [
        Request::new().system("far").user("off"),
        Request::new().system("s").user("Hello, world"),
    ];
    let expect = "the request was not recorded; the nearest is exchange 2: \
                  at \"/entries/0/content/0/text\" recorded \"Hello, world\", asked \"Hello, World\"";
    assert_eq!(
        mismatch(&recorded, Request::new().system("s").user("Hello, World")).await,
        expect
    );
    let options = Request::new().options(Options {
        temperature: Some(0.5),
        ..Options::default()
    });
    let expect = "the request was not recorded; the nearest is exchange 1: \
                  at \"/options/temperature\" recorded nothing, asked 0.5";
    assert_eq!(mismatch(&[Request::new()], options).await, expect);
    let long = mismatch(
        &recorded[..1],
        Request::new()
            .system("x".repeat(100_000))
            .user("y".repeat(100_000)),
    )
    .await;
    assert!(long.len() < 1_000, "{} bytes", long.len());
}

/// A part of a reply: what kind, its text, and some JSON.
fn script() -> impl Strategy<Value = Script> {
    let part = (
        0..4,
        "\\PC{0,12}|[\u{0}-\u{1f}\"\\\\]{0,4}",
        any::<f64>(),
        any::<i64>(),
    );
    let parts = prop::collection::vec(part, 0..4);
    let ending = prop::option::of(prop::sample::select(vec![
        ErrorKind::Network,
        ErrorKind::Protocol,
    ]));
    (parts, ending, any::<(u64, u16, bool)>()).prop_map(
        |(parts, ending, (used, status, warned))| {
            let mut script = Script::new().delta_chars(2).usage(Usage {
                cache_read: used,
                output: used,
                ..Usage::default()
            });
            for (kind, text, float, integer) in parts {
                let value = json!({"z": float, "a": [integer, text, null], "": {"b": used}});
                let signed = Thinking {
                    signature: Some(text.as_str().into()),
                    ..Thinking::new(text.as_str())
                };
                script = match kind {
                    0 => script.text(text.as_str()),
                    1 => script.thinking(signed),
                    2 => script.call_raw("tool", text.as_str()),
                    _ => script.opaque("issuer", value),
                };
            }
            if warned {
                script = script.warning(Warning {
                    kind: WarningKind::FellBack,
                    message: "fell back".into(),
                });
            }
            let failed = |kind| {
                error(kind).with(|it| {
                    it.status = Some(status);
                    it.body = Some("{".into());
                    it.should_retry = Some(warned);
                })
            };
            ending
                .map(failed)
                .into_iter()
                .fold(script, |script, error| script.fail(error))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn replay_gives_the_same_chunks_whatever_was_recorded(
        scripts in prop::collection::vec((script(), prop::option::of(script())), 1..4),
        prompt in "\\PC{0,20}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let scripts: Vec<Script> = scripts.into_iter().map(|(script, voided)| {
                let cause = error(ErrorKind::Overloaded);
                voided.into_iter().fold(script, |script, voided| script.after_retracted(voided, cause.clone()))
            }).collect();
            let count = scripts.len();
            let sink = Sink::default();
            let model = Recorder::new(ScriptedModel::new(scripts), sink.clone());
            let mut request = Request::new();
            request.entries.push(Entry::User(UserMessage::text(prompt.as_str())));
            let mut live = Vec::new();
            for _ in 0..count {
                live.push(drain(model.stream(request.clone())).await);
            }
            let replay = Replay::new(sink.cassette());
            for live in live {
                prop_assert_eq!(drain(replay.stream(request.clone())).await, live);
            }
            prop_assert_eq!(replay.remaining(), 0);
            Ok(())
        })?;
    }
}
