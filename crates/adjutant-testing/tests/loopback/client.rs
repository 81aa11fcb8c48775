//! The smallest HTTP client that sees every byte: chunks as they were sent, and whether the body was whole.

use std::{future::Future, task::Poll};

use adjutant_testing::Loopback;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

/// Which vendor is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    OpenAi,
    Responses,
    Gemini,
}

pub(crate) const VENDORS: [Vendor; 4] = [
    Vendor::Anthropic,
    Vendor::OpenAi,
    Vendor::Responses,
    Vendor::Gemini,
];

pub(crate) struct Client {
    socket: TcpStream,
    input: Vec<u8>,
}

/// An answer as far as it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the end of the body came.
    pub(crate) whole: bool,
}

/// Runs a test on a runtime of one thread.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(test);
}

/// The smallest request that a vendor accepts.
pub(crate) fn hello(vendor: Vendor) -> Value {
    let messages = json!([{"role": "user", "content": "Hello!"}]);
    match vendor {
        Vendor::Anthropic => {
            json!({"model": "m", "max_tokens": 100, "stream": true, "messages": messages})
        }
        Vendor::OpenAi => {
            json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": messages})
        }
        Vendor::Responses => {
            json!({"model": "m", "stream": true, "store": false, "input": messages})
        }
        Vendor::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hello!"}]}]}),
    }
}

/// A request with the vendor's headers, as bytes.
pub(crate) fn request(vendor: Vendor, body: &Value) -> String {
    request_of("m", vendor, body)
}

/// A request for a model of this name, on the wire that names it in the path.
pub(crate) fn request_of(model: &str, vendor: Vendor, body: &Value) -> String {
    let body = body.to_string();
    let gemini = format!(
        "POST /v1beta/models/{model}:streamGenerateContent?alt=sse HTTP/1.1\r\nX-Goog-Api-Key: k"
    );
    let head = match vendor {
        Vendor::Responses => "POST /v1/responses HTTP/1.1\r\nAuthorization: Bearer k",
        Vendor::Gemini => &gemini,
        Vendor::Anthropic => {
            "POST /v1/messages HTTP/1.1\r\nX-Api-Key: k\r\nanthropic-version: 2023-06-01"
        }
        Vendor::OpenAi => "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k",
    };
    format!(
        "{head}\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends one request on a connection of its own and reads the whole answer.
pub(crate) async fn ask(server: &Loopback, vendor: Vendor, body: &Value) -> Answer {
    let mut client = Client::open(server).await;
    client.send(&request(vendor, body)).await;
    client.answer().await
}

impl Client {
    pub(crate) async fn open(server: &Loopback) -> Self {
        let socket = TcpStream::connect(server.addr())
            .await
            .expect("the server listens");
        Self {
            socket,
            input: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, raw: &str) {
        self.socket
            .write_all(raw.as_bytes())
            .await
            .expect("the server reads");
    }

    /// Reads an answer to its end, or to the end of the connection.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if answer.status == 0 {
            return answer;
        }
        match answer
            .header("content-length")
            .map(|it| it.parse::<usize>().expect("a number"))
        {
            Some(length) => {
                let body = self.take(length).await;
                answer.whole = body.is_some();
                answer.chunks.extend(body);
            }
            None => while self.chunk(&mut answer).await {},
        }
        answer
    }

    /// Reads until that many bytes of the body came.
    pub(crate) async fn answer_up_to(&mut self, bytes: usize) -> Answer {
        let mut answer = self.head().await;
        while answer.body().len() < bytes && self.chunk(&mut answer).await {}
        answer
    }

    /// Reads one more chunk; says whether more may come.
    pub(crate) async fn chunk(&mut self, answer: &mut Answer) -> bool {
        let Some(size) = self.line().await else {
            return false;
        };
        let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
        let Some(mut data) = self.take(size + 2).await else {
            return false;
        };
        assert_eq!(data.split_off(size), b"\r\n", "the end of a chunk");
        answer.whole = size == 0;
        if size > 0 {
            answer.chunks.push(data);
        }
        size > 0
    }

    /// Whether the connection is open and silent at this moment.
    pub(crate) async fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        let poll = std::future::poll_fn(|cx| {
            let mut buffer = ReadBuf::new(&mut byte);
            Poll::Ready(
                std::pin::Pin::new(&mut self.socket)
                    .poll_read(cx, &mut buffer)
                    .is_pending(),
            )
        });
        self.input.is_empty() && poll.await
    }

    async fn head(&mut self) -> Answer {
        let Some(status) = self.line().await else {
            return Answer::default();
        };
        let status = status
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .expect("a status line");
        let mut answer = Answer {
            status,
            ..Answer::default()
        };
        while let Some(line) = self.line().await.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect("a header");
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        answer
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.input.windows(2).position(|it| it == b"\r\n") {
                let line = self.take(at + 2).await?;
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.input.len() < bytes {
            self.more().await?;
        }
        let rest = self.input.split_off(bytes);
        Some(std::mem::replace(&mut self.input, rest))
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.socket.read_buf(&mut self.input).await;
        read.ok().filter(|read| *read > 0).map(|_| ())
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body()).expect("the body is UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).expect("the body is JSON")
    }
}
