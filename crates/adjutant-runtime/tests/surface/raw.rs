//! The routes byte by byte: who may ask, what is refused, how events are told.

use std::net::SocketAddr;

use adjutant_llm::{Gate, Script};
use adjutant_runtime::http::MAX_REQUEST_BYTES;
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::stage::{Over, Stage, TOKEN, stage};

/// A request, and its parts that may be wrong.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) host: Option<String>,
    pub(crate) token: Option<&'a str>,
    pub(crate) media: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) body: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(method: &'a str, path: &'a str) -> Self {
        let (host, token) = (None, Some(TOKEN));
        Self {
            method,
            path,
            host,
            token,
            media: "application/json",
            accept: "*/*",
            body: String::new(),
        }
    }

    pub(crate) fn json(self, body: Value) -> Self {
        Self {
            body: body.to_string(),
            ..self
        }
    }

    pub(crate) fn text(&self, address: SocketAddr) -> String {
        let host = self.host.clone().unwrap_or_else(|| address.to_string());
        let token = self
            .token
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        let Self {
            method,
            path,
            media,
            accept,
            body,
            ..
        } = self;
        let long = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{token}content-type: {media}\r\naccept: {accept}\r\n\
             content-length: {long}\r\nconnection: close\r\n\r\n{body}"
        )
    }
}

/// Asks, and reads until the other side has nothing more to say.
pub(crate) async fn ask(stage: &Stage, asked: Asked<'_>) -> Answer {
    ask_then(stage, asked, || ()).await
}

/// The same; something is done when the answer has begun.
pub(crate) async fn ask_then(stage: &Stage, asked: Asked<'_>, then: impl FnOnce()) -> Answer {
    let address = stage.client.address();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    // Who refuses a long request does not read all of it.
    let _ = stream.write_all(asked.text(address).as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = stream.read_buf(&mut bytes).await;
    then();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    let body = if head.contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Answer {
        status,
        head: head.to_owned(),
        body,
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((long, rest)) = body.split_once("\r\n") {
        let long = usize::from_str_radix(long, 16).expect("the length of a chunk");
        if long == 0 {
            return text;
        }
        text += rest.get(..long).expect("a whole chunk");
        body = rest.get(long + 2..).expect("the end of a chunk");
    }
    unreachable!("the last chunk is missing");
}

/// The names and contents of the frames of a stream.
pub(crate) fn frames(body: &str) -> Vec<(String, Value)> {
    let frame = |frame: &str| {
        let field = |name: &str| {
            frame
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let data = serde_json::from_str(field("data:")?).expect("a frame holds JSON");
        Some((field("event:")?.to_owned(), data))
    };
    body.split("\n\n").filter_map(frame).collect()
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("an answer holds JSON")
    }

    #[track_caller]
    fn is(&self, status: u16, kind: &str) {
        let error = self.json();
        assert_eq!(
            (self.status, error.pointer("/error/kind")),
            (status, Some(&json!(kind))),
            "{error}"
        );
        assert!(
            error
                .pointer("/error/message")
                .is_some_and(Value::is_string)
        );
        assert!(
            error
                .pointer("/error/is_retryable")
                .is_some_and(Value::is_boolean)
        );
    }
}

#[tokio::test]
async fn token_is_needed_for_everything_but_ready() {
    let stage = stage(Over::Http, []).await;
    let longer = format!("{TOKEN}x");
    for path in [
        "/v1/status",
        "/v1/sessions",
        "/v1/messages",
        "/v1/openapi.json",
        "/v1/nothing",
    ] {
        for token in [
            None,
            Some(""),
            Some("x"),
            Some(&longer[..]),
            Some(&TOKEN[1..]),
            Some(&longer[..5]),
        ] {
            let answer = ask(
                &stage,
                Asked {
                    token,
                    ..Asked::new("GET", path)
                },
            )
            .await;
            answer.is(401, "denied");
            assert!(
                answer.head.contains("www-authenticate: Bearer"),
                "{}",
                answer.head
            );
        }
    }
    for path in [
        "/v1/prompt",
        "/v1/prompt/stream",
        "/v1/resume",
        "/v1/object",
        "/v1/stop",
    ] {
        ask(
            &stage,
            Asked {
                token: Some("wrong"),
                ..Asked::new("POST", path).json(json!({}))
            },
        )
        .await
        .is(401, "denied");
    }
    let ready = ask(
        &stage,
        Asked {
            token: None,
            ..Asked::new("GET", "/v1/ready")
        },
    )
    .await;
    assert_eq!((ready.status, ready.json()), (200, json!({"ready": true})));
    assert!(!stage.server.is_finished());
}

#[tokio::test]
async fn host_must_be_a_name_of_loopback() {
    let stage = stage(Over::Http, []).await;
    let port = stage.client.address().port();
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        &format!("evil.example:{port}"),
        "",
    ] {
        let asked = Asked {
            host: Some(host.to_owned()),
            ..Asked::new("GET", "/v1/ready")
        };
        ask(&stage, asked).await.is(403, "denied");
    }
    for name in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        let asked = Asked {
            host: Some(format!("{name}:{port}")),
            ..Asked::new("GET", "/v1/ready")
        };
        assert_eq!(ask(&stage, asked).await.status, 200, "{name}");
    }
    let two = Asked {
        host: Some(format!("localhost:{port}\r\nhost: localhost:{port}")),
        ..Asked::new("GET", "/v1/ready")
    };
    assert_ne!(ask(&stage, two).await.status, 200);
}

#[tokio::test]
async fn page_of_another_origin_is_refused_with_the_token_too() {
    let stage = stage(Over::Http, []).await;
    let port = stage.client.address().port();
    // A header more, in the line of the media type.
    let asked = |path, origin: &str| {
        let media = format!("application/json\r\norigin: {origin}");
        (path, media)
    };
    let foreign = [
        "http://evil.example",
        "null",
        "",
        "https://localhost",
        "http://localhost",
        "http://localhost:1",
    ];
    let near = [
        format!("http://evil.example:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("localhost:{port}"),
    ];
    let two = format!("http://localhost:{port}\r\norigin: http://evil.example");
    for origin in foreign
        .into_iter()
        .chain(near.iter().map(String::as_str))
        .chain([&*two])
    {
        for (path, media) in [
            asked("/v1/status", origin),
            asked("/v1/ready", origin),
            asked("/v1/stop", origin),
        ] {
            let method = if path == "/v1/stop" { "POST" } else { "GET" };
            ask(
                &stage,
                Asked {
                    media: &media,
                    ..Asked::new(method, path)
                },
            )
            .await
            .is(403, "denied");
        }
    }
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        let (path, media) = asked("/v1/status", &format!("http://{name}:{port}"));
        assert_eq!(
            ask(
                &stage,
                Asked {
                    media: &media,
                    ..Asked::new("GET", path)
                }
            )
            .await
            .status,
            200,
            "{name}"
        );
    }
    assert!(!stage.server.is_finished());
}

#[tokio::test]
async fn announced_length_above_the_limit_is_refused_before_the_body_comes() {
    let stage = stage(Over::Http, []).await;
    let address = stage.client.address();
    for (path, long) in [
        ("/v1/prompt", MAX_REQUEST_BYTES as u64 + 1),
        ("/v1/object", 1 << 40),
        ("/v1/none", 1 << 62),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let text = Asked::new("POST", path).text(address);
        let text = text.replace(
            "content-length: 0",
            &format!("content-length: {long}\r\nexpect: 100-continue"),
        );
        stream
            .write_all(text.as_bytes())
            .await
            .expect("the head is sent");
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 413", "{path}");
    }
}

#[tokio::test]
async fn more_prompts_than_can_be_at_work_are_told_when_to_ask_again() {
    const ASKED: usize = 400;
    const AT_WORK: usize = 192;
    let gate = Gate::default();
    let stage = stage(
        Over::Http,
        (0..ASKED).map(|_| Script::new().text("Yes.").wait_at(0, &gate)),
    )
    .await;
    let prompt = |number: usize| {
        let path = if number.is_multiple_of(2) {
            "/v1/prompt"
        } else {
            "/v1/prompt/stream"
        };
        ask(
            &stage,
            Asked::new("POST", path)
                .json(json!({"prompt": "Hi.", "session": format!("s{number}")})),
        )
    };
    // All at once: none is reset, whatever the order in which they come.
    let mut answers: FuturesUnordered<_> = (0..ASKED).map(prompt).collect();
    for answer in answers
        .by_ref()
        .take(ASKED - AT_WORK)
        .collect::<Vec<_>>()
        .await
    {
        answer.is(503, "busy");
        assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    }
    assert_eq!(
        stage
            .client
            .status()
            .await
            .expect("there is room for it")
            .runs,
        AT_WORK as u64
    );
    gate.open();
    assert!(answers.all(async |answer| answer.status == 200).await);
    assert_eq!(
        stage
            .prompt("later", "Hi.")
            .await
            .expect("there is a place again")
            .text,
        "Yes."
    );
}

#[tokio::test]
async fn routes_and_methods_that_are_not_there_are_errors_in_json() {
    let stage = stage(Over::Http, []).await;
    for path in [
        "/",
        "/v1",
        "/v1/prompts",
        "/v2/ready",
        "/v1/sessions/a",
        "/v1/../../etc/passwd",
    ] {
        ask(&stage, Asked::new("GET", path))
            .await
            .is(404, "missing");
    }
    for path in ["/v2/ready", "/v0/prompt", "/v10/sessions"] {
        let answer = ask(&stage, Asked::new("GET", path)).await;
        assert!(
            answer
                .body
                .contains("there is no such route: this program speaks version 1, below /v1"),
            "{answer:?}"
        );
    }
    for (method, path) in [
        ("GET", "/v1/prompt"),
        ("POST", "/v1/status"),
        ("PUT", "/v1/sessions"),
        ("PUT", "/v1/stop"),
    ] {
        ask(&stage, Asked::new(method, path))
            .await
            .is(405, "invalid");
    }
}

#[tokio::test]
async fn requests_that_are_not_as_they_must_be_are_refused() {
    let stage = stage(Over::Http, []).await;
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "{",
        "null",
        "[]",
        "\"x\"",
        "{}",
        r#"{"prompt": 5}"#,
        r#"{"prompt": "a", "sesion": "b"}"#,
        &deep,
    ] {
        let asked = Asked {
            body: body.to_owned(),
            ..Asked::new("POST", "/v1/prompt")
        };
        ask(&stage, asked).await.is(400, "invalid");
    }
    let twice = [
        ("/v1/prompt", r#"{"prompt": "a", "prompt": "b"}"#, "/prompt"),
        (
            "/v1/object",
            r#"{"prompt": "a", "schema": {"properties": {"x": {}, "x": {}}}}"#,
            "/schema/properties/x",
        ),
    ];
    for (route, body, path) in twice {
        let answer = ask(
            &stage,
            Asked {
                body: body.to_owned(),
                ..Asked::new("POST", route)
            },
        )
        .await;
        assert!(
            answer
                .body
                .contains(&format!("a key appears twice in an object: {path}")),
            "{answer:?}"
        );
        answer.is(400, "invalid");
    }
    ask(
        &stage,
        Asked::new("POST", "/v1/object").json(json!({"prompt": "a"})),
    )
    .await
    .is(400, "invalid");
    ask(
        &stage,
        Asked::new("POST", "/v1/resume").json(json!({"answers": [5]})),
    )
    .await
    .is(400, "invalid");
    let query = [
        "/v1/messages?limit=x",
        "/v1/messages?limit=-1",
        "/v1/messages?x=1",
        "/v1/sessions?limit=0",
    ];
    for path in query {
        ask(&stage, Asked::new("GET", path))
            .await
            .is(400, "invalid");
    }
    ask(
        &stage,
        Asked::new("POST", "/v1/prompt/stream?events=some").json(json!({"prompt": "a"})),
    )
    .await
    .is(400, "invalid");
    ask(&stage, Asked::new("GET", "/v1/sessions/a%0Ab/messages"))
        .await
        .is(400, "invalid");
    for media in ["text/plain", "", "application/x-www-form-urlencoded"] {
        let asked = Asked {
            media,
            ..Asked::new("POST", "/v1/prompt").json(json!({"prompt": "a"}))
        };
        ask(&stage, asked).await.is(415, "invalid");
    }
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test]
async fn request_that_is_too_long_is_refused() {
    let stage = stage(Over::Http, []).await;
    let body = json!({"prompt": "x".repeat(MAX_REQUEST_BYTES)}).to_string();
    let address = stage.client.address();
    let (mut read, mut write) = TcpStream::connect(address)
        .await
        .expect("it listens")
        .into_split();
    let text = Asked {
        body,
        ..Asked::new("POST", "/v1/prompt")
    }
    .text(address);
    // Written beside the reading: the answer comes before all of it is taken.
    let writing = tokio::spawn(async move {
        let _ = write.write_all(text.as_bytes()).await;
        write
    });
    let mut head = [0; 12];
    read.read_exact(&mut head).await.expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 413");
    drop(writing.await);
}

#[tokio::test]
async fn session_may_stand_in_the_path() {
    let stage = stage(Over::Http, [Script::new().text("Hello.")]).await;
    stage.prompt("a b/c", "Hi.").await.expect("an answer");
    let answer = ask(
        &stage,
        Asked::new("GET", "/v1/sessions/a%20b%2Fc/messages?limit=1"),
    )
    .await;
    assert_eq!(
        answer.json().pointer("/messages/0/text"),
        Some(&json!("Hello."))
    );
    assert!(
        answer.json().pointer("/before").is_some_and(Value::is_u64),
        "there is one before it"
    );
}

#[tokio::test]
async fn stream_has_a_frame_for_each_event_and_one_behind_the_last() {
    let stage = stage(Over::Http, [Script::new().text("Hello.")]).await;
    let answer = ask(
        &stage,
        Asked::new("POST", "/v1/prompt/stream").json(json!({"prompt": "Hi."})),
    )
    .await;
    assert!(
        answer.head.contains("content-type: text/event-stream"),
        "{}",
        answer.head
    );
    let frames = frames(&answer.body);
    for (name, data) in frames.iter().take(frames.len() - 1) {
        assert_eq!(data.get("event"), Some(&json!(name)));
    }
    let names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.first(), Some(&"run_started"));
    assert_eq!(
        names.get(names.len() - 2..),
        Some(&["run_finished", "end"][..])
    );
    let ids = answer
        .body
        .lines()
        .filter(|line| line.starts_with("id:"))
        .count();
    assert_eq!(ids, frames.len() - 1);
}

#[tokio::test]
async fn simple_stream_has_the_seven_names_and_their_contents() {
    let scripts = [
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five.").delta_chars(3),
    ];
    let stage = stage(Over::Http, scripts).await;
    let asked = Asked::new("POST", "/v1/prompt/stream?events=simple")
        .json(json!({"prompt": "Two and three?"}));
    let mut frames = frames(&ask(&stage, asked).await.body);
    for (_, data) in &mut frames {
        for volatile in ["duration_ms", "call"] {
            data.as_object_mut().and_then(|data| data.remove(volatile));
        }
    }
    let expect = [
        ("step.start", json!({"turn": 1})),
        (
            "tool.call",
            json!({"turn": 1, "name": "add", "args": "{\"a\":2,\"b\":3}"}),
        ),
        (
            "tool.result",
            json!({"turn": 1, "name": "add", "text": "5", "is_error": false}),
        ),
        ("step.finish", json!({"turn": 1})),
        ("step.start", json!({"turn": 2})),
        ("text.delta", json!({"turn": 2, "text": "Fiv"})),
        ("text.delta", json!({"turn": 2, "text": "e."})),
        ("step.finish", json!({"turn": 2})),
        (
            "message.create",
            json!({"text": "Five.", "outcome": "finished"}),
        ),
    ];
    assert_eq!(frames, expect.map(|(name, data)| (name.to_owned(), data)));
}

#[tokio::test]
async fn simple_stream_ends_with_an_error_when_there_is_no_answer() {
    let failure = adjutant_llm::Error::new(adjutant_llm::ErrorKind::Invalid, "no such parameter");
    let scripts = [
        Script::new().fail(failure),
        Script::new().call("delete", json!({"what": "it"})),
    ];
    let stage = stage(Over::Http, scripts).await;
    for (session, kind) in [("one", "agent"), ("two", "conflict")] {
        let asked = Asked::new("POST", "/v1/prompt/stream?events=simple");
        let answer = ask(
            &stage,
            asked.json(json!({"prompt": "Go.", "session": session})),
        )
        .await;
        let frames = frames(&answer.body);
        let last = frames
            .last()
            .map(|(name, data)| (name.as_str(), data.pointer("/error/kind")));
        assert_eq!(last, Some(("error", Some(&json!(kind)))));
    }
}

#[tokio::test]
async fn client_that_reads_slowly_holds_its_run_back() {
    let gate = Gate::default();
    // More than fits between the two.
    let script = Script::new()
        .text("x".repeat(8 << 20))
        .delta_chars(64 << 10)
        .wait_at(126, &gate);
    let stage = stage(Over::Http, [script]).await;
    let address = stage.client.address();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .set_recv_buffer_size(64 << 10)
        .expect("a small buffer");
    let mut stream = socket.connect(address).await.expect("it listens");
    let asked = Asked::new("POST", "/v1/prompt/stream").json(json!({"prompt": "Much."}));
    stream
        .write_all(asked.text(address).as_bytes())
        .await
        .expect("it is asked");
    // Whatever would run ahead does so while the first half megabyte goes through the small buffer.
    stream
        .read_exact(&mut vec![0; 512 << 10])
        .await
        .expect("it begins");
    let ahead = futures_util::FutureExt::now_or_never(gate.wait_until_reached());
    assert_eq!(
        ahead, None,
        "nearly all of it was made, and nobody has read it"
    );
    gate.open();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("it goes on");
    let last = rest
        .get(rest.len() - 60..)
        .map(String::from_utf8_lossy)
        .expect("there is more");
    assert!(last.contains("event: end"), "{last}");
}

#[tokio::test]
async fn client_that_goes_away_cancels_its_run() {
    let gate = Gate::default();
    let stage = stage(Over::Http, [Script::new().text("Slow.").wait_at(0, &gate)]).await;
    let address = stage.client.address();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let asked = Asked::new("POST", "/v1/prompt").json(json!({"prompt": "Hi."}));
    stream
        .write_all(asked.text(address).as_bytes())
        .await
        .expect("it is asked");
    gate.wait_until_reached().await;
    assert_eq!(stage.client.status().await.expect("a status").runs, 1);
    drop(stream);
    stage.idle().await;
}

#[tokio::test]
async fn strangers_keep_nobody_out_when_they_hold_every_connection() {
    let stage = stage(Over::Http, [Script::new().text("Yes.")]).await;
    let address = stage.client.address();
    let mut strangers = Vec::new();
    for _ in 0..300 {
        strangers.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let answer = ask(&stage, Asked::new("GET", "/v1/status")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    // The oldest had to go; the youngest are there still.
    let mut byte = [0];
    assert_eq!(
        strangers[0]
            .read(&mut byte)
            .await
            .expect("it was closed in order"),
        0
    );
    assert!(
        strangers[299]
            .try_read(&mut byte)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    );
}

/// A wrong body, and the first words of what is told of it.
const WRONG: [(&str, &str, &str); 20] = [
    (
        "/v1/prompt",
        r#"{"text": "Hi."}"#,
        ": missing properties 'prompt', additionalProperties 'text' not allowed",
    ),
    (
        "/v1/prompt",
        r#"{"prompt": 5}"#,
        ": /prompt: want string, but got number",
    ),
    ("/v1/prompt", "[]", ": want object, but got array"),
    (
        "/v1/prompt/stream",
        r#"{"prompt": "Hi.", "timeout_ms": "soon"}"#,
        ": /timeout_ms: want integer, but got string",
    ),
    (
        "/v1/object",
        r#"{"prompt": "Hi."}"#,
        ": missing properties 'schema'",
    ),
    ("/v1/resume", "{}", ": missing properties 'pause', 'answer'"),
    (
        "/v1/resume",
        r#"{"answers": [{"pause": "p"}]}"#,
        ": /answers/0: missing properties 'answer'",
    ),
    (
        "/v1/resume",
        r#"{"answers": {"p": "yes"}}"#,
        ": /answers: want array, but got object",
    ),
    (
        "/v1/resume",
        r#"{"answers": [{"pause": "p", "answer": "yes"}]}"#,
        ": /answers/0/answer: want object, but got string",
    ),
    (
        "/v1/resume",
        r#"{"answers": [{"pause": "p", "answer": {"answer": "yes"}}]}"#,
        ": /answers/0/answer/answer: value must be one of",
    ),
    (
        "/v1/resume",
        r#"{"pause": "p", "answer": {"answer": "deny"}}"#,
        ": /answer: missing properties 'reason'",
    ),
    (
        "/v1/resume",
        r#"{"pause": "p", "answer": {"answer": "approve", "arg": "{}"}}"#,
        ": /answer: additionalProperties 'arg' not allowed",
    ),
    (
        "/v1/resume",
        r#"{"pause": "p", "answer": {"answer": "extend", "by": 0.5}}"#,
        ": /answer/by: want integer, but got number",
    ),
    (
        "/v1/resume",
        r#"{"answers": [], "pause": "p", "answer": {"answer": "approve"}}"#,
        ": ",
    ),
    (
        "/v1/resume",
        r#"{"pause": "p", "answer": {"answer": "approve"}, "shown": "x"}"#,
        ": /shown: ",
    ),
    (
        "/v1/resume",
        r#"{"pause": "p", "answer": {"answer": "approve"}, "show": "x"}"#,
        ": additionalProperties 'show' not allowed",
    ),
    (
        "/v1/control",
        r#"{"control": "steer"}"#,
        ": missing properties 'text'",
    ),
    (
        "/v1/control",
        r#"{"control": "stop", "call": "c1_0_0"}"#,
        ": additionalProperties 'call' not allowed",
    ),
    (
        "/v1/control",
        r#"{"control": "stop_call", "call": "zzz"}"#,
        ": not a call id of the form ",
    ),
    (
        "/v1/fork",
        r#"{"to": 5}"#,
        ": /to: want string, but got number",
    ),
];

#[tokio::test]
async fn wrong_queries_and_ids_are_refused() {
    let stage = stage(Over::Http, []).await;
    for path in [
        "/v1/events?after=x",
        "/v1/events?since=1",
        "/v1/events?after=-1",
        "/v1/events?session=",
    ] {
        ask(&stage, Asked::new("GET", path))
            .await
            .is(400, "invalid");
    }
    ask(&stage, Asked::new("GET", "/v1/events?session=nobody"))
        .await
        .is(404, "missing");
    ask(&stage, Asked::new("DELETE", "/v1/sessions"))
        .await
        .is(400, "invalid");
    ask(&stage, Asked::new("DELETE", "/v1/sessions?session=nobody"))
        .await
        .is(404, "missing");
}

#[tokio::test]
async fn wrong_body_is_told_what_is_wrong_and_which_forms_there_are() {
    let stage = stage(Over::Http, []).await;
    for (route, body, told) in WRONG {
        let answer = ask(
            &stage,
            Asked {
                body: body.to_owned(),
                ..Asked::new("POST", route)
            },
        )
        .await;
        answer.is(400, "invalid");
        let told_of = answer.json();
        let message = told_of
            .pointer("/error/message")
            .and_then(Value::as_str)
            .expect("a message");
        let begins = format!("the request is not as it must be{told}");
        let form = message
            .split_once("; hint: it is {")
            .map(|(_, form)| form)
            .unwrap_or_default();
        assert!(
            message.starts_with(&begins) && !form.is_empty(),
            "{route} {body}\n{message}"
        );
        assert!(
            route != "/v1/resume" || form.contains(r#"{"answer": "deny", "reason": TEXT}"#),
            "{message}"
        );
        for words in [
            "serde",
            "variant",
            "untagged",
            "unknown field",
            "invalid type",
            "line 1",
        ] {
            assert!(!message.contains(words), "{message}");
        }
    }
    let answer = ask(
        &stage,
        Asked {
            body: "{".into(),
            ..Asked::new("POST", "/v1/prompt")
        },
    )
    .await;
    assert!(
        answer.body.contains("the request is no JSON: "),
        "{}",
        answer.body
    );
    let answer = ask(&stage, Asked::new("GET", "/v1/pauses?sesion=a")).await;
    assert!(
        answer
            .body
            .contains("the query is not as it must be: sesion: nothing is named `sesion`"),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("; hint: it is ?session=NAME"),
        "{}",
        answer.body
    );
}
