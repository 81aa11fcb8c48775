//! The door from an entry to its log.

use std::{
    any::{Any, TypeId},
    sync::{Arc, Mutex, MutexGuard},
};

use adjutant_llm::Usage;
use async_trait::async_trait;
use serde_json::Value;

use super::{Log, lock};
use crate::{Answer, Ask, CallBackend, Cancel, Noted, Progress, ToolError, ToolErrorKind};

/// The door of one entry.
pub(super) struct CallHandle {
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) entry: usize,
    /// Set when the entry is to be dropped.
    pub(super) dropped: Cancel,
    /// The door that provides this one's handles.
    pub(super) template: Arc<dyn CallBackend>,
}

impl CallHandle {
    fn log(&self) -> Result<MutexGuard<'_, Log>, ToolError> {
        let log = lock(&self.log);
        if log.is_in(self.entry) {
            return Ok(log);
        }
        Err(ToolError::new(
            ToolErrorKind::Cancelled,
            "the call has ended",
        ))
    }

    /// Continues with the answer in the log; without an answer the entry ends here.
    async fn or_drop<T>(&self, answer: Option<T>) -> T {
        match answer {
            Some(answer) => answer,
            None => {
                self.dropped.cancel();
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl CallBackend for CallHandle {
    fn emit(&self, _: Progress) {}

    fn charge(&self, _: Usage) {}

    async fn begin(&self, key: &str) -> Result<Noted, ToolError> {
        let noted = self.log()?.begin(key)?;
        Ok(self.or_drop(noted).await)
    }

    async fn finish(&self, key: &str, value: Value) -> Result<(), ToolError> {
        let noted = self.log()?.finish(key, value)?;
        self.or_drop(noted).await;
        Ok(())
    }

    async fn pause(&self, key: &str, ask: Ask) -> Result<Answer, ToolError> {
        let answer = self.log()?.pause(key, ask)?;
        Ok(self.or_drop(answer).await)
    }

    fn handle(&self, of: TypeId) -> Option<Box<dyn Any + Send + Sync>> {
        self.template.handle(of)
    }
}
