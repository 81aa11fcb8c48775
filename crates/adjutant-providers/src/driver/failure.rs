//! Failures below the wire, as errors that name the host and never the key.

use std::{error::Error as _, sync::Arc, time::Duration};

use adjutant_llm::{Error, ErrorKind, ModelInfo};
use bytes::Bytes;
use http::response::Parts;

use super::Endpoint;
use crate::{classify::Refusal, credentials::Secrets, limits};

/// The largest number of bytes of a refused request's answer that are read.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// The largest number of bytes of an answer that is one document: several inline images fit.
const MAX_DOCUMENT: usize = 64 * 1024 * 1024;
/// The largest number of characters of an answer in the error for an unexpected body.
const MAX_EXCERPT: usize = 200;

/// The part that was read of an answer that is not an event stream.
pub(super) struct Refused {
    status: u16,
    retry_after: Option<Duration>,
    /// The time until the limits of the account are reset.
    reset_after: Option<Duration>,
    should_retry: Option<bool>,
    request_id: Option<Arc<str>>,
    body: Vec<u8>,
}

impl Refused {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            status: parts.status.as_u16(),
            retry_after: limits::retry_after(&parts.headers),
            reset_after: limits::reset_after(&parts.headers),
            should_retry: limits::should_retry(&parts.headers),
            request_id: limits::request_id(&parts.headers),
            body: Vec::new(),
        }
    }

    /// A success that turned out to be no event stream.
    pub(super) fn success(request_id: Option<Arc<str>>) -> Self {
        Self {
            status: 200,
            retry_after: None,
            reset_after: None,
            should_retry: None,
            request_id,
            body: Vec::new(),
        }
    }

    /// Takes more of the body; whether there is room for more.
    pub(super) fn take(&mut self, bytes: Option<&Bytes>) -> bool {
        let bytes = bytes.map(|it| &it[..]).unwrap_or_default();
        let most = if self.is_success() {
            MAX_DOCUMENT
        } else {
            MAX_BODY
        };
        let room = most - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.body.len() < most
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The error. The body is cleaned before it is cut, so that no half of a secret is left of it.
    pub(super) fn into_error(
        self,
        info: &ModelInfo,
        endpoint: &Endpoint,
        secrets: &Secrets,
    ) -> Error {
        let body = String::from_utf8_lossy(&self.body);
        let body = secrets.clean(&body);
        let mut error = if self.is_success() {
            non_stream_error(info, endpoint, self.status, &body)
        } else {
            // A missing or moved resource usually means a wrong address.
            let at = match self.status {
                300..=399 | 404 | 405 => format!(" at {}", endpoint.url()),
                _ => String::new(),
            };
            let what = format!("{} answered {}{at}", info.id, self.status);
            Refusal::from_body(self.status, &body).into_error(&what, &body)
        };
        if let Some(wait) = self.retry_after {
            error = error.with(|it| it.retry_after = Some(wait));
        } else if let Some(wait) = self.reset_after.filter(|_| is_limit(&error)) {
            error = error.with(|it| it.retry_after = it.retry_after.or(Some(wait)));
        }
        if let Some(should) = self.should_retry {
            error = error.with(|it| it.should_retry = Some(should));
        }
        match self.request_id {
            Some(id) => error.with(|it| it.request_id = Some(id)),
            None => error,
        }
    }
}

/// True if an error ends when the limits of the account are reset.
fn is_limit(error: &Error) -> bool {
    error.kind() == ErrorKind::RateLimited
}

/// A success with JSON or HTML: an error that came with the wrong status, or another service.
fn non_stream_error(info: &ModelInfo, endpoint: &Endpoint, status: u16, body: &str) -> Error {
    find_body_error(info, body).unwrap_or_else(|| {
        let excerpt: String = body.trim().chars().take(MAX_EXCERPT).collect();
        let text = format!(
            "{} answered at {} with something else than an event stream: {excerpt}",
            info.id,
            endpoint.url()
        );
        Error::new(ErrorKind::Protocol, text).with(|it| {
            it.status = Some(status);
            it.body = Some(body.into());
        })
    })
}

/// Returns the error in an answer with a success status, if it contains one.
pub(super) fn find_body_error(info: &ModelInfo, body: &str) -> Option<Error> {
    let value = serde_json::from_str::<serde_json::Value>(body).ok()?;
    value.get("error").filter(|error| !error.is_null())?;
    Some(
        Refusal::from_value(&value)?
            .into_error(&format!("{} answered with an error", info.id), body),
    )
}

/// The request could not be sent, or its answer did not begin.
pub(super) fn unreachable(endpoint: &Endpoint, error: reqwest::Error) -> Error {
    let (host, chain) = (endpoint.host(), chain(&error));
    let has = |parts: &[&str]| parts.iter().any(|part| chain.contains(part));
    let limit = endpoint.timeouts().connect;
    let (kind, text) = if error.is_timeout() {
        (
            ErrorKind::Timeout,
            format!("could not connect to {host} within {limit:?}"),
        )
    } else if has(&[
        "dns error",
        "failed to lookup",
        "name resolution",
        "nodename",
    ]) {
        (ErrorKind::Network, format!("could not resolve {host}"))
    } else if has(&["certificate", "tls", "handshake", "invalid peer"]) {
        (
            ErrorKind::Network,
            format!("the TLS handshake with {host} failed"),
        )
    } else if has(&["refused"]) {
        (
            ErrorKind::Network,
            format!("could not connect to {host}: nothing listens there"),
        )
    } else if error.is_connect() {
        (ErrorKind::Network, format!("could not connect to {host}"))
    } else {
        (
            ErrorKind::Network,
            format!("the connection to {host} broke before an answer came"),
        )
    };
    Error::new(kind, text).with_source(error.without_url())
}

/// The answer broke off.
pub(super) fn broken(endpoint: &Endpoint, error: reqwest::Error) -> Error {
    let text = format!(
        "the connection to {} broke in the middle of the answer",
        endpoint.host()
    );
    Error::new(ErrorKind::Network, text).with_source(error.without_url())
}

/// A limit of the time of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    FirstByte,
    Idle,
    Silence,
    Total,
}

/// Nothing came in time.
pub(super) fn timeout_error(endpoint: &Endpoint, limit: Limit) -> Error {
    let (host, timeouts) = (endpoint.host(), endpoint.timeouts());
    let text = match limit {
        Limit::FirstByte => {
            format!(
                "no answer came from {host} within {:?}",
                timeouts.first_byte
            )
        }
        Limit::Idle => format!("nothing more came from {host} within {:?}", timeouts.idle),
        Limit::Silence => {
            format!("{host} sent no content within {:?}", timeouts.silence)
        }
        Limit::Total => {
            let total = timeouts.total.unwrap_or_default();
            format!("the answer of {host} was not whole within {total:?}")
        }
    };
    Error::new(ErrorKind::Timeout, text)
}

/// The longest wait for a key.
const MAX_KEY_WAIT: Duration = Duration::from_secs(120);

/// The time that a key is waited for.
pub(super) fn key_wait(endpoint: &Endpoint) -> Duration {
    endpoint.timeouts().first_byte.min(MAX_KEY_WAIT)
}

/// The key was not there in time.
pub(super) fn keyless(endpoint: &Endpoint) -> Error {
    let (host, limit) = (endpoint.host(), key_wait(endpoint));
    Error::new(
        ErrorKind::Timeout,
        format!("no key for {host} was there within {limit:?}"),
    )
}

/// The texts of an error's sources, in lower case.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&error.to_string().to_lowercase());
        text.push('\n');
        source = error.source();
    }
    text
}
