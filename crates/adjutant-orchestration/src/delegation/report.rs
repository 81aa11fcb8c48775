//! The result of a delegated task, in the form for the delegating agent.

use adjutant_agent::{Outcome, RunResult};
use adjutant_tool::ToolError;
use serde::{Deserialize, Serialize};

use crate::{
    Completion, CompletionStatus,
    text::{chain, cut_chars},
};

/// The largest number of characters of a result.
pub(super) const MAX_RESULT_CHARS: usize = 2_000;
/// The largest number of characters of an agent's name, which may be invalid.
const MAX_NAME_CHARS: usize = 200;
/// The largest number of characters of an error.
const MAX_ERROR_CHARS: usize = 1_000;

/// The result of a delegated task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskReport {
    /// The responsible instance; the requested name without one.
    pub(super) agent: String,
    /// The entry that it is of.
    #[serde(skip)]
    pub(super) config: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion: Option<Completion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
}

impl TaskReport {
    /// A task that came to nothing.
    pub(super) fn error(agent: impl Into<String>, error: impl AsRef<str>) -> Self {
        let error = cut_chars(error.as_ref(), MAX_ERROR_CHARS).into_owned();
        let agent = cut_chars(&agent.into(), MAX_NAME_CHARS).into_owned();
        Self {
            agent,
            error: Some(error),
            ..Self::default()
        }
    }

    /// The result of an instance.
    pub(super) fn from_result(agent: &str, ended: Result<RunResult, ToolError>) -> Self {
        let result = match ended {
            Ok(result) => result,
            Err(error) => return Self::error(agent, chain(&error)),
        };
        if let Some(completion) = Completion::from_run(&result) {
            return Self::from_completion(agent, completion);
        }
        match &result.outcome {
            Outcome::Finished { why, .. } => {
                let warning = (*why == adjutant_agent::Completion::Length)
                    .then(|| "the answer was cut off by the output limit".to_owned());
                let text = cut_chars(&result.text(), MAX_RESULT_CHARS).into_owned();
                Self {
                    agent: agent.into(),
                    result: Some(text),
                    warning,
                    ..Self::default()
                }
            }
            Outcome::Limit { limit } => {
                let said = result.text();
                let said = if said.is_empty() {
                    said
                } else {
                    format!("; its last reply: {said}")
                };
                let summary =
                    format!("the agent reached its limit of {limit} before it was done{said}");
                Self::from_completion(agent, Completion::failure(summary).into_bounded())
            }
            Outcome::Cancelled { by } => {
                Self::error(agent, format!("the agent was stopped by {by}"))
            }
            Outcome::Failed { failure } => {
                Self::error(agent, format!("the agent failed: {failure}"))
            }
            _ => Self::error(agent, "the agent did not come to an end"),
        }
    }

    fn from_completion(agent: &str, completion: Completion) -> Self {
        Self {
            agent: agent.into(),
            result: Some(completion.text()),
            completion: Some(completion),
            ..Self::default()
        }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: String) {
        let warning = cut_chars(&warning, MAX_ERROR_CHARS).into_owned();
        self.warning = Some(match self.warning.take() {
            Some(known) => format!("{known}; {warning}"),
            None => warning,
        });
    }

    /// The end that counts for the task: without a report and without an error, it is done.
    pub(super) fn end(&self) -> Completion {
        match (&self.completion, &self.error) {
            (_, Some(error)) => Completion::failure(error.as_str()),
            (Some(completion), None) => completion.clone(),
            (None, None) => Completion::success(self.result.clone().unwrap_or_default()),
        }
    }

    /// The failure that something can be learned from.
    pub(super) fn failure(&self) -> Option<&Completion> {
        let is_failed = |completion: &&Completion| completion.status == CompletionStatus::Failed;
        self.completion
            .as_ref()
            .filter(|_| self.error.is_none())
            .filter(is_failed)
    }

    /// True if the lessons helped with the task; unknown if the task was interrupted.
    pub(super) fn is_helpful(&self) -> Option<bool> {
        self.error
            .is_none()
            .then(|| self.end().status == CompletionStatus::Completed)
    }
}
