//! Peers far away that speak A2A as nobody should: each is an error in words, within the limits of time and size, and what it was
//! asked is cancelled when nobody waits for it any more.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use adjutant_agent::{Agent, Outcome, RunResult};
use adjutant_llm::Script;
use adjutant_runtime::Engine;
use adjutant_tool::{Answer, Cancel};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::{Duration, Instant, sleep, timeout},
};

use crate::stage::{Stage, calls, lead, one, still, with};

/// What is done with a request.
enum Act {
    /// An answer with a status.
    Say(u16, Value),
    /// The result of the request.
    Give(Value),
    /// These bytes, and the end.
    Raw(String),
    /// This head, and bytes without end: at once, or one each second.
    Flood(&'static str),
    Drip(&'static str),
    /// Nothing.
    Hold,
}

use Act::{Drip, Flood, Give, Hold, Raw, Say};

/// What a server does: the method, the request, and how many of that method came before.
type Does = Box<dyn Fn(&str, &Value, usize) -> Option<Act> + Send + Sync>;

/// A server of a row.
struct Far {
    url: String,
    /// The methods that it was asked, and the answers that it was given.
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    /// Told of each of them.
    told: Arc<Notify>,
    /// The most bytes that one connection took.
    took: Arc<AtomicUsize>,
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

fn task(state: &str, more: Value) -> Value {
    with(
        json!({"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}}),
        more,
    )
}

fn asks(id: &str, parts: Value) -> Value {
    let message = json!({"messageId": id, "role": "ROLE_AGENT", "parts": parts});
    task(
        "",
        json!({"status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": message}}),
    )
}

fn said(text: &str) -> Value {
    task(
        "COMPLETED",
        json!({"artifacts": [{"artifactId": "a", "parts": [{"text": text}]}]}),
    )
}

fn card(url: &str) -> Value {
    json!({"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
}

/// A good server, but for what this says.
async fn far(does: Does) -> Far {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let far = Far {
        url,
        heard: Arc::default(),
        told: Arc::default(),
        took: Arc::default(),
    };
    let (heard, told, took, does) = (
        Arc::clone(&far.heard),
        Arc::clone(&far.told),
        Arc::clone(&far.took),
        Arc::new(does),
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (heard, told, took, does) = (
                Arc::clone(&heard),
                Arc::clone(&told),
                Arc::clone(&took),
                Arc::clone(&does),
            );
            tokio::spawn(async move {
                let request = request(&mut stream).await?;
                let method = request["method"].as_str().unwrap_or("card").to_owned();
                let before = {
                    let mut heard = heard.lock().expect("nobody panicked");
                    heard.push((method.clone(), request["params"]["message"].clone()));
                    heard.iter().filter(|(it, _)| *it == method).count() - 1
                };
                told.notify_one();
                let act = does(&method, &request, before).unwrap_or_else(|| usual(&method));
                took.fetch_max(act_out(&mut stream, act, &request).await, Relaxed);
                Some(())
            });
        }
    });
    far
}

fn usual(method: &str) -> Act {
    match method {
        "card" => Say(200, card("/rpc")),
        "SendMessage" => Give(json!({"task": task("WORKING", json!({}))})),
        "GetTask" => Give(said("fine")),
        _ => Give(task("CANCELED", json!({}))),
    }
}

/// The body of a request; `null` without one.
async fn request(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if head.starts_with("GET") {
            return Some(Value::Null);
        }
        if let Ok(value) = serde_json::from_str(body) {
            return Some(value);
        }
    }
}

/// Does it, and tells how many bytes were taken.
async fn act_out(stream: &mut TcpStream, act: Act, request: &Value) -> usize {
    let (head, pause) = match act {
        Hold => return std::future::pending().await,
        Flood(head) => (head, None),
        Drip(head) => (head, Some(Duration::from_secs(1))),
        Raw(bytes) => return send(stream, bytes.as_bytes()).await,
        Say(status, value) => {
            let body = value.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            return send(stream, (head + &body).as_bytes()).await;
        }
        Give(result) => {
            let told = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            return Box::pin(act_out(stream, Say(200, told), request)).await;
        }
    };
    let (mut taken, bytes) = (
        send(stream, format!("{head}\r\n").as_bytes()).await,
        vec![b' '; 1 << 16],
    );
    loop {
        let bytes = if pause.is_some() {
            &bytes[..1]
        } else {
            &bytes[..]
        };
        if stream.write_all(bytes).await.is_err() {
            return taken;
        }
        taken += bytes.len();
        match pause {
            Some(pause) => sleep(pause).await,
            None => tokio::task::yield_now().await,
        }
    }
}

async fn send(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    // A caller that is gone hears nothing.
    let _gone = stream.write_all(bytes).await;
    bytes.len()
}

/// An agent that may ask it, whose call may take a thousand seconds.
async fn caller(far: &Far, scripts: impl IntoIterator<Item = Script>) -> (Stage, Engine) {
    let stage = Stage::new(scripts);
    let toolboxes = json!([{"name": "peers", "timeout": "1000s"}]);
    let peers = json!([{"name": "far", "description": "Far.", "a2a": far.url}]);
    let engine = stage
        .engine(still(with(
            one(json!({"toolboxes": toolboxes})),
            json!({"peers": peers}),
        )))
        .await;
    (stage, engine)
}

fn ask() -> [Script; 2] {
    calls("peer", json!({"peer": "far", "prompt": "which"}))
}

/// What a run came to, in words: what waits, or the result of its call.
fn came(ran: &RunResult) -> String {
    match ran.calls.first() {
        _ if !ran.pauses().is_empty() => {
            let asked: Vec<String> = ran
                .pauses()
                .iter()
                .map(|pause| format!("{:?}", pause.ask.prompt))
                .collect();
            format!("waits: {}", asked.join(", "))
        }
        Some(call) => {
            let (status, text) = (call.result.status, call.result.text());
            let short = if text.len() < 300 {
                text
            } else {
                format!("{}…{}", &text[..24], &text[text.len() - 60..])
            };
            format!("{status:?}: {short}")
        }
        None => format!("no call: {:?}", ran.outcome),
    }
}

fn on(
    method: &'static str,
    act: impl Fn(&Value, usize) -> Option<Act> + Send + Sync + 'static,
) -> Does {
    Box::new(move |asked, request, before| {
        if asked == method {
            act(request, before)
        } else {
            None
        }
    })
}

fn always(method: &'static str, act: fn() -> Act) -> Does {
    on(method, move |_, _| Some(act()))
}

type Row = (&'static str, Does, &'static str);

/// A server that is not asked.
fn cards() -> Vec<Row> {
    let older = json!([{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    let none = "Failed: far was not called: it speaks no A2A 1.0 over JSON-RPC";
    vec![
        (
            "a card that says nothing",
            always("card", || Say(200, json!({}))),
            none,
        ),
        (
            "an older version",
            on("card", move |_, _| {
                Some(Say(200, json!({"supportedInterfaces": older})))
            }),
            none,
        ),
        (
            "silence at the card",
            always("card", || Hold),
            "Failed: far was not called: its card: operation timed out",
        ),
        (
            "a card without end",
            always("card", || Flood(OK)),
            "Failed: far was not called: its card: it has more than 16777216 bytes",
        ),
        (
            "a card that is a page",
            always("card", || {
                Raw(format!("{OK}connection: close\r\n\r\n<html>"))
            }),
            "Failed: far was not called: its card: no JSON: expected value at line 1 column 1",
        ),
        (
            "a card elsewhere",
            always("card", || {
                Raw(
                    "HTTP/1.1 302 X\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"
                        .into(),
                )
            }),
            "Failed: far was not called: its card: status 302 Found",
        ),
        (
            "a card that leads into a network",
            always("card", || Say(200, card("http://169.254.169.254/latest"))),
            "Failed: far was not called: its card names another host, \"169.254.169.254\"",
        ),
    ]
}

/// A server whose answer is lost, or none.
fn answers() -> Vec<Row> {
    vec![
        (
            "a redirect into a network",
            always("SendMessage", || {
                Raw("HTTP/1.1 307 X\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".into())
            }),
            "Failed: far refuses: status 307 Temporary Redirect",
        ),
        (
            "an answer without end",
            always("SendMessage", || Flood(OK)),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: it has more than 16777216 bytes",
        ),
        (
            "events without end",
            always("SendMessage", || {
                Flood("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
            }),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: it has more than 16777216 bytes",
        ),
        (
            "a gigabyte by its own word",
            always("SendMessage", || {
                Drip("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n")
            }),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: it has more than 16777216 bytes",
        ),
        (
            "an answer that drips",
            always("SendMessage", || Drip(OK)),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: operation timed out",
        ),
        (
            "silence",
            always("SendMessage", || Hold),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: operation timed out",
        ),
        (
            "an answer that is cut off",
            always("SendMessage", || {
                Raw(format!("{OK}content-length: 100\r\n\r\n{{\"jsonrpc\""))
            }),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: end of file before message length reached",
        ),
        (
            "an answer to another request",
            always("SendMessage", || {
                Say(
                    200,
                    json!({"jsonrpc": "2.0", "id": 4_711, "result": {"task": {"id": "t"}}}),
                )
            }),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: it answers another request",
        ),
    ]
}

/// A server that answers what is no task.
fn refusals() -> Vec<Row> {
    vec![
        (
            "wrong types",
            always("SendMessage", || Give(json!({"task": 1}))),
            "OutcomeUnknown: outcome unknown: far: it answered what cannot be read: invalid type: integer `1`, expected struct Task",
        ),
        (
            "a task without a name",
            always("SendMessage", || Give(json!({"task": {}}))),
            "OutcomeUnknown: outcome unknown: far: it answered with a task that has no id, or one that is too long",
        ),
        (
            "a task with a long name",
            always("SendMessage", || {
                Give(json!({"task": {"id": "t".repeat(1_001)}}))
            }),
            "OutcomeUnknown: outcome unknown: far: it answered with a task that has no id, or one that is too long",
        ),
        (
            "nothing there",
            always("SendMessage", || Say(404, json!({}))),
            "Failed: far refuses: status 404 Not Found",
        ),
        (
            "an answer at once",
            always("SendMessage", || {
                Give(json!({"message": {"parts": [{"text": "So."}]}}))
            }),
            "Ok: So.",
        ),
        (
            "no access",
            always("SendMessage", || Say(401, json!({}))),
            "Denied: far refuses the token: status 401 Unauthorized",
        ),
        (
            "too many requests",
            always("SendMessage", || Say(429, json!({}))),
            "Failed: far takes no more requests: status 429 Too Many Requests",
        ),
        (
            "too many requests, for a while",
            on("SendMessage", |_, before| {
                (before < 3).then(|| Say(429, json!({})))
            }),
            "Ok: fine",
        ),
        (
            "no service",
            always("SendMessage", || Say(503, json!({}))),
            "OutcomeUnknown: outcome unknown: far: it was asked, and its answer was lost: status 503 Service Unavailable",
        ),
        (
            "an error without a code",
            always("SendMessage", || {
                Say(200, json!({"error": {"message": "no\u{1b}[2J"}}))
            }),
            "Failed: far refuses: no [2J",
        ),
        (
            "an error that is a text",
            always("SendMessage", || Say(200, json!({"error": "no"}))),
            "Failed: far refuses: no",
        ),
        (
            "an error that says nothing",
            always("SendMessage", || Say(200, json!({"error": {}}))),
            "Failed: far refuses: it does not say why",
        ),
        (
            "a huge answer",
            always("SendMessage", || {
                Give(json!({"message": {"parts": [{"text": "x".repeat(9 << 20)}]}}))
            }),
            "Ok: xxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[cut: what follows is too long]",
        ),
    ]
}

/// A server whose task is odd.
fn tasks() -> Vec<Row> {
    let odd = |states: &'static [&str]| {
        on("GetTask", move |_, before| {
            states.get(before).map(|state| Give(task(state, json!({}))))
        })
    };
    vec![
        (
            "another task",
            always("GetTask", || {
                Give(json!({"id": "u", "status": {"state": "TASK_STATE_COMPLETED"}}))
            }),
            "Failed: far answered with another task; far was told to stop",
        ),
        (
            "wrong types at a look",
            always("GetTask", || Give(json!({"id": [], "status": "x"}))),
            "Failed: far answered what cannot be read: invalid type: sequence, expected a string; far was told to stop",
        ),
        (
            "states that go backwards and are unknown",
            odd(&["WORKING", "SUBMITTED", "DANCING", "UNSPECIFIED", "WORKING"]),
            "Ok: fine",
        ),
        (
            "a task that is turned down",
            always("GetTask", || Give(task("REJECTED", json!({})))),
            "Failed: far does not do that.",
        ),
        (
            "work without end",
            always("GetTask", || Give(task("WORKING", json!({})))),
            "TimedOut: the tool did not end within 1000s and was given up; it may have taken effect",
        ),
        (
            "looks that fail for a while",
            on("GetTask", |_, before| {
                let cut = || Raw(format!("{OK}content-length: 100\r\n\r\n{{"));
                [
                    cut(),
                    Say(503, json!({})),
                    Say(429, json!({})),
                    Flood(OK),
                    Raw(String::new()),
                    Hold,
                ]
                .into_iter()
                .nth(before)
            }),
            "Ok: fine",
        ),
        (
            "looks that fail for ever",
            always("GetTask", || Say(500, json!({}))),
            "OutcomeUnknown: outcome unknown: far: it was lost, and did not come back in 60 s: status 500 Internal Server Error; far was told to stop",
        ),
        (
            "no access at a look, nor at the end",
            Box::new(|method, _, _| {
                ["GetTask", "CancelTask"]
                    .contains(&method)
                    .then(|| Say(401, json!({})))
            }),
            "Denied: far refuses the token: status 401 Unauthorized; far has not said that it stops",
        ),
        (
            "a huge artifact",
            always("GetTask", || Give(said(&"x".repeat(9 << 20)))),
            "Ok: xxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[cut: what follows is too long]",
        ),
        (
            "a question that says nothing",
            always("GetTask", || Give(asks("", json!([{"text": " \n"}])))),
            "waits: \"far waits for an answer, and does not say what it asks\"",
        ),
        (
            "a huge question",
            always("GetTask", || {
                Give(asks(
                    &"q".repeat(9 << 20),
                    json!([{"data": {"pause": "p".repeat(9_000)}}]),
                ))
            }),
            "waits: \"far waits for an answer, and does not say what it asks\"",
        ),
        (
            "many questions at once",
            always("GetTask", || {
                Give(asks(
                    "q",
                    Value::from(vec![json!({"data": {"pause": ""}}); 100_000]),
                ))
            }),
            "Failed: far asks more than 100 things at once; far was told to stop",
        ),
    ]
}

/// Longer than all limits of a call together; nobody waits for it in fact.
const LONGEST: Duration = Duration::from_secs(10_000);

#[tokio::test(start_paused = true)]
async fn peer_far_away_that_is_hostile_is_an_error_in_words() {
    let mut wrong = Vec::new();
    for (what, does, expect) in [cards(), answers(), refusals(), tasks()]
        .into_iter()
        .flatten()
    {
        let far = far(does).await;
        let (_stage, engine) = caller(&far, ask()).await;
        let ran = timeout(LONGEST, lead(&engine).run("Hello.")).await;
        let came = ran.map_or_else(
            |_| "no end".to_owned(),
            |ran| came(&ran.expect("the run finishes")),
        );
        // What a model is shown is less.
        let came = came.replace(
            "\n[output cut: the first 100000 of 4194235 bytes are shown]",
            "",
        );
        if came != expect {
            wrong.push(format!("{what}\n  came:   {came:?}\n  expect: {expect:?}"));
        }
        // What stands in the buffers of the system was not read.
        let took = far.took.load(Relaxed);
        assert!(took < 32 << 20, "{what}: {took} bytes");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn cancel_is_heard_whatever_a_peer_far_away_does() {
    let rows: [(&str, Does, bool); 5] = [
        ("card", always("card", || Hold), false),
        ("SendMessage", always("SendMessage", || Drip(OK)), false),
        ("GetTask", always("GetTask", || Hold), true),
        (
            "GetTask",
            always("GetTask", || Give(task("WORKING", json!({})))),
            true,
        ),
        (
            "GetTask",
            always("GetTask", || Give(asks("q", json!([{"text": "Which?"}])))),
            true,
        ),
    ];
    for (at, (method, does, is_told)) in rows.into_iter().enumerate() {
        let far = far(does).await;
        let (_stage, engine) = caller(&far, ask()).await;
        // Somebody thinks about the answer for ever.
        let agent = lead(&engine).responder(|_, _| std::future::pending());
        let cancel = Cancel::new();
        let running = tokio::spawn(agent.run("Hello.").cancel(cancel.clone()).into_future());
        while !far
            .heard
            .lock()
            .expect("nobody panicked")
            .iter()
            .any(|(it, _)| *it == method)
        {
            far.told.notified().await;
        }
        sleep(Duration::from_millis(10)).await;
        let since = Instant::now();
        cancel.cancel();
        let ran = running.await.expect("no panic").expect("the run ends");
        assert!(
            matches!(ran.outcome, Outcome::Cancelled { .. }),
            "{at}: {:?}",
            ran.outcome
        );
        assert!(
            since.elapsed() < Duration::from_secs(2),
            "{at}: {:?}",
            since.elapsed()
        );
        let heard = far
            .heard
            .lock()
            .expect("nobody panicked")
            .iter()
            .any(|(it, _)| it == "CancelTask");
        assert_eq!(heard, is_told, "{at}: {}", came(&ran));
    }
}

#[tokio::test(start_paused = true)]
async fn peer_far_away_that_asks_without_end_is_answered_a_hundred_times() {
    let does = on("GetTask", |_, before| {
        Some(Give(asks(
            &format!("q{before}"),
            json!([{"text": "Which?"}]),
        )))
    });
    let far = far(does).await;
    let (_stage, engine) = caller(&far, ask()).await;
    let agent = lead(&engine).responder(async |_, _| Some(Answer::give(json!("red"))));
    let ran = agent.run("Hello.").await.expect("the run finishes");
    assert_eq!(
        came(&ran),
        "Failed: far has asked 100 times, and asks on; far was told to stop"
    );
}

/// Answers what waits.
async fn answered(agent: &Agent, with: &str) -> RunResult {
    let answers = agent
        .log()
        .pauses()
        .iter()
        .map(|pause| pause.answer(with))
        .collect::<Vec<_>>();
    agent.resume(answers).await.expect("it goes on")
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_peer_far_away_are_asked_here_whatever_its_task_is_by_then() {
    // Two, one behind the other, and its end comes before the answer to the second one does.
    let far = far(Box::new(|method, _, before| match (method, before) {
        // The first one is told once more behind its answer.
        ("GetTask", 0 | 1) => Some(Give(asks("q", json!([{"text": "Which?"}])))),
        ("GetTask", 2) => Some(Give(asks("r", json!([{"text": "Why?"}])))),
        ("SendMessage", 2) => Some(Say(
            200,
            json!({"error": {"code": -32004, "message": "the task is over"}}),
        )),
        _ => None,
    }))
    .await;
    let (_stage, engine) = caller(&far, ask()).await;
    let agent = lead(&engine);
    let ran = agent.run("Hello.").await.expect("it waits");
    assert_eq!(came(&ran), "waits: \"far asks: Which?\"");
    assert_eq!(
        came(&answered(&agent, "red").await),
        "waits: \"far asks: Why?\""
    );
    assert_eq!(came(&answered(&agent, "so").await), "Ok: fine");
    let heard = far.heard.lock().expect("nobody panicked");
    let sent: Vec<&str> = heard
        .iter()
        .filter_map(|(_, message)| message["parts"][0]["text"].as_str())
        .collect();
    assert_eq!(sent, ["which", "red", "so"]);
}

#[tokio::test(start_paused = true)]
async fn task_far_away_goes_on_when_somebody_else_takes_the_run() {
    let far = far(on("GetTask", |_, before| {
        (before < 40).then(|| Give(task("WORKING", json!({}))))
    }))
    .await;
    let (_stage, engine) = caller(&far, ask()).await;
    let agent = lead(&engine);
    let running = tokio::spawn(agent.run("Hello.").into_future());
    while !far
        .heard
        .lock()
        .expect("nobody panicked")
        .iter()
        .any(|(it, _)| it == "GetTask")
    {
        far.told.notified().await;
    }
    let other = agent.take_over();
    other.log().open().await.expect("it is taken");
    // What is to be recorded shows the first one that it has lost its log.
    agent.queue().steer("And quickly.").expect("it is heard");
    running
        .await
        .expect("no panic")
        .expect_err("its log is another's");
    assert_eq!(
        came(&other.resume(Vec::new()).await.expect("it goes on")),
        "Ok: fine"
    );
    let heard = far.heard.lock().expect("nobody panicked");
    let count = |method| heard.iter().filter(|(it, _)| it == method).count();
    assert_eq!((count("SendMessage"), count("CancelTask")), (1, 0));
}
