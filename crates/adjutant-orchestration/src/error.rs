//! The error of this crate. A tool's failure is a `ToolError` that contains it.

use std::{fmt, sync::Arc, time::Duration};

use adjutant_agent::kv::{KvStoreError, KvStoreErrorKind};
use adjutant_llm::Cause;
use adjutant_tool::{ToolError, ToolErrorKind};

/// Why something of agents with other agents could not be done.
#[derive(Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    retry: bool,
    retry_after: Option<Duration>,
    source: Option<Cause>,
    /// The error of the agent that caused this one.
    agent: Option<Box<adjutant_agent::Error>>,
}

/// The kind of an error, by the caller's possible reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid: a name, a text or a plan.
    Invalid,
    /// There is no such thing.
    Missing,
    /// There is one of that name already.
    Exists,
    /// The current state does not permit it: read it again, and decide again.
    Conflict,
    /// Another worker has it, and may lose it.
    Taken,
    /// A limit of number or size is reached.
    Full,
    /// It took longer than it may.
    TimedOut,
    /// The component that should do it has ended.
    Closed,
    /// The storage failed.
    Store,
    /// An agent failed.
    Agent,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry: false,
            retry_after: None,
            source: None,
            agent: None,
        }
    }

    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the cause, whose message this error already contains.
    pub(crate) fn with_cause(self, source: Option<Cause>) -> Self {
        Self { source, ..self }
    }

    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// An agent failed.
    pub(crate) fn from_agent(error: adjutant_agent::Error) -> Self {
        let agent = Some(Box::new(error.clone()));
        Self {
            agent,
            ..Self::new(ErrorKind::Agent, error.to_string()).with_cause(Cause::behind(error))
        }
    }

    /// The error of an agent, if that is the cause.
    pub fn agent_error(&self) -> Option<&adjutant_agent::Error> {
        self.agent.as_deref()
    }

    /// The kind, by the caller's possible reaction.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operation and its subject.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True if the same attempt can succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Conflict | ErrorKind::Taken | ErrorKind::Full | ErrorKind::TimedOut => true,
            ErrorKind::Store => self.retry,
            ErrorKind::Invalid
            | ErrorKind::Missing
            | ErrorKind::Exists
            | ErrorKind::Closed
            | ErrorKind::Agent => false,
        }
    }

    /// The delay before a retry, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cause::lines(self, f)
    }
}

impl From<KvStoreError> for Error {
    fn from(error: KvStoreError) -> Self {
        let kind = match error.kind {
            KvStoreErrorKind::Conflict { .. } => ErrorKind::Conflict,
            KvStoreErrorKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::Store,
        };
        let retry = error.is_retryable();
        Self {
            retry,
            ..Self::new(kind, error.to_string()).with_cause(Cause::behind(error))
        }
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Self::new(ErrorKind::Agent, Arc::clone(&error.message)).with_cause(Cause::behind(error))
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Invalid | ErrorKind::Missing | ErrorKind::Exists => {
                ToolErrorKind::InvalidArguments
            }
            ErrorKind::TimedOut => ToolErrorKind::TimedOut,
            _ => ToolErrorKind::Failed,
        };
        // The message is for the model; its cause is attached without repeating the text.
        let told = ToolError::new(kind, error.message);
        match error.source {
            Some(source) => told.with_source(source),
            None => told,
        }
    }
}
