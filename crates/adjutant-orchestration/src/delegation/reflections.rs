//! A delegation with reflections: lessons of failures are added to a task, and evaluated by its outcome.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Delegation, Recall, Recalled};
use crate::{
    Completion, Error,
    reflection::{Failed, Outcome, ReflectionId, Reflections},
};

impl Delegation {
    /// Sets the reflections that are added to similar tasks, and that record failures.
    #[must_use]
    pub fn reflections(self, reflections: Reflections) -> Self {
        self.learning_from(Arc::new(reflections))
    }
}

#[async_trait]
impl Recall for Reflections {
    async fn recall(&self, task: &str) -> Result<Recalled, Error> {
        let found = Reflections::recall(self, task).await?;
        let ids = found
            .iter()
            .map(|reflection| reflection.id.to_string())
            .collect();
        Ok(Recalled {
            ids,
            text: Reflections::render(&found),
        })
    }

    async fn record(&self, agent: &str, task: &str, failure: &Completion) -> Result<(), Error> {
        let failed = Failed {
            agent: agent.into(),
            task: task.into(),
            summary: failure.text().into(),
            caveats: failure.caveats.as_deref().map(Into::into),
            files_modified: failure
                .files_modified
                .iter()
                .map(|file| file.as_str().into())
                .collect(),
        };
        Reflections::record(self, &failed).await.map(drop)
    }

    async fn outcome(&self, ids: &[String], helped: Option<bool>) -> Result<(), Error> {
        let ids: Vec<ReflectionId> = ids
            .iter()
            .map(|id| ReflectionId::from(id.as_str()))
            .collect();
        let outcome = match helped {
            Some(true) => Outcome::Helped,
            Some(false) => Outcome::Useless,
            None => Outcome::Unknown,
        };
        Reflections::outcome(self, &ids, outcome).await
    }
}
