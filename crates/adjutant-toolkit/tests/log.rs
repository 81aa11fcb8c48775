//! The log of a call, for tests: it keeps notes and progress.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use adjutant_llm::{Content, Usage};
use adjutant_tool::{CallBackend, Noted, Progress, ToolError};
use serde_json::{Value, json};

/// A log that keeps notes and progress, in order.
#[derive(Default)]
pub(crate) struct Watched {
    told: Mutex<Vec<(String, Value)>>,
    /// Set to let notes fail.
    pub(crate) is_full: AtomicBool,
}

impl Watched {
    pub(crate) fn told(&self) -> Vec<(String, Value)> {
        self.told.lock().expect("nobody panics inside").clone()
    }

    fn push(&self, what: &str, data: Value) {
        self.told
            .lock()
            .expect("nobody panics inside")
            .push((what.to_owned(), data));
    }
}

#[async_trait::async_trait]
impl CallBackend for Watched {
    fn emit(&self, progress: Progress) {
        let text: Vec<&Content> = progress.content.iter().collect();
        self.push("shown", json!([text, progress.details]));
    }

    fn charge(&self, _: Usage) {}

    async fn begin(&self, _: &str) -> Result<Noted, ToolError> {
        Ok(Noted::Fresh)
    }

    async fn finish(&self, _: &str, _: Value) -> Result<(), ToolError> {
        Ok(())
    }

    async fn note(&self, kind: &str, data: Value) -> Result<(), ToolError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(ToolError::failed("the log is full"));
        }
        self.push(kind, data);
        Ok(())
    }
}
