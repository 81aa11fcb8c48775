//! HTTP/1.1 on one socket: whole requests come in, answers go out in chunks of our choosing. It knows no wire.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::received::Received;

/// The largest number of bytes in the head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// The largest number of bytes in the body of a request.
const MAX_BODY: usize = 256 * 1024 * 1024;
/// The smallest number of bytes that are read at once when there is no body to read.
const READ: usize = 4 * 1024;
/// The size in bytes of the pieces of an endless line.
const ENDLESS_PIECE: usize = 64 * 1024;

/// The two halves of a connection's socket and its read buffer.
#[derive(Debug)]
pub(crate) struct Peer {
    socket: TcpStream,
    input: BytesMut,
    output: Vec<u8>,
}

/// The next thing that came on a connection.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Received),
    /// The client closed the connection between two requests.
    End,
    /// A status, and the reason why the connection must be closed.
    Malformed(u16, &'static str),
}

/// The fate of a body once it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyUse {
    Keep,
    Discard,
}

impl Peer {
    pub(crate) fn new(socket: TcpStream) -> Self {
        // Without it small frames wait for acknowledgements; a socket that refuses the option still works.
        let _ = socket.set_nodelay(true);
        Self {
            socket,
            input: BytesMut::new(),
            output: Vec::new(),
        }
    }

    /// Reads the next request.
    pub(crate) async fn receive(&mut self, body: BodyUse) -> io::Result<Incoming> {
        let Some(end) = self.head_end().await? else {
            return Ok(match self.input.len() {
                0 => Incoming::End,
                MAX_HEAD.. => Incoming::Malformed(431, "the head of the request is too large"),
                _ => Incoming::Malformed(400, "the request was cut off"),
            });
        };
        let head = self.input.split_to(end);
        let Some(mut received) = parse_head(&head) else {
            return Ok(Incoming::Malformed(
                400,
                "the head of the request is malformed",
            ));
        };
        let length = match received.header("content-length").map(str::parse::<usize>) {
            _ if received.header("transfer-encoding").is_some() => {
                return Ok(Incoming::Malformed(411, "a content-length is required"));
            }
            None if received.method == "POST" => {
                return Ok(Incoming::Malformed(411, "a content-length is required"));
            }
            None => 0,
            Some(Ok(length)) if length <= MAX_BODY => length,
            Some(Ok(_)) => {
                return Ok(Incoming::Malformed(
                    413,
                    "the body of the request is too large",
                ));
            }
            Some(Err(_)) => return Ok(Incoming::Malformed(400, "the content-length is no number")),
        };
        received.body = self.body(length, body).await?;
        Ok(Incoming::Request(received))
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Puts bytes before the next chunk, to be sent together with it.
    pub(crate) fn queue(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Puts bytes as one chunk before the next one, to be sent together with it; an empty chunk is left out.
    pub(crate) fn queue_chunk(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.queue(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.queue(bytes);
            self.queue(b"\r\n");
        }
    }

    /// Sends bytes as one chunk; with `split` as chunks of at most that many bytes, each in a separate write.
    pub(crate) async fn send_chunks(
        &mut self,
        bytes: &[u8],
        split: Option<usize>,
    ) -> io::Result<()> {
        for piece in bytes.chunks(split.unwrap_or(bytes.len()).max(1)) {
            self.queue_chunk(piece);
            self.flush().await?;
        }
        self.flush().await
    }

    /// Sends the end of a chunked body.
    pub(crate) async fn finish_chunks(&mut self) -> io::Result<()> {
        self.queue(b"0\r\n\r\n");
        self.flush().await
    }

    /// Sends a chunk that is all one letter again and again, until the client closes the connection.
    pub(crate) async fn send_endlessly(&mut self) -> io::Result<()> {
        let piece = vec![b'a'; ENDLESS_PIECE];
        loop {
            self.send_chunks(&piece, None).await?;
        }
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(&mut self) {
        while self.input.len() < MAX_HEAD {
            if !matches!(self.fill().await, Ok(1..)) {
                return;
            }
        }
        std::future::pending().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Reads up to the blank line; returns its end, or `None` without one.
    async fn head_end(&mut self) -> io::Result<Option<usize>> {
        let mut seen = 0;
        loop {
            let from = seen.min(self.input.len());
            if let Some(at) = self.input[from..]
                .windows(4)
                .position(|it| it == b"\r\n\r\n")
            {
                return Ok(Some(from + at + 4));
            }
            seen = self.input.len().saturating_sub(3);
            if self.input.len() >= MAX_HEAD || self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn body(&mut self, length: usize, body: BodyUse) -> io::Result<Bytes> {
        if body == BodyUse::Discard {
            self.discard(length).await?;
            return Ok(Bytes::new());
        }
        self.input.reserve(length.saturating_sub(self.input.len()));
        while self.input.len() < length {
            self.more().await?;
        }
        Ok(self.input.split_to(length).freeze())
    }

    async fn discard(&mut self, length: usize) -> io::Result<()> {
        let mut left = length;
        loop {
            let here = left.min(self.input.len());
            drop(self.input.split_to(here));
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads what there is; gives how many bytes, 0 at the end. Cancel: nothing is lost.
    async fn fill(&mut self) -> io::Result<usize> {
        if self.input.capacity() == self.input.len() {
            self.input.reserve(READ);
        }
        self.socket.read_buf(&mut self.input).await
    }
}

/// The request line and the headers.
fn parse_head(head: &[u8]) -> Option<Received> {
    let mut lines = std::str::from_utf8(head).ok()?.trim_end().split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<Option<Vec<_>>>()?;
    Some(Received {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Bytes::new(),
    })
}

/// The head of an answer: status line and headers, up to and including the blank line.
pub(crate) fn head<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}
