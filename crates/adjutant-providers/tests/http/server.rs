//! A raw server that says what it is told to and shows what it was sent, and models that speak to it.

use std::sync::Arc;

use adjutant_llm::{Chunk, ChunkStream, Error, Model, ModelInfo};
use adjutant_providers::{Anthropic, Chat, Gemini, Key, Observe, OpenAi};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A request as the server saw it.
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A server that answers each request with the next of its answers.
pub(crate) struct Server {
    pub(crate) base_url: String,
    pub(crate) seen: mpsc::UnboundedReceiver<Seen>,
}

/// The bytes of an answer, and what becomes of the connection after them.
#[derive(Clone)]
pub(crate) struct Answer {
    bytes: String,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    Hang,
}

/// A success with these events in chunked encoding.
pub(crate) fn events(text: &str) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_7\r\n\
                x-ratelimit-remaining-requests: 59\r\ntransfer-encoding: chunked\r\n\r\n";
    let bytes = if text.is_empty() {
        format!("{head}0\r\n\r\n")
    } else {
        format!("{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len())
    };
    Answer {
        bytes,
        then: Then::Keep,
    }
}

/// An answer of this status, with these lines of headers.
pub(crate) fn status(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let bytes = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
    Answer {
        bytes,
        then: Then::Keep,
    }
}

impl Answer {
    /// Only the first bytes of it; then the connection closes.
    pub(crate) fn cut(mut self, length: usize) -> Self {
        self.bytes.truncate(length);
        Self {
            then: Then::Close,
            ..self
        }
    }

    /// All but the last bytes of it, and nothing after them.
    pub(crate) fn hang(mut self, rest: usize) -> Self {
        self.bytes.truncate(self.bytes.len() - rest);
        Self {
            then: Then::Hang,
            ..self
        }
    }
}

impl Seen {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Server {
    pub(crate) async fn next(&mut self) -> Seen {
        self.seen.recv().await.expect("a request")
    }
}

pub(crate) async fn serve(answers: Vec<Answer>) -> Server {
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
                    let Some(answer) = answers.lock().await.next() else {
                        return;
                    };
                    // A test that looks at none has let go of the receiver.
                    let _ = sender.send(Seen {
                        connection,
                        head,
                        body,
                    });
                    // A client that has gone does not read the answer.
                    let _ = socket.write_all(answer.bytes.as_bytes()).await;
                    match answer.then {
                        Then::Keep => {}
                        Then::Close => return,
                        Then::Hang => std::future::pending().await,
                    }
                }
            });
        }
    });
    Server { base_url, seen }
}

/// The next request of a connection: head and body.
pub(crate) async fn read(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .expect("a length");
            let whole = end + 4 + length.parse::<usize>().expect("a number");
            if bytes.len() >= whole {
                assert_eq!(bytes.len(), whole, "nothing stands behind a body");
                return Some((
                    head,
                    String::from_utf8(bytes[end + 4..whole].to_vec()).expect("a body is text"),
                ));
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// All wires, by the names of their fixtures.
pub(crate) const WIRES: [&str; 4] = ["anthropic", "openai", "gemini", "chat"];

/// A model of a wire at this server, and someone who looks on; `azure` is the Chat wire in that dialect.
pub(crate) fn model(
    wire: &str,
    base_url: &str,
    key: impl Into<Key>,
    by: impl Observe + 'static,
) -> Arc<dyn Model> {
    let info = |id: &str| ModelInfo {
        context_window: 1_000,
        ..ModelInfo::new(id)
    };
    let v1 = format!("{base_url}/v1");
    match wire {
        "anthropic" => Arc::new(
            Anthropic::new(info("anthropic/claude-sonnet-5"), key)
                .base_url(base_url)
                .observe(by),
        ),
        "openai" => Arc::new(
            OpenAi::new(info("openai/gpt-5.4"), key)
                .base_url(v1)
                .observe(by),
        ),
        "gemini" => Arc::new(
            Gemini::new(info("gemini/gemini-3-pro"), key)
                .base_url(base_url)
                .observe(by),
        ),
        "chat" => Arc::new(
            Chat::new(info("openai/gpt-5.4"), key)
                .base_url(v1)
                .observe(by),
        ),
        "azure" => Arc::new(
            Chat::new(info("azure/gpt-5.4"), key)
                .base_url(v1)
                .observe(by),
        ),
        other => unreachable!("no wire is called {other}"),
    }
}

/// Looks on, and does nothing.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Observe for Nobody {}

/// The text of a fixture of a wire.
pub(crate) fn fixture(wire: &str, name: &str) -> String {
    let wire = if wire == "azure" { "chat" } else { wire };
    let path = format!(
        "{}/tests/fixtures/{wire}/{name}.sse",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).expect("a fixture")
}

pub(crate) async fn next(stream: &mut ChunkStream) -> Option<Result<Chunk, Error>> {
    std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}

/// All items of a stream.
pub(crate) async fn all(mut stream: ChunkStream) -> Vec<Result<Chunk, Error>> {
    let mut items = Vec::new();
    while let Some(item) = next(&mut stream).await {
        items.push(item);
    }
    items
}
