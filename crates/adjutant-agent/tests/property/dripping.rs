//! A model that can be interrupted anywhere.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use adjutant_llm::{Chunk, ChunkStream, Error, Model, ModelInfo, Request, ScriptedModel};
use futures_core::Stream;

/// A model whose stream is pending once before every chunk, so that a cut may fall anywhere.
#[derive(Debug)]
pub(crate) struct Dripping(pub(crate) Arc<ScriptedModel>);

impl Model for Dripping {
    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn stream(&self, request: Request) -> ChunkStream {
        Box::pin(Drip {
            stream: self.0.stream(request),
            ready: false,
        })
    }
}

struct Drip {
    stream: ChunkStream,
    ready: bool,
}

impl Stream for Drip {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.stream.as_mut().poll_next(cx)
    }
}
