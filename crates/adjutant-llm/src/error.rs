//! The one error of this crate: classified once, where it happened.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{EntryId, cause::Cause};

/// The largest number of bytes that are kept of a refused answer's body.
const MAX_BODY: usize = 2_048;

/// An error of a model call. One pointer wide, because it travels in every result of a stream.
#[derive(Clone, thiserror::Error, Serialize, Deserialize)]
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
    #[serde(flatten)]
    details: ErrorDetails,
    #[serde(skip)]
    source: Option<Cause>,
}

/// The details that a provider sent with an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorDetails {
    /// The HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Arc<str>>,
    /// The body of the answer; at most its first 2,048 bytes are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Arc<str>>,
    /// The provider's id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
    /// The wait that the provider requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The distance by which the request did not fit the context window; only for [`ErrorKind::Overflow`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// The media that the provider refused; only for a request that holds media, and was not accepted because of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedMedia>,
    /// True if the provider requested a retry, false if it forbade one; overrides the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
}

/// The amount by which a request and its reply exceeded the context window, if the provider reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// The number of requested tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The number of tokens that fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The media that a provider refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedMedia {
    /// The media that it named; empty if it named none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<MediaPlace>,
}

/// The place of an image, a document or a recording in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaPlace {
    /// The entry.
    pub entry: EntryId,
    /// The number of the medium within the entry, as [`media_of`](crate::media::media_of) counts.
    pub number: usize,
}

/// The kind of an error: it decides how a caller can react.
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
    /// The model generated output that its provider cannot use, such as an invalid call, or an empty reply; a single
    /// retry can succeed.
    Generation,
    /// The answer does not follow the protocol.
    Protocol,
    /// The caller cancelled the request.
    Cancelled,
}

impl Error {
    /// Creates an error; `message` names the operation and its subject, in lower case, without a full stop.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        let inner = Inner {
            kind,
            message: message.into(),
            details: ErrorDetails::default(),
            source: None,
        };
        Self {
            inner: Box::new(inner),
        }
    }

    /// Sets details from the provider; a body is cut after its first 2,048 bytes.
    ///
    /// # Example
    /// ```
    /// use adjutant_llm::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Overloaded, "the model is overloaded").with(|it| it.status = Some(529));
    /// assert_eq!(error.details().status, Some(529));
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ErrorDetails)) -> Self {
        let details = &mut self.inner.details;
        change(details);
        if let Some(body) = details.body.as_mut().filter(|body| body.len() > MAX_BODY) {
            *body = body[..body.floor_char_boundary(MAX_BODY)].into();
        }
        self
    }

    /// Adds a fact to the end of the message.
    #[must_use]
    pub(crate) fn context(mut self, fact: &str) -> Self {
        self.inner.message = format!("{}; {fact}", self.inner.message).into();
        self
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Returns the kind of the error, which decides how a caller can react.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the message: the operation and its subject.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns the details from the provider.
    pub fn details(&self) -> &ErrorDetails {
        &self.inner.details
    }

    /// Returns the wait that the provider requested, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.details.retry_after
    }

    /// True if the same request may succeed later, according to the provider, or else to the kind.
    pub fn is_retryable(&self) -> bool {
        if let Some(should) = self.inner.details.should_retry {
            return should;
        }
        match self.inner.kind {
            ErrorKind::RateLimited
            | ErrorKind::Overloaded
            | ErrorKind::Network
            | ErrorKind::Generation
            | ErrorKind::Timeout => true,
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cause::lines(self, f)
    }
}

impl PartialEq for Error {
    /// Compares what can be stored; sources are left out.
    fn eq(&self, other: &Self) -> bool {
        self.inner.kind == other.inner.kind
            && self.inner.message == other.inner.message
            && self.inner.details == other.inner.details
    }
}
