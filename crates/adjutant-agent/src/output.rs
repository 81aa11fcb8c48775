//! Answers of runs as values of a type: what is wanted, how an answer is judged, and who waits for one.

use std::{
    fmt,
    future::IntoFuture,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use adjutant_core::{Error, Event, EventKind, OutputVerdict, OutputWish, Run, RunResult};
use adjutant_llm::{Format, Model, Options, PartialAnswer, Shape, UserMessage};
use futures_core::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{agent::RunBuilder, running::Running, setup::Setup};

/// The name of an answer whose schema has no Rust type.
const NAME: &str = "answer";
/// The largest number of bytes of an application's reason that a model is told.
const MAX_REASON: usize = 4 * 1024;

/// The answer that runs of an agent are wanted to come to: a type, or a JSON schema.
///
/// The model is asked in the way that it has, beside the agent's tools. An answer that does not fit is sent back with
/// what is wrong, twice unless it is set, within the same run, log, limits and budget; then the run fails.
pub struct Output<T> {
    goal: Goal,
    reads: PhantomData<fn() -> T>,
}

/// The value that a run came to, beside its result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TypedResult<T> {
    /// The value.
    pub value: T,
    /// The result of the run.
    pub result: RunResult,
}

/// A run that is wanted to come to a value: await it, or read its events with [`stream`](OutputRun::stream).
///
/// A run that is resumed wants what it was begun with; a validator is to be given again.
///
/// # Errors
/// As those of a [`RunBuilder`], and: `Prompt` if the schema is none, `Failed` if no answer was what is wanted,
/// `Unanswered` if the run ended without one: at a limit, cancelled, waiting.
#[must_use = "a run begins when it is awaited or streamed"]
pub struct OutputRun<T> {
    run: RunBuilder,
    output: Result<Output<T>, Error>,
}

/// A live run that is wanted to come to a value: its events, and after them the value as far as it is known.
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
    /// The answer as far as it was said. It only grows, until `ReplyRetracted` or `OutputRefused` makes it void.
    Partial(Value),
}

/// The answer that a run should come to.
#[derive(Clone)]
pub(crate) struct Goal {
    pub(crate) shape: Shape<Value>,
    /// Reads a value as the type that is wanted; what is wrong is said in words for the model.
    reads: fn(&Value) -> Result<(), String>,
    check: Option<Arc<Check>>,
}

type Check = dyn Fn(Value) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

impl<T: DeserializeOwned + JsonSchema> Output<T> {
    /// Values of this type.
    ///
    /// # Errors
    /// `Prompt` if the type's schema is none.
    pub fn new() -> Result<Self, Error> {
        let shape = Shape::<T>::new().map_err(Error::Output)?;
        Ok(Self::of_shape(shape.untyped()))
    }
}

impl<T: DeserializeOwned> Output<T> {
    /// What fits a schema that is only known at run time; `T` is what reads it, for example `serde_json::Value`.
    ///
    /// # Errors
    /// `Prompt` if it is no JSON schema, or if its name has other than 1 to 64 letters, digits, `_` and `-`.
    pub fn of(format: Format) -> Result<Self, Error> {
        Ok(Self::of_shape(Shape::of(format).map_err(Error::Output)?))
    }

    fn of_shape(shape: Shape<Value>) -> Self {
        let reads = |value: &Value| T::deserialize(value).map(drop).map_err(|error| Shape::<Value>::misfit(&error));
        Self { goal: Goal { shape, reads, check: None }, reads: PhantomData }
    }

    /// Sets how often the model may be sent back; 2 without it.
    #[must_use]
    pub fn repairs(mut self, times: u32) -> Self {
        self.goal.shape.repairs = times;
        self
    }

    /// Sets who looks at a value that fits, and refuses it with a reason for the model.
    ///
    /// It is asked once for each answer, and what it says is in the log.
    #[must_use]
    pub fn validate<F, Fut>(mut self, validator: F) -> Self
    where
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.goal.check = Some(Arc::new(move |value| match serde_json::from_value(value) {
            Ok(value) => Box::pin(validator(value)),
            Err(error) => Box::pin(std::future::ready(Err(error.to_string()))),
        }));
        self
    }

    pub(crate) fn goal(self) -> Arc<Goal> {
        Arc::new(self.goal)
    }
}

impl RunBuilder {
    /// Wants the run to come to a value of this type.
    pub fn output<T: DeserializeOwned + JsonSchema>(self) -> OutputRun<T> {
        OutputRun { run: self, output: Output::new() }
    }

    /// Wants the run to come to JSON that fits this schema.
    pub fn output_schema(self, schema: impl Into<Arc<Value>>) -> OutputRun<Value> {
        OutputRun { run: self, output: Output::of(Format::new(NAME, schema)) }
    }
}

impl<T: DeserializeOwned> OutputRun<T> {
    /// Sets how often the model may be sent back; see [`Output::repairs`].
    pub fn repairs(self, times: u32) -> Self {
        Self { output: self.output.map(|output| output.repairs(times)), ..self }
    }

    /// Sets who refuses a value that fits; see [`Output::validate`].
    pub fn validate<F, Fut>(self, validator: F) -> Self
    where
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self { output: self.output.map(|output| output.validate(validator)), ..self }
    }

    /// Begins the run as a stream of its events and of the value while it comes.
    ///
    /// # Errors
    /// As [`RunBuilder::stream`], and `Prompt` if the schema is none.
    pub fn stream(self) -> Result<OutputStream<T>, Error> {
        let goal = self.output?.goal();
        let partial = goal.shape.partial();
        let running = self.run.wanting(goal).stream()?;
        Ok(OutputStream { running, partial, grown: None, reads: PhantomData })
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for OutputRun<T> {
    type Output = Result<TypedResult<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let run = self.output.map(|output| self.run.wanting(output.goal()));
        Box::pin(async move { typed(run?.await?) })
    }
}

impl<T: DeserializeOwned> OutputStream<T> {
    /// The live run: it can be stopped, and things can be said to it.
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
        typed(self.running.finish().await?)
    }
}

impl<T> OutputStream<T> {
    /// Follows the answer; the value, if it has grown.
    fn see(&mut self, event: &Event) -> Option<Value> {
        // Those of agents under it answer somebody else.
        if event.who.depth > 0 {
            return None;
        }
        match &event.kind {
            EventKind::ReplyStarted { .. } | EventKind::ReplyRetracted { .. } => self.partial.begin(),
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
        let Some(event) = ready!(Pin::new(&mut self.running).poll_next(cx)) else { return Poll::Ready(None) };
        self.grown = self.see(&event);
        Poll::Ready(Some(OutputStep::Event(Box::new(event))))
    }
}

/// The value of a run that ended.
fn typed<T: DeserializeOwned>(result: RunResult) -> Result<TypedResult<T>, Error> {
    match result.output_as() {
        Some(Ok(value)) => Ok(TypedResult { value, result }),
        Some(Err(_)) | None => Err(Error::Unanswered(Some(Arc::new(result)))),
    }
}

impl Goal {
    /// The wish as the log holds it.
    pub(crate) fn wish(&self) -> OutputWish {
        let is_checked = self.check.is_some();
        OutputWish { format: self.shape.given(), repairs: self.shape.repairs, is_checked }
    }

    /// What a run was begun with, checked by what is known here; and what is to be said about it.
    pub(crate) fn resumed(
        known: Option<&Arc<Self>>,
        wish: Option<&OutputWish>,
    ) -> (Option<Arc<Self>>, Option<&'static str>) {
        let Some(wish) = wish else {
            return (None, known.map(|_| "the run was begun without a wanted answer, and goes on without one"));
        };
        let unchecked = wish.is_checked && known.is_none_or(|known| known.check.is_none());
        let warning = unchecked.then_some("who checked answers when the run was begun is not here: the schema decides");
        if known.is_some_and(|known| known.shape.given() == wish.format && known.shape.repairs == wish.repairs) {
            return (known.cloned(), warning);
        }
        let Ok(mut shape) = Shape::<Value>::of(wish.format.clone()) else {
            return (None, Some("the wanted answer of the log cannot be asked for, and the run goes on without it"));
        };
        shape.repairs = wish.repairs;
        let (reads, check) = known.map_or((Self::any as _, None), |known| (known.reads, known.check.clone()));
        (Some(Arc::new(Self { shape, reads, check })), warning)
    }

    fn any(_: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// An answer that is about to be judged.
pub(crate) struct Judging {
    goal: Arc<Goal>,
    read: Result<Value, String>,
    left: u32,
    model: Arc<dyn Model>,
    options: Arc<Options>,
}

/// The judgement about an answer, and what asks for another one.
pub(crate) struct Judged {
    pub(crate) verdict: OutputVerdict,
    pub(crate) again: Option<UserMessage>,
}

impl Judging {
    /// The answer of the turn that is about to be settled, if one is wanted and given.
    pub(crate) fn new(setup: &Setup, run: &Run) -> Option<Self> {
        let goal = setup.goal.as_ref()?;
        let (_, refused) = run.output()?;
        let read = goal.shape.read(run.reply()?)?;
        let (model, _) = setup.chosen(run.request().chosen_model);
        let (left, options) = (goal.shape.repairs.saturating_sub(refused), setup.options_of(run));
        Some(Self { goal: Arc::clone(goal), read, left, model, options })
    }

    /// Judges the answer: the schema, the type, and then the application.
    pub(crate) async fn judge(self) -> Judged {
        let Self { goal, read, left, model, options } = self;
        let read = read.and_then(|value| (goal.reads)(&value).map(|()| value));
        let judged = match (read, &goal.check) {
            (Ok(value), Some(check)) => {
                let checked = check(value.clone()).await;
                checked.map(|()| value).map_err(|reason| format!("The answer is not accepted: {}", short(&reason)))
            }
            (read, _) => read,
        };
        match judged {
            Ok(value) => Judged { verdict: OutputVerdict::Accepted { value: Arc::new(value) }, again: None },
            Err(reason) => {
                let again = Some(goal.shape.again(model.info(), &options, &reason));
                Judged { verdict: OutputVerdict::Refused { reason: reason.into(), left }, again }
            }
        }
    }
}

fn short(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Self { goal: self.goal.clone(), reads: PhantomData }
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Goal").field("shape", &self.shape).field("is_checked", &self.check.is_some()).finish()
    }
}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.goal).finish()
    }
}

impl<T> fmt::Debug for OutputRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputRun").field("run", &self.run).field("output", &self.output).finish()
    }
}

impl<T> fmt::Debug for OutputStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputStream").field("running", &self.running).finish_non_exhaustive()
    }
}
