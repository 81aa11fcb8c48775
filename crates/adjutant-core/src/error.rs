//! The one error of this crate.

use std::{error, fmt, sync::Arc, time::Duration};

use crate::{
    journal::JournalError,
    outcome::{Failure, Outcome},
    pause::PauseId,
    report::RunResult,
    run::Illegal,
};

/// Why a run did not happen, or how it failed.
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
enum Inner {
    Busy,
    Full(usize),
    Prompt(&'static str),
    Paused(Vec<PauseId>),
    Answers(Arc<str>),
    Failed(Arc<RunResult>, Failure),
    Unanswered(Option<Arc<RunResult>>),
    Journal(JournalError),
    Illegal(Illegal),
    Stuck,
}

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session is running already; wait for that run, or use a session of its own.
    Busy,
    /// The queue is full; wait until some of it was placed, or take something back.
    Full,
    /// The prompt cannot be sent.
    Prompt,
    /// The session has a run that waits for answers; give them with `resume`, or cancel it.
    Paused,
    /// The answers do not match what the run waits for.
    Answers,
    /// The run failed; its result is kept.
    Failed,
    /// The run has no answer: it was cancelled, waits, or ended without a text; its result is kept.
    Unanswered,
    /// The log could not be written or read.
    Journal,
    /// The log does not fold, or the executor stopped answering: a defect.
    Defect,
}

impl Error {
    /// Another run of the session is being performed.
    pub fn busy() -> Self {
        Inner::Busy.into()
    }

    /// The queue holds as many messages as it may.
    pub fn full(bound: usize) -> Self {
        Inner::Full(bound).into()
    }

    /// Nothing in the prompt can be answered.
    pub fn prompt(why: &'static str) -> Self {
        Inner::Prompt(why).into()
    }

    /// The run waits for these answers and takes no prompt.
    pub fn paused(pauses: Vec<PauseId>) -> Self {
        Inner::Paused(pauses).into()
    }

    /// The answers are not those that the run waits for.
    pub fn answers(why: impl Into<Arc<str>>) -> Self {
        Inner::Answers(why.into()).into()
    }

    /// The run came to no text.
    pub fn unanswered(result: Option<Arc<RunResult>>) -> Self {
        Inner::Unanswered(result).into()
    }

    /// An executor has nothing in flight and nothing that could arrive.
    pub fn stuck() -> Self {
        Inner::Stuck.into()
    }

    /// The result of a run; an error that holds it, if the run failed.
    ///
    /// # Errors
    /// `Failed` if the run failed.
    pub fn of_result(result: RunResult) -> Result<RunResult, Self> {
        match &result.outcome {
            Outcome::Failed { failure } => {
                let failure = failure.clone();
                Err(Self::failed(result, failure))
            }
            Outcome::Finished { .. } | Outcome::Limit { .. } | Outcome::Cancelled { .. } | Outcome::Paused { .. } => {
                Ok(result)
            }
        }
    }

    /// The run failed with this result.
    pub fn failed(result: RunResult, failure: Failure) -> Self {
        Inner::Failed(Arc::new(result), failure).into()
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match &*self.inner {
            Inner::Busy => ErrorKind::Busy,
            Inner::Full(_) => ErrorKind::Full,
            Inner::Prompt(_) => ErrorKind::Prompt,
            Inner::Paused(_) => ErrorKind::Paused,
            Inner::Answers(_) => ErrorKind::Answers,
            Inner::Failed(..) => ErrorKind::Failed,
            Inner::Unanswered(_) => ErrorKind::Unanswered,
            Inner::Journal(_) => ErrorKind::Journal,
            Inner::Illegal(_) | Inner::Stuck => ErrorKind::Defect,
        }
    }

    /// The result of the run that failed or has no answer, if there was one.
    pub fn result(&self) -> Option<&RunResult> {
        match &*self.inner {
            Inner::Failed(result, _) => Some(result),
            Inner::Unanswered(result) => result.as_deref(),
            _ => None,
        }
    }

    /// The error of the model, if that is how the run failed.
    pub fn model_error(&self) -> Option<&adjutant_llm::Error> {
        match &*self.inner {
            Inner::Failed(_, Failure::Model { error }) => Some(error),
            _ => None,
        }
    }

    /// The error of the journal, if that is what went wrong.
    pub fn journal_error(&self) -> Option<&JournalError> {
        match &*self.inner {
            Inner::Journal(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the same run may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Busy | ErrorKind::Full)
            || self.model_error().is_some_and(adjutant_llm::Error::is_retryable)
            || self.journal_error().is_some_and(JournalError::is_retryable)
    }

    /// How long a provider asked to wait, or another owner has the log, as far as that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        let log = self.journal_error().and_then(JournalError::retry_after);
        log.or_else(|| self.model_error()?.retry_after())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.inner {
            Inner::Busy => f.write_str("the session is running already; hint: `new_session` starts one of its own"),
            Inner::Full(bound) => write!(f, "the message cannot be queued: {bound} wait already"),
            Inner::Prompt(why) => write!(f, "the prompt cannot be sent: {why}"),
            Inner::Paused(pauses) => {
                let names: Vec<&str> = pauses.iter().map(|pause| &*pause.0).collect();
                write!(f, "the session has a run that waits for answers to: {}; hint: `resume`", names.join(", "))
            }
            Inner::Answers(why) => write!(f, "the answers do not match what the run waits for: {why}"),
            Inner::Failed(_, Failure::Model { .. }) => f.write_str("the model call failed"),
            Inner::Failed(_, failure) => write!(f, "the run failed: {failure}"),
            Inner::Unanswered(None) => f.write_str("the agent did not answer: its events ended early"),
            Inner::Unanswered(Some(result)) => {
                write!(f, "the agent did not answer: the run is {}", result.outcome.kind())
            }
            Inner::Journal(_) => f.write_str("the log could not be used"),
            Inner::Illegal(_) => f.write_str("the log does not fold"),
            Inner::Stuck => f.write_str("the run waits, but nothing is in flight"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &*self.inner {
            Inner::Failed(_, Failure::Model { error }) => Some(error),
            Inner::Journal(error) => Some(error),
            Inner::Illegal(error) => Some(error),
            Inner::Busy
            | Inner::Full(_)
            | Inner::Prompt(_)
            | Inner::Paused(_)
            | Inner::Answers(_)
            | Inner::Failed(..)
            | Inner::Unanswered(_)
            | Inner::Stuck => None,
        }
    }
}

impl From<Inner> for Error {
    fn from(inner: Inner) -> Self {
        Self { inner: Box::new(inner) }
    }
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Inner::Journal(error).into()
    }
}

impl From<Illegal> for Error {
    fn from(error: Illegal) -> Self {
        Inner::Illegal(error).into()
    }
}

/// An error and everything that caused it, in one line.
pub fn chain(error: &dyn error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
