//! A model that counts what it is asked and what that takes, also when no answer comes of it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use adjutant::{
    Model,
    llm::{Chunk, ChunkStream, Error, ModelId, ModelInfo, NanoUsd, Request, Usage},
};
use futures_core::Stream;

/// The totals that requests took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) usage: Usage,
    /// Unknown if the price of any is.
    pub(crate) cost: Option<NanoUsd>,
}

/// A model whose requests are counted.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    model: Arc<dyn Model>,
    spent: Arc<Mutex<Spent>>,
}

impl Meter {
    /// The model, of which nothing was asked.
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        let spent = Spent { requests: 0, usage: Usage::default(), cost: Some(NanoUsd::default()) };
        Self { model, spent: Arc::new(Mutex::new(spent)) }
    }

    /// Returns the totals so far.
    pub(crate) fn spent(&self) -> Spent {
        *self.lock()
    }

    fn add(&self, model: &ModelId, usage: &Usage) {
        let cost = self.model.info_of(model).cost(usage);
        let mut spent = self.lock();
        spent.usage += *usage;
        spent.cost = spent.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Meter {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.model.info_of(model)
    }

    fn stream(&self, request: Request) -> ChunkStream {
        self.lock().requests += 1;
        let (stream, model) = (self.model.stream(request), self.info().id.clone());
        Box::pin(Metered { meter: self.clone(), stream, model, usage: Usage::default() })
    }
}

/// One stream, and what its attempt has used.
struct Metered {
    meter: Meter,
    stream: ChunkStream,
    model: ModelId,
    usage: Usage,
}

impl Metered {
    fn settle(&mut self, usage: Usage) {
        self.usage = Usage::default();
        if usage.total() > 0 {
            self.meter.add(&self.model, &usage);
        }
    }
}

impl Stream for Metered {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = self.stream.as_mut().poll_next(cx);
        match &item {
            Poll::Ready(Some(Ok(Chunk::Start { model, .. }))) => self.model = model.clone(),
            Poll::Ready(Some(Ok(Chunk::Usage { usage, .. }))) => self.usage = *usage,
            Poll::Ready(Some(Ok(Chunk::Retracted { usage, .. }))) => self.settle(*usage),
            Poll::Ready(Some(Ok(Chunk::Done(reply)))) => self.settle(reply.usage),
            _ => {}
        }
        item
    }
}

impl Drop for Metered {
    /// An attempt that broke off was billed too.
    fn drop(&mut self) {
        let usage = self.usage;
        self.settle(usage);
    }
}

#[cfg(test)]
mod tests {
    use adjutant::llm::{ErrorKind, Script, ScriptedModel, complete};

    use super::*;

    #[test]
    fn spent_holds_attempts_when_they_were_void_or_broke_off() {
        let usage = |output| Usage { output, ..Usage::default() };
        let broke = || Error::new(ErrorKind::Network, "the line broke");
        let void = Script::new().text("Half").usage(usage(3));
        let scripts = [
            Script::new().text("Whole.").usage(usage(5)).after_retracted(void, broke()),
            Script::new().text("Half").usage(usage(7)).fail(broke()),
        ];
        let meter = Meter::new(Arc::new(ScriptedModel::new(scripts)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let ask = || runtime.block_on(complete(&meter, Request::new().user("Hi!")));
        assert_eq!(ask().map(|reply| reply.text()), Ok("Whole.".to_owned()));
        assert_eq!((meter.spent().requests, meter.spent().usage), (1, usage(8)));
        assert_eq!(ask(), Err(broke()));
        assert_eq!((meter.spent().requests, meter.spent().usage), (2, usage(15)));
    }
}
