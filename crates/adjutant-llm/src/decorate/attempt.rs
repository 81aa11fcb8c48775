//! One attempt of a model, as a decorator that may follow it by another one sees it.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    Block, Chunk, ChunkStream, Error, ErrorKind, FinishReason, Model, Reply, Request, Usage,
};

/// Items of a stream that come before all others.
pub(crate) type PendingChunks = VecDeque<Result<Chunk, Error>>;

/// After how many withheld chunks in a row others get their turn.
const BURST: u32 = 64;

/// One attempt. Its start and its usage are withheld until the first content, so that an attempt without content can
/// be discarded without a trace.
pub(crate) struct Attempt {
    stream: ChunkStream,
    start: Option<Chunk>,
    spent: Option<Chunk>,
    next: Option<Chunk>,
    shown: bool,
    /// Its number, from its start.
    number: u32,
    /// The highest used number.
    taken: u32,
    usage: Usage,
    /// The condition under which an empty reply is an error instead of the end.
    empty: EmptyReply,
}

/// The condition under which an empty reply with a normal stop is an error, so that it is requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyReply {
    /// Never: it is the reply.
    Accept,
    /// While the attempt has emitted no content.
    RejectUnseen,
    /// Always.
    Reject,
}

impl Attempt {
    /// Sends the request to the model.
    pub(crate) fn new(model: &dyn Model, request: &Request, empty: EmptyReply) -> Self {
        Self {
            stream: model.stream(request.clone()),
            start: None,
            spent: None,
            next: None,
            shown: false,
            number: request.attempt,
            taken: request.attempt,
            usage: Usage::default(),
            empty,
        }
    }

    /// The next chunk to emit. An error is the end, after which the attempt is abandoned or failed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Chunk, Error>> {
        if self.next.is_some()
            && let Some(chunk) = self
                .start
                .take()
                .or_else(|| self.spent.take())
                .or_else(|| self.next.take())
        {
            return Poll::Ready(Ok(self.show(chunk)));
        }
        for _ in 0..BURST {
            match ready!(self.stream.as_mut().poll_next(cx)) {
                Some(Ok(Chunk::Done(reply))) if self.rejects(&reply) => {
                    let message = format!("{} returned an empty reply", reply.model);
                    return Poll::Ready(Err(Error::new(ErrorKind::Generation, message)));
                }
                Some(Ok(chunk)) if self.shown => return Poll::Ready(Ok(self.show(chunk))),
                Some(Ok(chunk @ Chunk::Pending { .. })) => return Poll::Ready(Ok(chunk)),
                Some(Ok(chunk @ Chunk::Start { .. })) if self.start.is_none() => {
                    self.record_start(chunk)
                }
                Some(Ok(chunk @ Chunk::Usage { .. })) if self.start.is_some() => {
                    self.note(&chunk);
                    self.spent = Some(chunk);
                }
                Some(Ok(chunk)) => {
                    let Some(start) = self.start.take() else {
                        let message =
                            "the stream of the model broke its grammar: a chunk before the start";
                        return Poll::Ready(Err(Error::new(ErrorKind::Protocol, message)));
                    };
                    self.next = Some(chunk);
                    return Poll::Ready(Ok(self.show(start)));
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => {
                    let message = "the stream of the model ended without a reply";
                    return Poll::Ready(Err(Error::new(ErrorKind::Protocol, message)));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// True if this reply is empty in spite of a normal stop, and must be requested again.
    fn rejects(&self, reply: &Reply) -> bool {
        match self.empty {
            EmptyReply::Accept => return false,
            EmptyReply::RejectUnseen if self.shown => return false,
            EmptyReply::RejectUnseen | EmptyReply::Reject => {}
        }
        let is_opaque = |block: &Arc<Block>| matches!(**block, Block::Opaque { .. });
        reply.stop == FinishReason::End && reply.is_silent() && !reply.blocks.iter().any(is_opaque)
    }

    /// True if a reader has seen something of the attempt.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }

    /// The number of an attempt that follows this one.
    pub(crate) fn following(&self) -> u32 {
        self.taken.saturating_add(1)
    }

    /// Discards the attempt: emitted content is retracted, and usage without content is reported.
    pub(crate) fn give_up(mut self, cause: Error, out: &mut PendingChunks) {
        if !self.shown && self.usage.total() == 0 {
            return;
        }
        out.extend(self.start.take().map(Ok));
        out.push_back(Ok(Chunk::Retracted {
            attempt: self.number,
            cause,
            usage: self.usage,
        }));
    }

    /// Ends the stream with the attempt.
    pub(crate) fn fail(mut self, error: Error, out: &mut PendingChunks) {
        out.extend(self.start.take().map(Ok));
        out.extend(self.spent.take().map(Ok));
        out.push_back(Err(error));
    }

    fn record_start(&mut self, start: Chunk) {
        self.note(&start);
        self.start = Some(start);
    }

    fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Start { attempt, .. } => {
                self.number = *attempt;
                self.taken = self.taken.max(*attempt);
                self.usage = Usage::default();
            }
            Chunk::Usage { usage, .. } => self.usage = *usage,
            _ => {}
        }
    }

    /// Records the emitted chunks. After an attempt that retracts itself, nothing counts as emitted.
    fn show(&mut self, chunk: Chunk) -> Chunk {
        self.shown = true;
        match &chunk {
            Chunk::Start { .. } | Chunk::Usage { .. } => self.note(&chunk),
            Chunk::Retracted { .. } => {
                self.shown = false;
                self.usage = Usage::default();
            }
            Chunk::Open { .. }
            | Chunk::Delta { .. }
            | Chunk::Close { .. }
            | Chunk::Warned { .. }
            | Chunk::Pending { .. }
            | Chunk::Done(_) => {}
        }
        chunk
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("number", &self.number)
            .field("shown", &self.shown)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}
