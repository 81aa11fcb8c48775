//! Errors that leave a run without a system prompt.

use std::{error, fmt, sync::Arc};

/// The largest number of bytes that [`explain`](InstructionError::explain) returns.
const MAX_EXPLAINED_BYTES: usize = 4_096;

/// The reason why instructions or sections could not be made.
#[derive(Debug, Clone)]
pub struct InstructionError {
    /// The kind of the error: it decides how a caller can react.
    pub kind: InstructionErrorKind,
    message: Arc<str>,
    /// The line of the template that it is about, counted from 1.
    pub line: Option<usize>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
    /// The message comes from the source, so the cause of this error is the cause of the source.
    is_its_source: bool,
}

/// The kind of an instruction error: it decides how a caller can react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionErrorKind {
    /// The template, or the name of a section, is wrong: mend it.
    Template,
    /// The state lacks a variable.
    Missing,
    /// A source or a section failed.
    Failed,
    /// Something is longer, or takes longer, than its limit.
    Limit,
}

impl InstructionError {
    /// A source or a section failed; `message` names the operation and its subject.
    pub fn failure(message: impl Into<Arc<str>>) -> Self {
        Self::new(InstructionErrorKind::Failed, message)
    }

    pub(crate) fn new(kind: InstructionErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            line: None,
            source: None,
            is_its_source: false,
        }
    }

    /// Makes an error of a failed attempt and its cause; kind and line are the cause's.
    pub(crate) fn from_cause(
        message: impl Into<Arc<str>>,
        cause: Box<dyn error::Error + Send + Sync>,
    ) -> Self {
        let (kind, line) = match cause.downcast_ref::<Self>() {
            Some(cause) => (cause.kind, cause.line),
            None => (InstructionErrorKind::Failed, None),
        };
        Self {
            kind,
            message: message.into(),
            line,
            source: Some(Arc::from(cause)),
            is_its_source: false,
        }
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    #[cfg(feature = "template")]
    pub(crate) fn at_line(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }

    /// True if the same attempt may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind == InstructionErrorKind::Failed
    }

    /// The error and everything that caused it, joined by colons.
    ///
    /// Returns the text that is recorded for a failed run: at most 4,096 bytes.
    pub fn explain(&self) -> Arc<str> {
        let mut text = self.to_string();
        let mut cause = error::Error::source(self);
        while let Some(error) = cause
            && text.len() <= MAX_EXPLAINED_BYTES
        {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        if text.len() > MAX_EXPLAINED_BYTES {
            text.truncate(text.floor_char_boundary(MAX_EXPLAINED_BYTES - '…'.len_utf8()));
            text.push('…');
        }
        text.into()
    }
}

impl fmt::Display for InstructionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for InstructionError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        let source = self.source.as_deref()?;
        if self.is_its_source {
            source.source()
        } else {
            Some(source)
        }
    }
}

/// An instruction error stays itself; any other becomes a failure with its message and cause.
impl From<Box<dyn error::Error + Send + Sync>> for InstructionError {
    fn from(error: Box<dyn error::Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self {
                is_its_source: true,
                ..Self::from_cause(error.to_string(), error)
            },
        }
    }
}
