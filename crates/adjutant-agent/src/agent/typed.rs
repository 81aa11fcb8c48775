//! A run with a typed output: as a future, or as a stream of partial values.

use std::{
    fmt,
    future::IntoFuture,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use adjutant_core::{Error, Event, EventKind, RunResult};
use adjutant_llm::{Format, PartialAnswer};
use futures_core::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RunBuilder;
use crate::{output::Output, running::Running};

/// The name of an answer with a schema instead of a Rust type.
const NAME: &str = "answer";

/// The value of a run together with its result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TypedResult<T> {
    /// The value.
    pub value: T,
    /// The result of the run.
    pub result: RunResult,
}

/// A run with a requested value: await it, or read its events with [`stream`](OutputRun::stream).
///
/// A resumed run keeps the output that it was started with; pass its validator again.
///
/// # Errors
/// The errors of a [`RunBuilder`], and: `Prompt` if the schema is not valid, `Failed` if no answer was valid,
/// `Unanswered` if the run ended without one: at a limit, cancelled, waiting.
#[must_use = "a run begins when it is awaited or streamed"]
pub struct OutputRun<T> {
    run: RunBuilder,
    output: Result<Output<T>, Error>,
}

/// A live run with a typed output: its events, each followed by the current partial value.
#[must_use = "a run does nothing until its events are read"]
pub struct OutputStream<T> {
    running: Running,
    partial: PartialAnswer,
    grown: Option<Value>,
    reads: PhantomData<fn() -> T>,
}

/// Something that a run with a wanted answer does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OutputStep {
    /// An event of the run.
    Event(Box<Event>),
    /// The answer so far. It only grows, until `ReplyRetracted` or `OutputRefused` voids it.
    Partial(Value),
}

impl RunBuilder {
    /// Requests a value of this type from the run.
    pub fn output<T: DeserializeOwned + JsonSchema>(self) -> OutputRun<T> {
        OutputRun {
            run: self,
            output: Output::new(),
        }
    }

    /// Requests JSON that matches this schema from the run.
    pub fn output_schema(self, schema: impl Into<Arc<Value>>) -> OutputRun<Value> {
        OutputRun {
            run: self,
            output: Output::from_format(Format::new(NAME, schema)),
        }
    }
}

impl<T: DeserializeOwned> OutputRun<T> {
    /// Sets how often the model may be sent back; see [`Output::repairs`].
    pub fn repairs(self, times: u32) -> Self {
        Self {
            output: self.output.map(|output| output.repairs(times)),
            ..self
        }
    }

    /// Sets who refuses a value that fits; see [`Output::validate`].
    pub fn validate<F, Fut>(self, validator: F) -> Self
    where
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self {
            output: self.output.map(|output| output.validate(validator)),
            ..self
        }
    }

    /// Begins the run as a stream of its events and of the value while it comes.
    ///
    /// # Errors
    /// As [`RunBuilder::stream`], and `Prompt` if the schema is not valid.
    pub fn stream(self) -> Result<OutputStream<T>, Error> {
        let goal = self.output?.goal();
        let partial = goal.shape.partial();
        let running = self.run.wanting(goal).stream()?;
        Ok(OutputStream {
            running,
            partial,
            grown: None,
            reads: PhantomData,
        })
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for OutputRun<T> {
    type Output = Result<TypedResult<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let run = self.output.map(|output| self.run.wanting(output.goal()));
        Box::pin(async move { decode_result(run?.await?) })
    }
}

impl<T: DeserializeOwned> OutputStream<T> {
    /// Returns the live run, to cancel it or to send it messages.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Drives the run to its end without looking at further events.
    ///
    /// Cancel: the run is cancelled.
    ///
    /// # Errors
    /// As awaiting an [`OutputRun`].
    pub async fn finish(self) -> Result<TypedResult<T>, Error> {
        decode_result(self.running.finish().await?)
    }
}

impl<T> OutputStream<T> {
    /// Follows the answer; the value, if it has grown.
    fn see(&mut self, event: &Event) -> Option<Value> {
        // Replies of sub-agents belong to other requests.
        if event.who.depth > 0 {
            return None;
        }
        match &event.kind {
            EventKind::ReplyStarted { .. } | EventKind::ReplyRetracted { .. } => {
                self.partial.begin()
            }
            EventKind::BlockStarted { block, kind } => self.partial.open(*block, kind),
            EventKind::TextDelta { block, text } | EventKind::ArgsDelta { block, text } => {
                return self.partial.grow(*block, text).cloned();
            }
            _ => {}
        }
        None
    }
}

impl<T> Stream for OutputStream<T> {
    type Item = OutputStep;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<OutputStep>> {
        if let Some(value) = self.grown.take() {
            return Poll::Ready(Some(OutputStep::Partial(value)));
        }
        let Some(event) = ready!(Pin::new(&mut self.running).poll_next(cx)) else {
            return Poll::Ready(None);
        };
        self.grown = self.see(&event);
        Poll::Ready(Some(OutputStep::Event(Box::new(event))))
    }
}

/// The value of a run that ended.
fn decode_result<T: DeserializeOwned>(result: RunResult) -> Result<TypedResult<T>, Error> {
    match result.output_as() {
        Some(Ok(value)) => Ok(TypedResult { value, result }),
        Some(Err(_)) | None => Err(Error::Unanswered(Some(Arc::new(result)))),
    }
}

impl<T> fmt::Debug for OutputRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputRun")
            .field("run", &self.run)
            .field("output", &self.output)
            .finish()
    }
}

impl<T> fmt::Debug for OutputStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputStream")
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
