//! The parts of a task that are given when it is created, edited and finished.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Evidence, MAX_AGENT_BYTES, MAX_CRITERIA, MAX_DEPENDENCIES, MAX_DESCRIPTION_BYTES,
    MAX_KEY_BYTES, MAX_RESULT_BYTES, MAX_TEXT_BYTES, Task, TaskId, TaskStatus,
    bounds::{
        check_bytes, check_count, check_criteria, check_metadata, check_title, each_once, invalid,
        short,
    },
};
use crate::Error;

/// A task to be created; it begins as pending and unowned.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    pub(super) title: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) priority: i32,
    pub(super) dependencies: Vec<TaskId>,
    pub(super) metadata: Map<String, Value>,
    pub(super) acceptance_criteria: Vec<Arc<str>>,
    pub(super) created_by: Arc<str>,
    pub(super) key: Option<Arc<str>>,
}

/// A change of a task; a field that is not mentioned stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskEdit {
    pub(super) title: Option<Arc<str>>,
    pub(super) description: Option<Arc<str>>,
    pub(super) priority: Option<i32>,
    pub(super) dependencies: Option<Vec<TaskId>>,
    pub(super) metadata: Map<String, Value>,
    pub(super) acceptance_criteria: Option<Vec<Arc<str>>>,
}

/// The end of a worker's work on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    pub(super) is_completed: bool,
    pub(super) result: Arc<str>,
    pub(super) caveats: Option<Arc<str>>,
    pub(super) evidence: Vec<Evidence>,
}

impl NewTask {
    /// A task with this title, of priority 0.
    pub fn new(title: impl Into<Arc<str>>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Sets what there is to know about it.
    #[must_use]
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self {
            description: description.into(),
            ..self
        }
    }

    /// Sets its priority: the higher, the earlier it is claimed.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// Adds a task that must be completed before.
    #[must_use]
    pub fn after(mut self, dependency: TaskId) -> Self {
        self.dependencies.push(dependency);
        self
    }

    /// Adds something that the application knows about it.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Adds a criterion that needs evidence for completion.
    #[must_use]
    pub fn criterion(mut self, criterion: impl Into<Arc<str>>) -> Self {
        self.acceptance_criteria.push(criterion.into());
        self
    }

    /// Sets who creates it.
    #[must_use]
    pub fn creator(self, agent: impl Into<Arc<str>>) -> Self {
        Self {
            created_by: agent.into(),
            ..self
        }
    }

    /// Sets a name by which it is created at most once: a second creation returns the first task.
    #[must_use]
    pub fn key(self, key: impl Into<Arc<str>>) -> Self {
        Self {
            key: Some(key.into()),
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_title(&self.title)?;
        check_bytes("the description", &self.description, MAX_DESCRIPTION_BYTES)?;
        check_metadata(&self.metadata)?;
        check_criteria(&self.acceptance_criteria)?;
        check_count("dependencies", self.dependencies.len(), MAX_DEPENDENCIES)?;
        check_bytes("who creates it", &self.created_by, MAX_AGENT_BYTES)?;
        self.key
            .as_ref()
            .map_or(Ok(()), |key| check_bytes("its key", key, MAX_KEY_BYTES))
    }

    /// The task; its dependencies are each once in it.
    pub(super) fn task(&self, id: TaskId, now_ms: u64) -> Task {
        Task {
            id,
            title: Arc::clone(&self.title),
            description: Arc::clone(&self.description),
            status: TaskStatus::Pending,
            priority: self.priority,
            assignee: None,
            dependencies: each_once(&self.dependencies),
            metadata: self.metadata.clone(),
            acceptance_criteria: self.acceptance_criteria.clone(),
            evidence: Vec::new(),
            result: None,
            caveats: None,
            last_failure: None,
            created_by: Arc::clone(&self.created_by),
            created_ms: now_ms,
            updated_ms: now_ms,
            attempts: 0,
            lost: 0,
            lease: None,
            dependents: 0,
            waits: false,
            key: self.key.clone(),
        }
    }
}

impl TaskEdit {
    /// No change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the title.
    #[must_use]
    pub fn title(self, title: impl Into<Arc<str>>) -> Self {
        Self {
            title: Some(title.into()),
            ..self
        }
    }

    /// Changes the description.
    #[must_use]
    pub fn description(self, description: impl Into<Arc<str>>) -> Self {
        Self {
            description: Some(description.into()),
            ..self
        }
    }

    /// Changes the priority.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        Self {
            priority: Some(priority),
            ..self
        }
    }

    /// Changes its dependencies, only while it is pending.
    #[must_use]
    pub fn dependencies(self, dependencies: Vec<TaskId>) -> Self {
        Self {
            dependencies: Some(dependencies),
            ..self
        }
    }

    /// Sets a metadata value of the application; `null` removes it.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Changes the criteria for its completion.
    #[must_use]
    pub fn acceptance_criteria(self, criteria: Vec<Arc<str>>) -> Self {
        Self {
            acceptance_criteria: Some(criteria),
            ..self
        }
    }

    /// Makes the changes, apart from the dependencies.
    pub(super) fn apply(&self, task: &mut Task) -> Result<(), Error> {
        if let Some(title) = &self.title {
            task.title.clone_from(title);
        }
        if let Some(description) = &self.description {
            task.description.clone_from(description);
        }
        task.priority = self.priority.unwrap_or(task.priority);
        if let Some(criteria) = &self.acceptance_criteria {
            task.acceptance_criteria.clone_from(criteria);
        }
        for (name, value) in &self.metadata {
            if value.is_null() {
                task.metadata.shift_remove(name);
            } else {
                task.metadata.insert(name.clone(), value.clone());
            }
        }
        check_title(&task.title)?;
        check_bytes("the description", &task.description, MAX_DESCRIPTION_BYTES)?;
        check_metadata(&task.metadata)?;
        check_criteria(&task.acceptance_criteria)
    }
}

impl Finish {
    /// It is done, with this result.
    pub fn success(result: impl Into<Arc<str>>) -> Self {
        Self {
            is_completed: true,
            result: result.into(),
            caveats: None,
            evidence: Vec::new(),
        }
    }

    /// It could not be done, for this reason.
    pub fn failure(reason: impl Into<Arc<str>>) -> Self {
        Self {
            is_completed: false,
            ..Self::success(reason)
        }
    }

    /// Sets caveats of the result.
    #[must_use]
    pub fn caveats(self, caveats: impl Into<Arc<str>>) -> Self {
        Self {
            caveats: Some(caveats.into()),
            ..self
        }
    }

    /// Adds what shows that a criterion is met; the criterion by its text, or by its number, counted from 1.
    #[must_use]
    pub fn evidence(mut self, criterion: impl Into<Arc<str>>, proof: impl Into<Arc<str>>) -> Self {
        self.evidence.push(Evidence {
            criterion: criterion.into(),
            proof: proof.into(),
        });
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_bytes("the result", &self.result, MAX_RESULT_BYTES)?;
        check_bytes(
            "the caveats",
            self.caveats.as_deref().unwrap_or_default(),
            MAX_TEXT_BYTES,
        )?;
        check_count("pieces of evidence", self.evidence.len(), MAX_CRITERIA)?;
        self.evidence.iter().try_for_each(|it| {
            check_bytes("a criterion", &it.criterion, MAX_TEXT_BYTES)?;
            check_bytes("a piece of evidence", &it.proof, MAX_TEXT_BYTES)
        })
    }

    /// The evidence in the order of the criteria: everything that completion requires.
    pub(super) fn evidence_for(&self, criteria: &[Arc<str>]) -> Result<Vec<Evidence>, Error> {
        let mut proofs: Vec<Option<Arc<str>>> = vec![None; criteria.len()];
        for it in &self.evidence {
            let named = criteria
                .iter()
                .position(|criterion| criterion.trim() == it.criterion.trim());
            let numbered = || it.criterion.trim().parse::<usize>().ok()?.checked_sub(1);
            let slot = named.or_else(numbered).and_then(|at| proofs.get_mut(at));
            let Some(slot) = slot else {
                return Err(invalid(format!(
                    "no criterion of the task is {:?}",
                    short(&it.criterion)
                )));
            };
            *slot = Some(Arc::clone(&it.proof)).filter(|proof| !proof.trim().is_empty());
        }
        let missing = criteria
            .iter()
            .zip(&proofs)
            .filter(|(_, proof)| proof.is_none() && self.is_completed);
        let missing: Vec<String> = missing
            .map(|(criterion, _)| format!("{:?}", short(criterion)))
            .collect();
        if !missing.is_empty() {
            return Err(invalid(format!(
                "evidence is missing for {}",
                missing.join(", ")
            )));
        }
        let shown = criteria.iter().zip(proofs);
        Ok(shown
            .filter_map(|(it, proof)| {
                Some(Evidence {
                    criterion: Arc::clone(it),
                    proof: proof?,
                })
            })
            .collect())
    }
}
