//! The one error of this crate: classified once, where it happened.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

/// How many bytes of a refused answer's body are kept.
const MAX_BODY: usize = 2_048;

/// What went wrong with a model call. One pointer wide, because it travels in every result of a stream.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error(transparent)]
#[serde(transparent)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
struct Inner {
    kind: ErrorKind,
    message: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overflow: Option<Overflow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    should_retry: Option<bool>,
    #[serde(skip)]
    source: Option<Cause>,
}

/// How far a request and its reply did not fit the context window, as far as the provider said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// How many tokens were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// How many tokens fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something is missing or wrong in the configuration: no key, no such model.
    Config,
    /// The provider does not know the key, or the key may not do this.
    Auth,
    /// The provider found the request wrong.
    Invalid,
    /// The request and its reply do not fit the model's context window.
    Overflow,
    /// Too many requests or tokens in a time; worth trying again later.
    RateLimited,
    /// The provider failed or is overloaded; worth trying again.
    Overloaded,
    /// The provider was not reached, or the connection broke; worth trying again.
    Network,
    /// Nothing came in time; worth trying again.
    Timeout,
    /// The provider would not answer because of the content.
    Refused,
    /// What came is not what the protocol says.
    Protocol,
    /// The caller gave up.
    Cancelled,
}

impl Error {
    /// An error; `message` says what was attempted and with what, lower case, without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        let inner = Inner {
            kind,
            message: message.into(),
            status: None,
            code: None,
            body: None,
            request_id: None,
            retry_after: None,
            overflow: None,
            should_retry: None,
            source: None,
        };
        Self { inner: Box::new(inner) }
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.inner.status = Some(status);
        self
    }

    /// Sets the provider's code for what went wrong.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Arc<str>>) -> Self {
        self.inner.code = Some(code.into());
        self
    }

    /// Sets the body of the answer; what goes beyond 2,048 bytes is cut.
    #[must_use]
    pub fn with_body(mut self, body: &str) -> Self {
        let mut end = body.len().min(MAX_BODY);
        while !body.is_char_boundary(end) {
            end -= 1;
        }
        self.inner.body = Some(body[..end].into());
        self
    }

    /// Sets the provider's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.inner.request_id = Some(id.into());
        self
    }

    /// Sets how long the provider asked to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.inner.retry_after = Some(wait);
        self
    }

    /// Sets whether the provider asked to try again; that goes before what the kind says.
    #[must_use]
    pub fn with_should_retry(mut self, should: bool) -> Self {
        self.inner.should_retry = Some(should);
        self
    }

    /// Sets how far the request did not fit.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.inner.overflow = Some(overflow);
        self
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// What was attempted and with what.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The provider's code for what went wrong, if it gave one.
    pub fn code(&self) -> Option<&str> {
        self.inner.code.as_deref()
    }

    /// The first 2,048 bytes of the answer's body, if there was one.
    pub fn body(&self) -> Option<&str> {
        self.inner.body.as_deref()
    }

    /// The provider's id of the request, if it gave one.
    pub fn request_id(&self) -> Option<&str> {
        self.inner.request_id.as_deref()
    }

    /// How long the provider asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// Whether the provider asked to try again or not to, if it said so.
    pub fn should_retry(&self) -> Option<bool> {
        self.inner.should_retry
    }

    /// How far the request did not fit the context window; only for [`ErrorKind::Overflow`], if the provider said it.
    pub fn overflow(&self) -> Option<Overflow> {
        self.inner.overflow
    }

    /// Whether the request and its reply did not fit the model's context window.
    pub fn is_overflow(&self) -> bool {
        self.inner.kind == ErrorKind::Overflow
    }

    /// Whether the same request may succeed later: what the provider said about that, else what the kind says.
    pub fn is_retryable(&self) -> bool {
        if let Some(should) = self.inner.should_retry {
            return should;
        }
        match self.inner.kind {
            ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Network | ErrorKind::Timeout => true,
            ErrorKind::Config
            | ErrorKind::Auth
            | ErrorKind::Invalid
            | ErrorKind::Overflow
            | ErrorKind::Refused
            | ErrorKind::Protocol
            | ErrorKind::Cancelled => false,
        }
    }
}

impl PartialEq for Error {
    /// Compares what can be stored; sources are left out.
    fn eq(&self, other: &Self) -> bool {
        self.inner.kind == other.inner.kind
            && self.inner.message == other.inner.message
            && self.inner.status == other.inner.status
            && self.inner.code == other.inner.code
            && self.inner.body == other.inner.body
            && self.inner.request_id == other.inner.request_id
            && self.inner.retry_after == other.inner.retry_after
            && self.inner.overflow == other.inner.overflow
            && self.inner.should_retry == other.inner.should_retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_overflow_holds_when_the_kind_says_so() {
        let kinds = [ErrorKind::Invalid, ErrorKind::Overflow, ErrorKind::Refused];
        assert_eq!(kinds.map(|kind| Error::new(kind, "it failed").is_overflow()), [false, true, false]);
    }
}
