//! The decorator: one span and one set of metrics for each call of a model.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::Instant;
use tracing::Span;

use super::{
    Contents, messages,
    metrics::{self, Measured},
    semconv, spans,
};
use crate::{
    Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Reply, Request, Usage,
};

/// A model whose calls are spans: `chat <model>`, from the request to the last chunk.
///
/// The span covers retries inside the model, and counts what retracted attempts used. Without an interested subscriber
/// the stream of the inner model is given as it is. Dropping a stream ends its span as cancelled.
#[derive(Debug, Clone)]
pub struct Traced<M> {
    /// The model whose calls are traced.
    pub model: M,
    /// True if the spans contain the messages; false by default.
    pub contents: Contents,
}

impl<M: Model> Traced<M> {
    /// Traces the calls of a model, without the messages.
    pub fn new(model: M) -> Self {
        Self {
            model,
            contents: Contents::Omitted,
        }
    }
}

impl<M: Model> Model for Traced<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.model.info_of(model)
    }

    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let model = self.model.with_info(info)?;
        Some(Arc::new(Traced {
            model,
            contents: self.contents,
        }))
    }

    fn stream(&self, request: Request) -> ChunkStream {
        // The subscriber of another thread makes spans look enabled on threads without a subscriber.
        if tracing::dispatcher::get_default(|it| it.is::<tracing::subscriber::NoSubscriber>()) {
            return self.model.stream(request);
        }
        let info = self.model.info();
        let span = spans::chat_span(info, &request, self.contents);
        if span.is_disabled() && !metrics::is_enabled() {
            return self.model.stream(request);
        }
        let call = Call {
            span,
            contents: self.contents,
            model: info.id.clone(),
            begun: Instant::now(),
            to_first_chunk: None,
            retracted: Usage::default(),
            attempt: Usage::default(),
        };
        let stream = call.span.in_scope(|| self.model.stream(request));
        Box::pin(Watched {
            stream,
            call: Some(call),
        })
    }
}

/// A stream whose call is watched until it ends.
struct Watched {
    stream: ChunkStream,
    call: Option<Call>,
}

/// The known facts of a running call.
struct Call {
    span: Span,
    contents: Contents,
    model: ModelId,
    begun: Instant,
    to_first_chunk: Option<Duration>,
    retracted: Usage,
    attempt: Usage,
}

/// The end of a call.
enum SpanEnd<'a> {
    Reply(&'a Reply),
    Error(&'static str, &'a str),
}

impl Stream for Watched {
    type Item = Result<Chunk, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(call) = &mut this.call else {
            return this.stream.as_mut().poll_next(cx);
        };
        let polled = call.span.in_scope(|| this.stream.as_mut().poll_next(cx));
        let Poll::Ready(item) = &polled else {
            return polled;
        };
        let end = match item {
            Some(Ok(Chunk::Done(reply))) => SpanEnd::Reply(reply),
            Some(Ok(chunk)) => {
                call.see(chunk);
                return polled;
            }
            Some(Err(error)) => SpanEnd::Error(semconv::error_type(error.kind()), error.message()),
            None => SpanEnd::Error(
                semconv::error_type(ErrorKind::Protocol),
                "the stream ended without a reply",
            ),
        };
        if let Some(call) = this.call.take() {
            call.end(end);
        }
        polled
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.end(SpanEnd::Error(
                semconv::error_type(ErrorKind::Cancelled),
                "",
            ));
        }
    }
}

impl Call {
    fn see(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Usage { usage, .. } => self.attempt = *usage,
            Chunk::Retracted { usage, .. } => {
                self.retracted += *usage;
                self.attempt = Usage::default();
            }
            Chunk::Open { .. } if self.to_first_chunk.is_none() => {
                let took = self.begun.elapsed();
                self.to_first_chunk = Some(took);
                self.span
                    .record(semconv::RESPONSE_TIME_TO_FIRST_CHUNK, took.as_secs_f64());
            }
            Chunk::Start { .. }
            | Chunk::Open { .. }
            | Chunk::Delta { .. }
            | Chunk::Close { .. }
            | Chunk::Warned { .. }
            | Chunk::Pending { .. }
            | Chunk::Done(_) => {}
        }
    }

    fn end(self, end: SpanEnd<'_>) {
        let (usage, error) = match end {
            SpanEnd::Reply(reply) => {
                spans::record_reply(&self.span, reply, self.contents);
                (self.retracted + reply.usage, None)
            }
            SpanEnd::Error(kind, message) => {
                self.span
                    .record(semconv::RESPONSE_FINISH_REASONS, messages::json(&["error"]));
                // A message may repeat the conversation.
                let message = if self.contents == Contents::Recorded {
                    message
                } else {
                    ""
                };
                spans::record_error(&self.span, kind, message);
                (self.retracted + self.attempt, Some(kind))
            }
        };
        spans::record_usage(&self.span, &usage);
        let (provider, model) = self
            .model
            .as_str()
            .split_once('/')
            .unwrap_or(("", self.model.as_str()));
        let measured = Measured {
            provider: semconv::provider(provider),
            model,
            took: self.begun.elapsed(),
            to_first_chunk: self.to_first_chunk,
            usage,
            error,
        };
        // In the span, so that an exporter can tie the one to the other.
        self.span.in_scope(|| measured.emit());
    }
}
