//! The interface of a delegation to a board and to reflections, which keeps them separate.

use std::sync::Arc;

use adjutant_tool::Cancel;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::plan::Again;
use crate::{Completion, Error};

/// The storage of tasks for a delegation.
#[async_trait]
pub(crate) trait TaskDriver: Send + Sync {
    /// Takes a task for an instance, also from `by`, which delegates it; repeating it for the same instance has no
    /// effect, even after it has ended. Returns the criteria for its completion.
    async fn claim(
        &self,
        task: &str,
        agent: &str,
        by: &str,
        again: Again,
    ) -> Result<Vec<String>, Error>;

    /// Passes an instance's task to a peer; repeating it has no effect, even after the peer has ended it.
    async fn hand_on(&self, task: &str, to: &str) -> Result<(), Error>;

    /// Writes down how a task ended; again is as once.
    async fn end(&self, task: &str, agent: &str, end: TaskEnd) -> Result<(), Error>;

    /// Holds a task for an instance, until that becomes impossible; returns the reason.
    async fn hold(&self, task: &str, agent: &str) -> Lost;
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TaskEnd {
    Completed(Completion),
    Failed(Completion),
}

/// The reason why an instance must not continue a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was cancelled.
    Cancelled,
    /// Another worker has it.
    Taken,
    /// The instance asked a question, and got no answer in time.
    Unanswered,
}

/// The storage of lessons from failures.
#[async_trait]
pub(crate) trait Recall: Send + Sync {
    /// The lessons of failures at similar tasks.
    async fn recall(&self, task: &str) -> Result<Recalled, Error>;

    /// Writes down a failure.
    async fn record(&self, agent: &str, task: &str, failure: &Completion) -> Result<(), Error>;

    /// Records whether the given lessons helped, if that is known.
    async fn outcome(&self, ids: &[String], helped: Option<bool>) -> Result<(), Error>;
}

/// The lessons of failures at similar tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recalled {
    pub(crate) ids: Vec<String>,
    /// The message with the lessons, in tags, bounded; empty without any.
    pub(crate) text: String,
}

/// Ends a task as failed if its call is dropped without a report.
///
/// A suspended call is entered again later, and continues the task.
pub(super) struct Guard {
    pub(super) driver: Arc<dyn TaskDriver>,
    pub(super) task: Arc<str>,
    pub(super) agent: String,
    pub(super) cancel: Cancel,
    pub(super) is_over: bool,
}

impl Guard {
    /// Writes down how the task ended.
    pub(super) async fn end(&mut self, end: TaskEnd) -> Result<(), Error> {
        let ended = self.driver.end(&self.task, &self.agent, end).await;
        self.is_over = true;
        ended
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_over || !self.cancel.is_cancelled() {
            return;
        }
        // Without a runtime, the lease of the task runs out.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (driver, task, agent) = (
            Arc::clone(&self.driver),
            Arc::clone(&self.task),
            self.agent.clone(),
        );
        runtime.spawn(async move {
            let end = TaskEnd::Failed(Completion::failure("the delegation was given up"));
            if let Err(error) = driver.end(&task, &agent, end).await {
                tracing::warn!(%task, %error, "a task whose delegation was given up could not be ended");
            }
        });
    }
}
