//! The one door from a call to its run.

use std::any::{Any, TypeId};

use adjutant_llm::{Content, Usage};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Ask, ToolError, ToolErrorKind};

/// The only connection from a call to its run; executors of tools implement it.
#[async_trait]
pub trait CallBackend: Send + Sync {
    /// Shows what the call has done so far. After the call has ended, nothing happens.
    fn emit(&self, progress: Progress);

    /// Reports what the call spent on models.
    fn charge(&self, usage: Usage);

    /// Notes that a step of a resumable call begins; answers what the log knows of it.
    async fn begin(&self, key: &str) -> Result<Noted, ToolError>;

    /// Records the result of a step; it is durable when this returns.
    async fn finish(&self, key: &str, value: Value) -> Result<(), ToolError>;

    /// Sends a question to the world outside the run, and waits for an answer that fits; fails with `Unattended` by
    /// default.
    ///
    /// Cancel: the question stays; the same key gets its answer when the call is entered again.
    async fn pause(&self, key: &str, ask: Ask) -> Result<Answer, ToolError> {
        let message = format!("nobody can be asked here, for {key:?}: {}", ask.prompt);
        Err(ToolError::new(ToolErrorKind::Unattended, message))
    }

    /// Stores a fact in the log of the run for later readers; it is durable when this returns. Stores nothing by
    /// default.
    ///
    /// Cancel: it is kept or not.
    async fn note(&self, kind: &str, data: Value) -> Result<(), ToolError> {
        let _ = (kind, data);
        Ok(())
    }

    /// A handle for [`CallContext::get`](crate::CallContext::get) that was not put into the context: an `Arc` of the type
    /// with this id, boxed. None by default.
    fn handle(&self, of: TypeId) -> Option<Box<dyn Any + Send + Sync>> {
        let _ = of;
        None
    }
}

/// The state of a step in the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Noted {
    /// Nothing: it begins now.
    Fresh,
    /// It came to this.
    Done(Value),
    /// It was started before a crash and not finished.
    Unknown,
}

/// The progress of a call so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// For people: content so far.
    pub content: Vec<Content>,
    /// For the application; `null` for none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// The door to no run: progress goes nowhere, and steps are not kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detached;

#[async_trait]
impl CallBackend for Detached {
    fn emit(&self, _: Progress) {}

    fn charge(&self, _: Usage) {}

    async fn begin(&self, _: &str) -> Result<Noted, ToolError> {
        Err(ToolError::new(
            ToolErrorKind::NotResumable,
            "steps need a run that keeps a log",
        ))
    }

    async fn finish(&self, _: &str, _: Value) -> Result<(), ToolError> {
        Err(ToolError::new(
            ToolErrorKind::NotResumable,
            "steps need a run that keeps a log",
        ))
    }
}

impl Progress {
    /// A text for people.
    pub fn text(text: impl Into<std::sync::Arc<str>>) -> Self {
        Self {
            content: vec![Content::text(text)],
            details: Value::Null,
        }
    }
}
