//! The result of a call. Every call has exactly one, whatever happened to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Content;

/// The result of a call: content for the model, details for the application, and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The status of the call at its end.
    pub status: Status,
    /// The content for the model.
    pub content: Vec<Content>,
    /// The details for the application; never sent to a model. `null` by default.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// The effect on the run: whether it should end after this batch of calls; `No` by default.
    #[serde(default, skip_serializing_if = "Terminate::is_no")]
    pub terminate: Terminate,
    /// The arguments that really ran, as JSON text, if they differ from the call's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<str>>,
    /// True if the call's turn is kept when the conversation is compacted; false by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// The final status of a call. Everything but `Ok` is an error for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The tool ran and succeeded.
    Ok,
    /// The tool ran and reported a failure.
    Failed,
    /// No tool has that name.
    UnknownTool,
    /// The arguments did not fit the tool's schema.
    InvalidArguments,
    /// The call was refused by a rule or a person.
    Denied,
    /// The tool panicked.
    Panicked,
    /// The tool took longer than its limit.
    TimedOut,
    /// The run was cancelled before the call ended.
    Cancelled,
    /// A limit of the run forbade the call.
    OverLimit,
    /// The call had been started before a crash; whether it took effect is not known.
    OutcomeUnknown,
    /// The reply was cut off, so the arguments cannot be trusted.
    Truncated,
}

/// The effect of a result on its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Terminate {
    /// The run continues.
    #[default]
    No,
    /// The run ends if every result of the batch requests it; a queued message still extends it.
    IfAll,
    /// The run ends.
    Now,
}

impl CallResult {
    /// A success that shows the model this text.
    pub fn ok(text: impl Into<Arc<str>>) -> Self {
        Self::new(Status::Ok, text)
    }

    /// A result that shows the model this text.
    pub fn new(status: Status, text: impl Into<Arc<str>>) -> Self {
        Self {
            status,
            content: vec![Content::text(text)],
            details: Value::Null,
            terminate: Terminate::No,
            args: None,
            pinned: false,
        }
    }

    /// True if the result is an error for the model.
    pub fn is_error(&self) -> bool {
        self.status != Status::Ok
    }

    /// The text pieces, joined by line feeds.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

impl Terminate {
    fn is_no(&self) -> bool {
        *self == Terminate::No
    }
}
