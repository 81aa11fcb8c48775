//! Completion: the report of an agent at the end of its task. It is read from the run, so that a crash loses nothing.

use adjutant_agent::RunResult;
use serde::{Deserialize, Serialize};

use crate::text::cut_chars;

/// The name of the tool that says it.
pub(crate) const TASK_COMPLETE: &str = "task_complete";

/// The largest number of characters of the summary and of the caveats, each.
pub(crate) const MAX_SUMMARY_CHARS: usize = 2_000;
/// The largest number of files and of tests that are kept, each.
const MAX_ITEMS: usize = 100;
/// The largest number of characters of one name.
const MAX_ITEM_CHARS: usize = 300;

/// The report of an agent that was given a task, at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The status of the task: done or given up.
    pub status: CompletionStatus,
    /// The summary of the work, or the reason why it could not be done.
    pub summary: String,
    /// The files that were changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The tests that were run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests_run: Vec<String>,
    /// Caveats for agents that build on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveats: Option<String>,
}

/// The status of a finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStatus {
    /// It is.
    Completed,
    /// It failed, and the agent reported that.
    Failed,
}

impl Completion {
    /// A task that is done.
    pub fn success(summary: impl Into<String>) -> Self {
        Self::new(CompletionStatus::Completed, summary)
    }

    /// A task that the agent could not complete.
    pub fn failure(summary: impl Into<String>) -> Self {
        Self::new(CompletionStatus::Failed, summary)
    }

    /// The agent's report at the end of this run, from `task_complete`; the first one counts.
    pub fn from_run(result: &RunResult) -> Option<Self> {
        let said = result
            .calls
            .iter()
            .filter(|call| call.name.as_str() == TASK_COMPLETE && !call.result.is_error());
        said.into_iter()
            .find_map(|call| serde_json::from_value(call.result.details.clone()).ok())
    }

    fn new(status: CompletionStatus, summary: impl Into<String>) -> Self {
        let (files_modified, tests_run) = (Vec::new(), Vec::new());
        Self {
            status,
            summary: summary.into(),
            files_modified,
            tests_run,
            caveats: None,
        }
    }

    /// The same, within the limits of a context.
    pub(crate) fn into_bounded(self) -> Self {
        Self {
            status: self.status,
            summary: cut_chars(&self.summary, MAX_SUMMARY_CHARS).into_owned(),
            files_modified: items(self.files_modified),
            tests_run: items(self.tests_run),
            caveats: self
                .caveats
                .map(|text| cut_chars(&text, MAX_SUMMARY_CHARS).into_owned()),
        }
    }

    /// The report as one text.
    pub(crate) fn text(&self) -> String {
        if !self.summary.trim().is_empty() {
            return self.summary.clone();
        }
        match self
            .caveats
            .as_deref()
            .filter(|text| !text.trim().is_empty())
        {
            Some(caveats) => format!("{}: {caveats}", self.status.as_str()),
            None => self.status.as_str().to_owned(),
        }
    }
}

impl CompletionStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

fn items(items: Vec<String>) -> Vec<String> {
    let left_out = items.len().saturating_sub(MAX_ITEMS);
    let kept = items
        .into_iter()
        .take(MAX_ITEMS)
        .map(|item| cut_chars(&item, MAX_ITEM_CHARS).into_owned());
    kept.chain((left_out > 0).then(|| format!("and {left_out} more")))
        .collect()
}
