//! One connection: requests are read, routed and answered in order. The content of an answer is up to the wires.

use std::{io, sync::Arc, task::Poll};

use adjutant_llm::{Chunk, ChunkStream, Error, ErrorKind, RateLimits};
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{
    Order,
    dispatch::{self, Target},
    shared::{Shared, Source},
};
use crate::{
    body::{Body, Break, Frame},
    embeddings,
    encode::{Encoder, ErrorAt, Stamp},
    http::{BodyUse, Incoming, Peer, head},
    oracle::LINES,
    plan::{Instead, Plan},
    received::Received,
    refusal::Refusal,
    wire::Wire,
};

/// The number of bytes that are gathered before they are written, when the model is faster than the socket.
const GATHER: usize = 64 * 1024;
/// The size in bytes of a chunk of a canned answer.
const CANNED_CHUNK: usize = 16 * 1024;
/// The media type of an event stream.
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// The page that a proxy sends.
const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in to the \
                    network</h1></body></html>\n";

/// The fate of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

/// Answers the requests of a connection until one side closes it.
pub(crate) async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    // Errors of a connection concern the client; there is no other receiver.
    let _ = converse(Peer::new(socket), &shared).await;
}

async fn converse(mut peer: Peer, shared: &Shared) -> io::Result<()> {
    let body = if shared.reads_bodies() {
        BodyUse::Keep
    } else {
        BodyUse::Discard
    };
    for on_connection in 0.. {
        let received = match peer.receive(body).await? {
            Incoming::Request(received) => received,
            Incoming::End => return Ok(()),
            Incoming::Malformed(status, why) => {
                let body =
                    serde_json::json!({"error": {"message": why, "type": "invalid_request_error"}});
                return send_json(
                    &mut peer,
                    status,
                    &[("connection".into(), "close".into())],
                    &body,
                )
                .await;
            }
        };
        let number = shared.note(&received);
        let exchange = Exchange {
            received: &received,
            number,
            on_connection,
            shared,
        };
        let after = exchange.answer(&mut peer).await?;
        if after == After::Close || received.wants_close() {
            return Ok(());
        }
    }
    Ok(())
}

/// One request with its context.
struct Exchange<'a> {
    received: &'a Received,
    number: usize,
    on_connection: usize,
    shared: &'a Shared,
}

impl Exchange<'_> {
    async fn answer(&self, peer: &mut Peer) -> io::Result<After> {
        if self.shared.holds() {
            tokio::select! {
                () = self.shared.hold() => {}
                () = peer.closed() => return Ok(After::Close),
            }
        }
        let mut plan = self.shared.plan(self.number);
        if let Some(instead) = plan.instead.take() {
            return self.answer_instead(peer, &instead).await;
        }
        match self.shared.source() {
            Source::Canned { bodies, answers } => {
                self.answer_canned(peer, plan, bodies, answers).await
            }
            Source::Model(model) => match self.route(|| model.info().name().to_owned()) {
                Ok(Routed::Whole(body)) => self.send(peer, 200, &[], &body).await,
                Ok(Routed::Ask(encoder, request)) => {
                    self.answer_model(peer, plan, encoder, model.stream(request))
                        .await
                }
                Err(refusal) => self.refuse(peer, &refusal).await,
            },
        }
    }

    fn wire(&self) -> Wire {
        dispatch::nearest(self.shared.oracle(), self.received)
    }

    fn route(&self, name: impl FnOnce() -> String) -> Result<Routed, Refusal> {
        let own = self.shared.oracle();
        let (wire, target) =
            dispatch::target(own, self.received).ok_or_else(|| Refusal::new(404, "Not found"))?;
        if self.received.method
            != if target == Target::Models {
                "GET"
            } else {
                "POST"
            }
        {
            return Err(Refusal::new(405, "Method Not Allowed"));
        }
        dispatch::admit(wire, self.received)?;
        match target {
            Target::Models => Ok(Routed::Whole(wire.models(&name()))),
            Target::Embeddings => embeddings::answer(wire, self.received).map(Routed::Whole),
            Target::Reply => {
                let issued = Arc::clone(self.shared.issue_record());
                let stamp = Stamp {
                    number: self.number,
                    now_ms: self.shared.now_ms(),
                    issued,
                };
                let (request, encoder) = dispatch::read(wire, own, self.received, stamp)?;
                Ok(Routed::Ask(encoder, request))
            }
        }
    }

    async fn answer_instead(&self, peer: &mut Peer, instead: &Instead) -> io::Result<After> {
        match instead {
            Instead::Hangup => Ok(After::Close),
            Instead::Html => {
                let length = PAGE.len().to_string();
                let headers = [
                    ("content-type", "text/html; charset=utf-8"),
                    ("content-length", &length),
                ];
                let mut answer = head(200, headers);
                answer.extend_from_slice(PAGE.as_bytes());
                peer.send(&answer).await?;
                Ok(After::Keep)
            }
            Instead::Status {
                code,
                headers,
                body: None,
            } => {
                let mut refusal = Refusal::from_status(*code);
                refusal.headers.clone_from(headers);
                self.refuse(peer, &refusal).await
            }
            Instead::Status {
                code,
                headers,
                body: Some(body),
            } => {
                self.send_body(peer, self.wire().status(*code), headers, body)
                    .await
            }
        }
    }

    async fn refuse(&self, peer: &mut Peer, refusal: &Refusal) -> io::Result<After> {
        let (_, id) = self.wire().request_id(self.number);
        let (status, headers, body) =
            dispatch::error(self.wire(), self.shared.oracle(), refusal, &id);
        self.send(peer, status, &headers, &body).await
    }

    async fn send(
        &self,
        peer: &mut Peer,
        status: u16,
        headers: &[(String, String)],
        body: &Value,
    ) -> io::Result<After> {
        let mut all = vec![("content-type".to_owned(), "application/json".to_owned())];
        all.extend_from_slice(headers);
        self.send_body(peer, status, &all, body.to_string().as_bytes())
            .await
    }

    async fn send_body(
        &self,
        peer: &mut Peer,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<After> {
        let (name, id) = self.wire().request_id(self.number);
        let mut all = headers.to_vec();
        all.push((name.to_owned(), id));
        send_whole(peer, status, &all, body).await?;
        Ok(After::Keep)
    }

    async fn answer_canned(
        &self,
        peer: &mut Peer,
        plan: Plan,
        bodies: &[Bytes],
        answers: &[Bytes],
    ) -> io::Result<After> {
        let number = match self.shared.order() {
            Order::ByRequest => self.number,
            Order::ByConnection => self.on_connection,
        };
        let at = number.checked_rem(bodies.len()).unwrap_or_default();
        if plan.is_empty() {
            match answers.get(at) {
                Some(answer) => peer.send(answer).await?,
                None => peer.send(&whole_answer(b"")).await?,
            }
            return Ok(After::Keep);
        }
        let mut body = Body::new(plan, Vec::new());
        let mut left: &[u8] = bodies.get(at).map_or(b"", |body| body);
        while !left.is_empty() {
            let end = left
                .windows(2)
                .position(|it| it == b"\n\n")
                .map_or(left.len(), |at| at + 2);
            let (frame, rest) = left.split_at(end);
            body.frame(Frame::Content, |to| to.extend_from_slice(frame));
            left = rest;
        }
        peer.queue(&stream_head(&[]));
        finish(peer, &mut body).await
    }

    async fn answer_model(
        &self,
        peer: &mut Peer,
        mut plan: Plan,
        mut encoder: Box<dyn Encoder>,
        mut chunks: ChunkStream,
    ) -> io::Result<After> {
        let at = ErrorAt::Frame(plan.frames.error_after.unwrap_or_default());
        let content_type = plan.content_type.take();
        let mut body = Body::new(plan, encoder.error(&Refusal::from_status(529), at));
        let mut limits = RateLimits::default();
        // The head waits for the first word, so that a model that fails at once fails with a status.
        let first = loop {
            match next(peer, &mut chunks).await? {
                Ok(Chunk::Start { limits: told, .. }) => limits = *told,
                // The first frame contains the usage known so far; usage has no separate frame.
                Ok(usage @ Chunk::Usage { .. }) => {
                    if let Err(refusal) = encoder.chunk(&usage, &mut body) {
                        return self.refuse(peer, &refusal).await;
                    }
                }
                Ok(chunk) => break chunk,
                Err(error) => return self.refuse(peer, &Refusal::from_error(&error)).await,
            }
        };
        let (name, id) = self.wire().request_id(self.number);
        let mut headers = vec![(name, id)];
        headers.extend(encoder.headers(&limits));
        let lines = self.wire() == Wire::Foreign
            && self
                .shared
                .oracle()
                .as_ref()
                .is_some_and(|it| it.is_lines());
        let media_type = if lines { LINES } else { EVENTS };
        let media_type = content_type.as_deref().unwrap_or(media_type);
        peer.queue(&stream_head_of(media_type, &headers));
        relay(peer, &mut *encoder, &mut chunks, first, &mut body).await?;
        finish(peer, &mut body).await
    }
}

/// The result of routing a request.
enum Routed {
    /// The whole body of the answer.
    Whole(Value),
    Ask(Box<dyn Encoder>, adjutant_llm::Request),
}

/// Sends the output of the model until it ends, or until a fault breaks the body.
async fn relay(
    peer: &mut Peer,
    encoder: &mut dyn Encoder,
    chunks: &mut ChunkStream,
    first: Chunk,
    body: &mut Body,
) -> io::Result<()> {
    let mut chunk = Ok(first);
    loop {
        let ended = match &chunk {
            Ok(chunk) => encoder
                .chunk(chunk, body)
                .map(|()| matches!(chunk, Chunk::Done(_))),
            Err(error) => Err(Refusal::from_error(error)),
        };
        match ended {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(refusal) => {
                let error = encoder.error(&refusal, ErrorAt::Here);
                body.frame(Frame::Content, |to| to.extend_from_slice(&error));
                return Ok(());
            }
        }
        if body.broken().is_some() {
            return Ok(());
        }
        if body.pending().len() >= GATHER {
            flush(peer, body).await?;
        }
        let ready = std::future::poll_fn(|cx| Poll::Ready(chunks.as_mut().poll_next(cx))).await;
        chunk = match ready {
            Poll::Ready(chunk) => chunk.unwrap_or_else(|| Err(no_terminal())),
            Poll::Pending => {
                flush(peer, body).await?;
                next(peer, chunks).await?
            }
        };
    }
}

/// The next chunk; an I/O error if the client goes away before it comes.
async fn next(peer: &mut Peer, chunks: &mut ChunkStream) -> io::Result<Result<Chunk, Error>> {
    tokio::select! {
        chunk = std::future::poll_fn(|cx| chunks.as_mut().poll_next(cx)) => {
            Ok(chunk.unwrap_or_else(|| Err(no_terminal())))
        }
        () = peer.closed() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

fn no_terminal() -> Error {
    Error::new(
        ErrorKind::Protocol,
        "the stream of the served model ended without a reply",
    )
}

async fn flush(peer: &mut Peer, body: &mut Body) -> io::Result<()> {
    let mut sent = 0;
    for (at, pause) in body.take_pauses() {
        peer.send_chunks(&body.pending()[sent..at], body.split())
            .await?;
        sent = at;
        for _ in 0..pause.times {
            tokio::time::sleep(pause.every).await;
            peer.send_chunks(&pause.bytes, None).await?;
        }
    }
    peer.send_chunks(&body.pending()[sent..], body.split())
        .await?;
    body.clear_pending();
    Ok(())
}

/// Sends the rest of a body and ends it, each as the faults require.
async fn finish(peer: &mut Peer, body: &mut Body) -> io::Result<After> {
    let ends_well =
        body.broken().is_none_or(|broken| broken == Break::End) && !body.closes_slowly();
    if ends_well && body.split().is_none() && !body.has_pauses() {
        peer.queue_chunk(body.pending());
        peer.finish_chunks().await?;
        return Ok(After::Keep);
    }
    flush(peer, body).await?;
    match body.broken() {
        Some(Break::Cut) => return Ok(After::Close),
        Some(Break::Stall) => peer.closed().await,
        Some(Break::Endless) => peer.send_endlessly().await?,
        Some(Break::End) | None if body.closes_slowly() => peer.closed().await,
        Some(Break::End) | None => {
            peer.finish_chunks().await?;
            return Ok(After::Keep);
        }
    }
    Ok(After::Close)
}

/// The head of an event stream.
fn stream_head(headers: &[(&str, String)]) -> Vec<u8> {
    stream_head_of(EVENTS, headers)
}

/// The head of a stream of this media type.
fn stream_head_of(media_type: &str, headers: &[(&str, String)]) -> Vec<u8> {
    let fixed = [
        ("content-type", media_type),
        ("cache-control", "no-cache"),
        ("transfer-encoding", "chunked"),
    ];
    head(
        200,
        fixed
            .into_iter()
            .chain(headers.iter().map(|(name, value)| (*name, value.as_str()))),
    )
}

/// A whole answer with this body, in the bytes that go over the socket.
pub(crate) fn whole_answer(body: &[u8]) -> Bytes {
    let ids = [
        ("request-id", "req_canned".to_owned()),
        ("x-request-id", "req_canned".to_owned()),
    ];
    let mut answer = stream_head(&ids);
    for piece in body.chunks(CANNED_CHUNK) {
        answer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        answer.extend_from_slice(piece);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer.into()
}

async fn send_json(
    peer: &mut Peer,
    status: u16,
    headers: &[(String, String)],
    body: &Value,
) -> io::Result<()> {
    let mut all = vec![("content-type".to_owned(), "application/json".to_owned())];
    all.extend_from_slice(headers);
    send_whole(peer, status, &all, body.to_string().as_bytes()).await
}

async fn send_whole(
    peer: &mut Peer,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<()> {
    let length = ("content-length", body.len().to_string());
    let all = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let mut answer = head(status, all.chain([(length.0, length.1.as_str())]));
    answer.extend_from_slice(body);
    peer.send(&answer).await
}
