//! Errors in the form for clients.
//!
//! Source: A2A 1.0.1, sections 5.4 and 9.5.

use std::fmt;

use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};

/// The reason why a request was refused.
#[derive(Debug)]
pub(super) struct RpcRefusal {
    code: Code,
    message: String,
}

/// The codes of refusals.
#[derive(Debug, Clone, Copy)]
pub(super) enum Code {
    Parse = -32700,
    Request = -32600,
    Method = -32601,
    Params = -32602,
    Internal = -32603,
    TaskNotFound = -32001,
    TaskNotCancelable = -32002,
    PushNotificationNotSupported = -32003,
    UnsupportedOperation = -32004,
    ContentTypeNotSupported = -32005,
    VersionNotSupported = -32009,
}

impl RpcRefusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(Code::Params, message)
    }

    pub(super) fn no_task(id: &str) -> Self {
        let id: String = id.chars().take(200).collect();
        Self::new(Code::TaskNotFound, format!("there is no task {id:?}"))
    }

    /// The answer to the request of this id.
    pub(super) fn to_response(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code as i32, "message": self.message});
        if let Some(reason) = self.code.reason() {
            let info = "type.googleapis.com/google.rpc.ErrorInfo";
            error["data"] =
                json!([{"@type": info, "reason": reason, "domain": "a2a-protocol.org"}]);
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

impl fmt::Display for RpcRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Code {
    fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::Parse | Self::Request | Self::Method | Self::Params | Self::Internal => {
                return None;
            }
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
        })
    }
}

impl From<Error> for RpcRefusal {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Invalid => Code::Params,
            ErrorKind::Stale => Code::UnsupportedOperation,
            ErrorKind::Agent => Code::Internal,
        };
        let source = std::error::Error::source(&error)
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        Self::new(code, format!("{error}{source}"))
    }
}
