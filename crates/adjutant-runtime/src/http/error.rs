//! Errors over HTTP: they keep their kinds.

use std::error::Error as _;

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::MAX_REQUEST_BYTES;
use crate::{Error, ErrorKind};

/// The maximum number of causes in a response.
const MAX_CAUSES: usize = 8;
/// The maximum number of characters of a message.
const MAX_MESSAGE: usize = 8000;

/// Every kind with its name and its status.
const KINDS: [(ErrorKind, &str, u16); 22] = [
    (ErrorKind::Manifest, "manifest", 422),
    (ErrorKind::Invalid, "invalid", 400),
    (ErrorKind::Missing, "missing", 404),
    (ErrorKind::Exists, "exists", 409),
    (ErrorKind::Conflict, "conflict", 409),
    (ErrorKind::Busy, "busy", 423),
    (ErrorKind::Init, "init", 500),
    (ErrorKind::Pull, "pull", 500),
    (ErrorKind::Model, "model", 502),
    (ErrorKind::Config, "config", 500),
    (ErrorKind::Readiness, "readiness", 503),
    (ErrorKind::Crashed, "crashed", 500),
    (ErrorKind::Killed, "killed", 500),
    (ErrorKind::Frozen, "frozen", 504),
    (ErrorKind::Denied, "denied", 401),
    (ErrorKind::Untrusted, "untrusted", 403),
    (ErrorKind::TimedOut, "timed_out", 504),
    (ErrorKind::Closed, "closed", 503),
    (ErrorKind::Full, "full", 413),
    (ErrorKind::Storage, "storage", 500),
    (ErrorKind::Connection, "connection", 502),
    (ErrorKind::Agent, "agent", 500),
];

/// Format: `{"error":{"kind":"conflict","message":"…","is_retryable":false}}`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wire {
    error: ErrorBody,
}

#[derive(Debug, Serialize, Deserialize)]
struct ErrorBody {
    kind: String,
    message: String,
    #[serde(default)]
    is_retryable: bool,
}

/// An error for a response, with a separate status if the kind does not determine it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(super) error: Error,
    pub(super) status: StatusCode,
}

/// Returns the HTTP status of an error kind.
pub fn status_of(kind: ErrorKind) -> u16 {
    row(kind).map_or(500, |(_, _, status)| *status)
}

/// Returns the name of a kind in JSON.
pub(crate) fn name_of(kind: ErrorKind) -> &'static str {
    row(kind).map_or("agent", |(_, name, _)| *name)
}

fn row(kind: ErrorKind) -> Option<&'static (ErrorKind, &'static str, u16)> {
    KINDS.iter().find(|(known, _, _)| *known == kind)
}

/// Returns an error and its causes as one line.
pub(crate) fn line(error: &Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    for _ in 0..MAX_CAUSES {
        let Some(cause) = source else { break };
        let told = cause.to_string();
        if !line.contains(&told) {
            line = format!("{line}: {told}");
        }
        source = cause.source();
    }
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

impl Wire {
    pub(super) fn from_error(error: &Error) -> Self {
        let kind = name_of(error.kind()).to_owned();
        Self {
            error: ErrorBody {
                kind,
                message: line(error),
                is_retryable: error.is_retryable(),
            },
        }
    }

    /// Returns the error; an unknown kind becomes `Agent`.
    pub(super) fn error(self) -> Error {
        let known = KINDS.iter().find(|(_, name, _)| *name == self.error.kind);
        Error::new(
            known.map_or(ErrorKind::Agent, |(kind, _, _)| *kind),
            self.error.message,
        )
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(status_of(error.kind()))
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { error, status }
    }
}

impl Problem {
    /// Creates a problem with its own status.
    pub(super) fn new(status: StatusCode, kind: ErrorKind, message: &str) -> Self {
        Self {
            error: Error::new(kind, message),
            status,
        }
    }
}

/// Returns the error that a request is too large.
pub(super) fn too_long() -> Error {
    Error::new(
        ErrorKind::Full,
        format!("the request has more than {MAX_REQUEST_BYTES} bytes"),
    )
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let told = (self.status, Json(Wire::from_error(&self.error)));
        // A client that should retry later must not keep its connection.
        match (self.status, self.error.kind()) {
            (StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Busy) => (
                [(header::RETRY_AFTER, "1"), (header::CONNECTION, "close")],
                told,
            )
                .into_response(),
            _ => told.into_response(),
        }
    }
}
