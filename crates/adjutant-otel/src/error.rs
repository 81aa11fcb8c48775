//! The one error of this crate. A program may go on after each of them: only telemetry is lost.

use std::{error, fmt, sync::Arc, time::Duration};

/// Why telemetry is not exported, or was not in time.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
}

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The endpoint is no HTTP address: name another one.
    Endpoint,
    /// An exporter could not be made: the machine refuses a thread, or TLS is not available.
    Start,
    /// The program has a subscriber already: add the layer to it instead.
    Installed,
    /// The endpoint did not take everything within the limit; worth trying again.
    Export,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn with_source(mut self, source: impl error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was attempted and with what.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same attempt may succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ErrorKind::Export => true,
            ErrorKind::Endpoint | ErrorKind::Start | ErrorKind::Installed => false,
        }
    }

    /// How long to wait before trying again; nothing here ever says.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn error::Error + 'static))
    }
}
