//! One cell of the table: an agent, a server that breaks, a run, and a second run in the same session.

use std::{sync::Arc, time::Duration};

use adjutant::{
    Agent, EventKind, Model, Outcome, RunBuilder, RunResult,
    agent::Failure,
    llm::{Entry, Script, ScriptedModel, Transcript},
    providers::Timeouts,
    tool,
};
use adjutant_testing::{Fault, FaultPosition, Loopback, Paused, Setup};
use adjutant_tests::Wire;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What is said when nothing goes wrong: long enough to be cut in the middle, with letters of several bytes.
const SENTENCE: &str = "Grüße aus Köln: Die Brücke über den großen Fluß ist seit heute früh für alle geöffnet, auch für \
                        Fußgänger, Lastenräder und Züge; nur die östliche Zufahrt bleibt bis zum Frühjahr geschlossen.";
/// A byte of the body that stands behind several deltas, on every wire.
const MIDDLE: u64 = 4_000;
/// How long an answer may pause where the pause is the hazard.
const SHORT: Duration = Duration::from_millis(200);

/// Everything that may go wrong; faults of the server stand under their own names.
pub(crate) const HAZARDS: [&str; 28] = [
    "none",
    "unreachable",
    "tls, refused",
    "tls, unanswered",
    "hangup",
    "status 401",
    "status 404",
    "status 429",
    "status 500",
    "status overloaded",
    "html",
    "cut_at",
    "stall_at",
    "stall_at the start",
    "endless_frame",
    "garbage",
    "split_every",
    "invalid_utf8",
    "error_after",
    "missing_finish",
    "duplicate_usage",
    "slow_close",
    "pause",
    "content_type",
    "arguments that are no json",
    "large result",
    "large result, whole",
    "tool that never returns",
];

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Says four megabytes.
#[tool]
fn shout() -> String {
    "a".repeat(4_000_000)
}

/// Never ends.
#[tool]
async fn hang() -> String {
    std::future::pending().await
}

/// Makes the hazard happen to the first run of a session, and tells what came of it.
pub(crate) async fn perform(hazard: &str, wire: Wire) -> String {
    let call = |name: &str| Script::new().call(name, json!({}));
    match hazard {
        "none" => broken(wire, Timeouts::new(), |it| it).await,
        "unreachable" => unreachable(wire).await,
        "tls, refused" => tls_refused(wire).await,
        "tls, unanswered" => tls_unanswered(wire).await,
        "hangup" => fault(wire, Fault::Hangup).await,
        "status 401" => fault(wire, Fault::auth_error()).await,
        "status 404" => fault(wire, Fault::not_found()).await,
        "status 429" => fault(wire, Fault::rate_limited(7)).await,
        "status 500" => fault(wire, Fault::server_error()).await,
        "status overloaded" => fault(wire, Fault::overload_error()).await,
        "html" => fault(wire, Fault::Html).await,
        "cut_at" => fault(wire, Fault::CutAt(MIDDLE)).await,
        "stall_at" => stalled(wire, MIDDLE).await,
        "stall_at the start" => stalled(wire, 0).await,
        "endless_frame" => fault(wire, Fault::EndlessFrame).await,
        "garbage" => {
            let bytes = b"data: {garbage\n\n".to_vec().into();
            fault(
                wire,
                Fault::Garbage {
                    at: FaultPosition::Frame(9),
                    bytes,
                },
            )
            .await
        }
        "split_every" => fault(wire, Fault::SplitEvery(1)).await,
        "invalid_utf8" => {
            // In pieces, as a model speaks: what came before the broken piece was said.
            let broken_byte = Fault::InvalidUtf8 { at: MIDDLE };
            let breaks = |it: Setup| it.fault(0, broken_byte).fault(0, Fault::SplitEvery(64));
            broken(wire, Timeouts::new(), breaks).await
        }
        "error_after" => fault(wire, Fault::ErrorAfter { frames: 9 }).await,
        "missing_finish" => fault(wire, Fault::MissingFinish).await,
        "duplicate_usage" => fault(wire, Fault::DuplicateUsage).await,
        "slow_close" => fault(wire, Fault::SlowClose).await,
        "pause" => {
            let pause = Fault::Pause {
                before: Paused::Usage,
                times: 2,
                every: Duration::from_millis(20),
                bytes: ": keep-alive\n\n".into(),
            };
            fault(wire, pause).await
        }
        "content_type" => fault(wire, Fault::ContentType("text/plain".into())).await,
        "arguments that are no json" => {
            let script = Script::new().call_raw("add", "two and three, please");
            called(wire, script, |agent| agent).await
        }
        "large result" => called(wire, call("shout"), |agent| agent).await,
        "large result, whole" => {
            called(wire, call("shout"), |agent| {
                agent.calls(|calls| calls.max_result_bytes = 20_000_000)
            })
            .await
        }
        "tool that never returns" => {
            called(wire, call("hang"), |agent| {
                agent.calls(|calls| calls.timeout = Some(SHORT))
            })
            .await
        }
        other => format!("no hazard is called {other:?}"),
    }
}

async fn fault(wire: Wire, fault: Fault) -> String {
    broken(wire, Timeouts::new(), |it| it.fault(0, fault)).await
}

/// A server that falls silent at a byte of its first answer, and a model that soon gives up.
async fn stalled(wire: Wire, at: u64) -> String {
    let short = Timeouts::new().first_byte(SHORT).idle(SHORT);
    broken(wire, short, |it| it.fault(0, Fault::StallAt(at))).await
}

/// A server whose first answer is broken, and a model that waits so long for it.
async fn broken(wire: Wire, timeouts: Timeouts, breaks: impl FnOnce(Setup) -> Setup) -> String {
    let server = breaks(Loopback::setup(model([])))
        .start()
        .await
        .expect("the server starts");
    let broken = wire.model_at(&wire.base_url(&server), timeouts);
    both_runs(&agent(broken), wire.model(&server)).await
}

/// A model that calls a tool in the first run.
async fn called(wire: Wire, script: Script, with: impl FnOnce(Agent) -> Agent) -> String {
    let server = Loopback::start(model([script]))
        .await
        .expect("the server starts");
    let model = wire.model(&server);
    both_runs(&with(agent(Arc::clone(&model))), model).await
}

/// The second run finds a server where the first one found none.
async fn unreachable(wire: Wire) -> String {
    let gone = Loopback::start(model([])).await.expect("the server starts");
    let nowhere = wire.model(&gone);
    let addr = gone.addr();
    drop(gone);
    // The task of the server ends when the runtime comes to it; until then its port is open.
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    moved(wire, nowhere).await
}

/// A server that speaks no TLS says so, as most do.
async fn tls_refused(wire: Wire) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let addr = listener.local_addr().expect("the port has a number");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut hello = [0; 4_096];
            let read = socket.read(&mut hello).await;
            let told = socket
                .write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
                .await;
            assert!(
                matches!(read, Ok(1..)) && told.is_ok(),
                "the client went away first"
            );
        }
    });
    moved(
        wire,
        wire.model_at(&format!("https://{addr}"), Timeouts::new()),
    )
    .await
}

/// A server that speaks no TLS waits for a request that it understands.
async fn tls_unanswered(wire: Wire) -> String {
    let plain = Loopback::start(model([])).await.expect("the server starts");
    moved(
        wire,
        wire.model_at(
            &format!("https://{}", plain.addr()),
            Timeouts::new().connect(SHORT),
        ),
    )
    .await
}

/// The first run asks a model that cannot answer, the second one a server that can.
async fn moved(wire: Wire, first: Arc<dyn Model>) -> String {
    let server = Loopback::start(model([])).await.expect("the server starts");
    both_runs(&agent(first), wire.model(&server)).await
}

async fn both_runs(agent: &Agent, second: Arc<dyn Model>) -> String {
    let told = told(agent, &run(agent.run("What is new?")).await);
    finishes(&run(agent.run("What is new?").model(second)).await);
    told
}

/// The second run: the session can go on, and the server takes its history.
#[track_caller]
fn finishes(result: &RunResult) {
    assert_eq!(
        (ended(result).as_str(), result.text().as_str()),
        ("finished answer", SENTENCE),
        "the second run"
    );
}

/// A model that says these scripts first, and the sentence from then on.
fn model(first: impl IntoIterator<Item = Script>) -> ScriptedModel {
    let sentences = (0..3).map(|_| Script::new().text(SENTENCE).delta_chars(4));
    ScriptedModel::new(first.into_iter().chain(sentences))
}

fn agent(model: Arc<dyn Model>) -> Agent {
    Agent::new(model).tool(add).tool(shout).tool(hang)
}

/// Runs to the end and gives the result; checks that the end is told once, and last.
async fn run(run: RunBuilder) -> RunResult {
    let mut running = run.stream().expect("the session is free");
    let mut results = Vec::new();
    while let Some(event) = running.next().await {
        assert!(results.is_empty(), "an event after the last one: {event:?}");
        if let EventKind::RunFinished { result } = event.kind {
            results.push(result);
        }
    }
    assert_eq!(results.len(), 1, "how often the end was told");
    RunResult::clone(&results[0])
}

/// What came of the first run.
fn told(agent: &Agent, result: &RunResult) -> String {
    let history = agent.log().transcript();
    let bytes = serde_json::to_vec(&history).expect("a transcript is JSON");
    let read: Transcript =
        serde_json::from_slice(&bytes).expect("a transcript reads back, so it is valid");
    assert_eq!(read, history);
    let turns = history.iter().filter_map(|stored| match &stored.entry {
        Entry::Turn(turn) => Some(turn),
        _ => None,
    });
    let mut words = vec![ended(result)];
    for turn in turns {
        for (call, result) in turn.pairs() {
            // The history keeps what the model is not shown.
            let whole = if result.text().len() > 100_000 {
                ", whole"
            } else {
                ""
            };
            words.push(format!("{} {:?}{whole}", call.name, result.status));
        }
        let text = turn.reply().text();
        match text.as_str() {
            SENTENCE => words.push("said all".into()),
            "" => {}
            part if SENTENCE.starts_with(part) => words.push("said a part".into()),
            other => words.push(format!("said {other:?}")),
        }
    }
    words.join(" · ")
}

/// How a run ended.
fn ended(result: &RunResult) -> String {
    match &result.outcome {
        Outcome::Finished { why, .. } => format!("finished {why:?}").to_lowercase(),
        Outcome::Failed {
            failure: Failure::Model { error },
        } => {
            assert!(
                !error.message().is_empty() && !error.message().contains("not-a-real-key"),
                "{error}"
            );
            let status = error
                .details()
                .status
                .map(|status| format!(" {status}"))
                .unwrap_or_default();
            let again = if error.is_retryable() { ", again" } else { "" };
            let wait = error
                .retry_after()
                .map(|wait| format!(" after {wait:?}"))
                .unwrap_or_default();
            format!("failed {:?}{status}{again}{wait}", error.kind())
        }
        other => format!("{other:?}"),
    }
}
