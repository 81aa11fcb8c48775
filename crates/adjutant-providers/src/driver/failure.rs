//! Failures below the wire, as errors that name the host and never the key.

use std::{error::Error as _, sync::Arc, time::Duration};

use adjutant_llm::{Error, ErrorKind, ModelInfo};
use bytes::Bytes;
use http::response::Parts;

use super::Endpoint;
use crate::{classify::Refusal, credentials::Secrets, limits};

/// The largest number of bytes of a refused request's answer that are read.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// The largest number of characters that a message quotes of an answer that is no event stream.
const MAX_EXCERPT: usize = 200;

/// An answer that is no event stream, as far as it was read.
pub(super) struct Refused {
    status: u16,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    request_id: Option<Arc<str>>,
    body: Vec<u8>,
}

impl Refused {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            status: parts.status.as_u16(),
            retry_after: limits::retry_after(&parts.headers),
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
            should_retry: None,
            request_id,
            body: Vec::new(),
        }
    }

    /// Takes more of the body; whether there is room for more.
    pub(super) fn take(&mut self, bytes: Option<&Bytes>) -> bool {
        let bytes = bytes.map(|it| &it[..]).unwrap_or_default();
        let room = MAX_BODY - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.body.len() < MAX_BODY
    }

    /// The error. The body is cleaned before it is cut, so that no half of a secret is left of it.
    pub(super) fn into_error(self, info: &ModelInfo, secrets: &Secrets) -> Error {
        let body = String::from_utf8_lossy(&self.body);
        let body = secrets.clean(&body);
        let mut error = if (200..300).contains(&self.status) {
            unexpected(info, self.status, &body)
        } else {
            let what = format!("{} answered {}", info.id, self.status);
            Refusal::of_body(self.status, &body).into_error(&what, &body)
        };
        if let Some(wait) = self.retry_after {
            error = error.with(|it| it.retry_after = Some(wait));
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

/// A success with JSON or HTML: an error that came with the wrong status, or another service.
fn unexpected(info: &ModelInfo, status: u16, body: &str) -> Error {
    told(info, body).unwrap_or_else(|| {
        let excerpt: String = body.trim().chars().take(MAX_EXCERPT).collect();
        let text = format!(
            "{} answered with something else than an event stream: {excerpt}",
            info.id
        );
        Error::new(ErrorKind::Protocol, text).with(|it| {
            it.status = Some(status);
            it.body = Some(body.into());
        })
    })
}

/// The error that a success tells, if it does.
pub(super) fn told(info: &ModelInfo, body: &str) -> Option<Error> {
    let value = serde_json::from_str::<serde_json::Value>(body).ok()?;
    value.get("error").filter(|error| !error.is_null())?;
    Some(
        Refusal::of_value(&value)?.into_error(&format!("{} answered with an error", info.id), body),
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
        (
            ErrorKind::Network,
            format!("could not find the address of {host}"),
        )
    } else if has(&["certificate", "tls", "handshake", "invalid peer"]) {
        (
            ErrorKind::Network,
            format!("could not agree on a secure connection with {host}"),
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

/// Nothing came in time.
pub(super) fn timed_out(endpoint: &Endpoint, answered: bool) -> Error {
    let (host, timeouts) = (endpoint.host(), endpoint.timeouts());
    let text = if answered {
        format!("nothing more came from {host} within {:?}", timeouts.idle)
    } else {
        format!(
            "no answer came from {host} within {:?}",
            timeouts.first_byte
        )
    };
    Error::new(ErrorKind::Timeout, text)
}

/// The key was not there in time.
pub(super) fn keyless(endpoint: &Endpoint) -> Error {
    let (host, limit) = (endpoint.host(), endpoint.timeouts().first_byte);
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
