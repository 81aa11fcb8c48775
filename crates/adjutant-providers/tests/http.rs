//! Both wires against a raw server on this machine: what is sent, how connections are used, and how refusals are read.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{Chunk, ChunkStream, Error, ErrorKind, Model, ModelInfo, Options, Reply, Request, complete};
use adjutant_providers::{Anthropic, Chat, Key};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

const CHAT: &str = include_str!("fixtures/chat/text.sse");
const ANTHROPIC: &str = include_str!("fixtures/anthropic/text.sse");

/// A request as the server saw it.
struct Seen {
    connection: usize,
    head: String,
    body: String,
}

/// A server that answers each request with the next of these answers, and then closes what is asked.
struct Server {
    base_url: String,
    seen: mpsc::UnboundedReceiver<Seen>,
}

/// A success with these events in chunked encoding.
fn events(text: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_7\r\n\
                x-ratelimit-remaining-requests: 59\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len())
}

async fn serve(answers: Vec<String>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, seen) = mpsc::unbounded_channel();
    let answers = Arc::new(tokio::sync::Mutex::new(answers.into_iter()));
    tokio::spawn(async move {
        let mut connection = 0;
        while let Ok((mut socket, _)) = listener.accept().await {
            connection += 1;
            let (sender, answers) = (sender.clone(), Arc::clone(&answers));
            tokio::spawn(async move {
                while let Some((head, body)) = read(&mut socket).await {
                    let Some(answer) = answers.lock().await.next() else { return };
                    sender.send(Seen { connection, head, body }).expect("the test listens");
                    socket.write_all(answer.as_bytes()).await.expect("it is sent");
                }
            });
        }
    });
    Server { base_url, seen }
}

/// The next request of a connection: head and body.
async fn read(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let whole = end + 4 + length.parse::<usize>().expect("a number");
            if bytes.len() >= whole {
                return Some((head, String::from_utf8(bytes[end + 4..whole].to_vec()).expect("a body is text")));
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn next(stream: &mut ChunkStream) -> Option<Result<Chunk, Error>> {
    std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}

fn chat(server: &Server) -> Chat {
    Chat::new(ModelInfo::new("openai/gpt-5.4"), "sk-secret").base_url(format!("{}/v1", server.base_url))
}

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::new(ModelInfo::new("anthropic/claude-sonnet-5"), "sk-secret").base_url(&server.base_url)
}

fn text(reply: &Result<Arc<Reply>, Error>) -> String {
    reply.as_ref().map(|reply| reply.text()).expect("a reply")
}

#[tokio::test]
async fn requests_carry_the_credentials_when_they_are_sent() {
    let mut server = serve(vec![events(ANTHROPIC), events(CHAT), events(CHAT)]).await;
    let options = Options::new().header("x-own", "1");
    let request = Request::new().options(options).user("hi");
    assert_eq!(text(&complete(&anthropic(&server), request.clone()).await), "Good morning.");
    assert_eq!(text(&complete(&chat(&server), request.clone()).await), "Good morning.");
    let keyless = Chat::new(ModelInfo::new("ollama/q"), Key::none()).base_url(&server.base_url);
    assert_eq!(text(&complete(&keyless, request).await), "Good morning.");

    let seen = server.seen.recv().await.expect("a request");
    assert!(seen.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", seen.head);
    for line in ["x-api-key: sk-secret", "anthropic-version: 2023-06-01", "x-own: 1", "content-type: application/json"]
    {
        assert!(seen.head.lines().any(|it| it == line), "{line} is not in {}", seen.head);
    }
    assert_eq!(
        seen.body,
        r#"{"model":"claude-sonnet-5","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
    );
    let seen = server.seen.recv().await.expect("a request");
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", seen.head);
    assert!(seen.head.lines().any(|it| it == "authorization: Bearer sk-secret"), "{}", seen.head);
    let seen = server.seen.recv().await.expect("a request");
    assert!(!seen.head.contains("authorization"), "{}", seen.head);
}

#[tokio::test]
async fn connection_is_used_again_when_the_reply_was_read_to_its_end() {
    let mut server = serve(vec![events(CHAT), events(CHAT), events(CHAT)]).await;
    let model = chat(&server);
    let mut request = Request::new().user("x".repeat(100_000));
    for turn in 0..3 {
        assert_eq!(text(&complete(&model, request.clone()).await), "Good morning.");
        let seen = server.seen.recv().await.expect("a request");
        assert_eq!(seen.connection, 1, "turn {turn}");
        assert!(seen.body.ends_with("]}") && seen.body.len() > 100_000);
        request = request.user("more");
    }
}

#[tokio::test]
async fn start_says_the_limits_when_the_answer_carries_them() {
    let server = serve(vec![events(CHAT)]).await;
    let mut request = Request::new().user("hi");
    request.attempt = 2;
    let mut stream = chat(&server).stream(request);
    let Some(Ok(Chunk::Start { attempt, model, limits, warnings })) = next(&mut stream).await else {
        unreachable!("a stream begins with a start")
    };
    assert_eq!((attempt, model.as_str(), limits.requests_left, warnings.len()), (2, "openai/gpt-5.4", Some(59), 0));
}

#[tokio::test]
async fn refusal_keeps_what_was_said_when_the_status_is_no_success() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down, sk-secret"}}"#;
    let answer = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nrequest-id: req_7\r\n\
         retry-after: 1.5\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let server = serve(vec![answer]).await;
    let mut stream = anthropic(&server).stream(Request::new().user("hi"));
    let error = next(&mut stream).await.expect("an item").expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.message(), "anthropic/claude-sonnet-5 answered 429 (rate_limit_error): slow down, [key]");
    assert_eq!(
        (error.status(), error.code(), error.request_id()),
        (Some(429), Some("rate_limit_error"), Some("req_7"))
    );
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1_500)));
    assert!(error.body().is_some_and(|body| body.contains("slow down") && !body.contains("sk-secret")));
    assert!(next(&mut stream).await.is_none());
}

#[tokio::test]
async fn refusal_is_bounded_when_its_body_is_endless() {
    let answer = format!("HTTP/1.1 500 Oops\r\ncontent-length: 9000000\r\n\r\n{}", "x".repeat(200_000));
    let server = serve(vec![answer]).await;
    let error = complete(&chat(&server), Request::new().user("hi")).await.expect_err("it is refused");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Overloaded, Some(500)));
    assert_eq!(error.body().map(str::len), Some(2_048));
}

#[tokio::test]
async fn error_names_the_host_when_nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let model = Chat::new(ModelInfo::new("openai/x"), "sk-secret").base_url(format!("http://{address}/v1"));
    let error = complete(&model, Request::new().user("hi")).await.expect_err("nothing listens");
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(error.message(), format!("could not connect to {address}: nothing listens there"));
    let all = format!("{error:?}");
    assert!(!all.contains("sk-secret") && !all.contains("/v1"), "{all}");
}

#[tokio::test]
async fn connection_closes_when_the_stream_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let model = Chat::new(ModelInfo::new("openai/x"), Key::none()).base_url(base_url);
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a caller");
        read(&mut socket).await.expect("a request");
        let half = events(CHAT);
        socket.write_all(&half.as_bytes()[..half.len() / 2]).await.expect("it is sent");
        read(&mut socket).await.is_none()
    });
    let mut stream = model.stream(Request::new().user("hi"));
    assert!(matches!(next(&mut stream).await, Some(Ok(Chunk::Start { .. }))));
    drop(stream);
    assert!(server.await.expect("the server ends"), "the connection was closed");
}
