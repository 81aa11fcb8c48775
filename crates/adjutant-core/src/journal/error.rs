//! The one error of journals.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Cause;

use super::{Holder, LogId};

/// An error of a journal.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    /// The kind of the error: it decides how a caller can react.
    pub kind: JournalErrorKind,
    message: Arc<str>,
    /// The holder of the log, if another owner has it.
    pub holder: Option<Arc<Holder>>,
    source: Option<Cause>,
}

/// The kind of a journal's error: it decides how a caller can react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// Another owner has taken the log over; writes of this one are refused.
    Fenced,
    /// Another owner has the log; wait until it is free, post to it, or take it over.
    Owned,
    /// No log has that name.
    Missing,
    /// A log of that name exists.
    Exists,
    /// The stored data is not the data that was written.
    Corrupt,
    /// The stored data was written by a newer program.
    Version,
    /// The request cannot be met: a name or a record that is too large.
    Invalid,
    /// The journal cannot do that.
    Unsupported,
    /// The storage can be read and not written: copy it to a place where it can.
    ReadOnly,
    /// The storage failed: full, or gone.
    Io,
}

impl JournalError {
    /// Creates an error; `message` names the operation and its subject.
    #[cold]
    pub fn new(kind: JournalErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            holder: None,
            source: None,
        }
    }

    /// Another owner has the log.
    pub fn already_owned(log: &LogId, holder: Holder) -> Self {
        let message = format!(
            "log {:?} belongs to {holder}; hint: post to it, or take it over",
            log.0
        );
        let holder = Some(Arc::new(holder));
        Self {
            holder,
            ..Self::new(JournalErrorKind::Owned, message)
        }
    }

    /// The storage can be read and not written.
    pub fn read_only(attempt: &str, place: &str) -> Self {
        let message = format!(
            "{attempt}: {place} can only be read; hint: copy it to a place that can be written"
        );
        Self::new(JournalErrorKind::ReadOnly, message)
    }

    /// The error of a log that was taken over, is missing or exists already, in words that name it.
    pub fn for_log(kind: JournalErrorKind, log: &LogId) -> Self {
        let message = match kind {
            JournalErrorKind::Missing => format!("no log is called {:?}", log.0),
            JournalErrorKind::Exists => format!("a log is called {:?} already", log.0),
            JournalErrorKind::Fenced => {
                format!("log {:?} has been taken over by another owner", log.0)
            }
            _ => format!("log {:?} could not be used", log.0),
        };
        Self::new(kind, message)
    }

    /// The journal cannot do that.
    pub fn not_supported(what: &str) -> Self {
        Self::new(
            JournalErrorKind::Unsupported,
            format!("this journal cannot {what}"),
        )
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// True if the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, JournalErrorKind::Io | JournalErrorKind::Owned)
    }

    /// The time to wait before trying again, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.holder.as_ref().and_then(|holder| holder.left)
    }
}
