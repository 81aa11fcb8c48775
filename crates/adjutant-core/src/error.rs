//! The one error of this crate.

use std::{error, fmt, sync::Arc, time::Duration};

use adjutant_llm::Cause;

use adjutant_llm::ModelId;

use crate::{
    journal::JournalError,
    outcome::{Failure, Outcome},
    pause::PauseId,
    report::RunResult,
    run::Illegal,
};

/// The reason why a run did not happen, or failed; [`kind`](Error::kind) decides how a caller can react.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// Another run of the session is being performed.
    Busy,
    /// The queue holds as many messages as it may.
    Full(usize),
    /// Nothing in the prompt can be answered.
    Prompt(&'static str),
    /// No running agent of this name exists under the first one, or several do.
    Agent(Arc<str>, Arc<str>),
    /// The run waits for these answers and takes no prompt.
    Paused(Vec<PauseId>),
    /// The requested output of the run is invalid.
    Output(adjutant_llm::Error),
    /// The answers do not match the pauses of the run.
    Answers(Arc<str>),
    /// The run goes by a model that the agent does not know.
    UnknownModel {
        /// The model of the run.
        model: ModelId,
        /// The models that the agent knows.
        known: Vec<ModelId>,
    },
    /// The run failed with this result, by the model's error.
    Model(Arc<RunResult>, adjutant_llm::Error),
    /// The run failed with this result, by something else.
    Failed(Arc<RunResult>, Failure),
    /// The run came to no text.
    Unanswered(Option<Arc<RunResult>>),
    /// The log could not be written or read.
    Journal(JournalError),
    /// The log does not fold.
    Illegal(Illegal),
    /// An executor has nothing in flight and nothing that could arrive.
    Stuck,
}

/// The kind of an error: it decides how a caller can react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session is already running; wait for that run, or use another session.
    Busy,
    /// The queue is full; wait until some of it was placed, or take something back.
    Full,
    /// The prompt cannot be sent, or the requested output is invalid.
    Prompt,
    /// The session has a run that waits for answers; answer them with `resume`, or cancel it.
    Paused,
    /// No such agent is running, or several have this name.
    Agent,
    /// The answers do not match what the run waits for.
    Answers,
    /// The run uses a model that the agent does not know; pass it, or another one to continue with.
    Model,
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
    /// The result of a run; an error that holds it, if the run failed.
    ///
    /// # Errors
    /// `Failed` if the run failed.
    pub fn check_result(result: RunResult) -> Result<RunResult, Self> {
        match &result.outcome {
            Outcome::Failed { failure } => {
                let failure = failure.clone();
                Err(Self::from_failure(result, failure))
            }
            Outcome::Finished { .. }
            | Outcome::Limit { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Paused { .. } => Ok(result),
        }
    }

    /// The run failed with this result.
    pub fn from_failure(result: RunResult, failure: Failure) -> Self {
        let result = Arc::new(result);
        match failure {
            Failure::Model { error } => Self::Model(result, error),
            failure => Self::Failed(result, failure),
        }
    }

    /// Returns the kind of the error, which decides how a caller can react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy => ErrorKind::Busy,
            Self::Full(_) => ErrorKind::Full,
            Self::Prompt(_) | Self::Output(_) => ErrorKind::Prompt,
            Self::Paused(_) => ErrorKind::Paused,
            Self::Agent(..) => ErrorKind::Agent,
            Self::Answers(_) => ErrorKind::Answers,
            Self::UnknownModel { .. } => ErrorKind::Model,
            Self::Model(..) | Self::Failed(..) => ErrorKind::Failed,
            Self::Unanswered(_) => ErrorKind::Unanswered,
            Self::Journal(_) => ErrorKind::Journal,
            Self::Illegal(_) | Self::Stuck => ErrorKind::Defect,
        }
    }

    /// The result of the run that failed or has no answer, if there was one.
    pub fn result(&self) -> Option<&RunResult> {
        match self {
            Self::Model(result, _) | Self::Failed(result, _) => Some(result),
            Self::Unanswered(result) => result.as_deref(),
            _ => None,
        }
    }

    /// The error of the model, if that is how the run failed.
    pub fn model_error(&self) -> Option<&adjutant_llm::Error> {
        match self {
            Self::Model(_, error) => Some(error),
            _ => None,
        }
    }

    /// The error of the journal, if that is the cause.
    pub fn journal_error(&self) -> Option<&JournalError> {
        match self {
            Self::Journal(error) => Some(error),
            _ => None,
        }
    }

    /// True if the same run may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Busy | ErrorKind::Full)
            || self
                .model_error()
                .is_some_and(adjutant_llm::Error::is_retryable)
            || self.journal_error().is_some_and(JournalError::is_retryable)
    }

    /// Returns the wait that a provider requested, or the remaining time of another owner's lease, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        let log = self.journal_error().and_then(JournalError::retry_after);
        log.or_else(|| self.model_error()?.retry_after())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str(
                "the session is running already; hint: `new_session` starts one of its own",
            ),
            Self::Full(waiting) => {
                write!(f, "the message cannot be queued: {waiting} wait already")
            }
            Self::Prompt(why) => write!(f, "the prompt cannot be sent: {why}"),
            Self::Paused(pauses) => {
                write!(
                    f,
                    "the session has a run that waits for answers to: {}; hint: `resume`",
                    names(pauses)
                )
            }
            Self::Agent(name, why) => write!(f, "no agent {name:?} can be spoken to: {why}"),
            Self::Answers(why) => {
                write!(f, "the answers do not match what the run waits for: {why}")
            }
            Self::Output(error) => write!(f, "the wanted answer cannot be asked for: {error}"),
            Self::Model(_, error) => error.fmt(f),
            Self::Failed(_, failure) => write!(f, "the run failed: {failure}"),
            Self::Unanswered(None) => {
                f.write_str("the agent did not answer: its events ended early")
            }
            Self::Unanswered(Some(result)) => {
                write!(
                    f,
                    "the agent did not answer: the run is {}",
                    result.outcome.kind()
                )
            }
            Self::Journal(error) => error.fmt(f),
            Self::Illegal(error) => write!(f, "the log does not fold: {error}"),
            Self::UnknownModel { model, known } => {
                let known: Vec<&str> = known.iter().map(ModelId::as_str).collect();
                let cure = "hint: give it to `resume` with `model`, or another one to go on with";
                let known = known.join(", ");
                write!(
                    f,
                    "the run goes by {model}, which the agent does not know (it knows {known}); {cure}"
                )
            }
            Self::Stuck => f.write_str("the run waits, but nothing is in flight"),
        }
    }
}

impl error::Error for Error {
    /// Returns the cause of the wrapped error; the wrapped error itself is [`model_error`](Error::model_error) or
    /// [`journal_error`](Error::journal_error).
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Output(error) | Self::Model(_, error) => error.source(),
            Self::Failed(_, Failure::Model { error }) => error.source(),
            Self::Journal(error) => error.source(),
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cause::lines(self, f)
    }
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<Illegal> for Error {
    fn from(error: Illegal) -> Self {
        Self::Illegal(error)
    }
}

fn names(pauses: &[PauseId]) -> String {
    pauses
        .iter()
        .map(|pause| &*pause.0)
        .collect::<Vec<_>>()
        .join(", ")
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
