//! How an agent under another one ended, in one word and in a text that a model can use.

use adjutant_agent::{Outcome, RunResult};
use adjutant_llm::Usage;
use adjutant_tool::{ToolError, ToolErrorKind};

use crate::text::{chain, ellipsed};

/// How many bytes of a task are kept in what identifies an agent.
pub(crate) const MAX_TASK_BYTES: usize = 200;
/// How many bytes of an error are told.
const MAX_ERROR_BYTES: usize = 2_000;

/// How an agent ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Failed,
    Cancelled,
}

/// How an agent ended: its answer, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) text: String,
    pub(crate) usage: Usage,
}

impl End {
    pub(crate) fn word(self) -> &'static str {
        match self {
            End::Completed => "completed",
            End::Failed => "failed",
            End::Cancelled => "cancelled",
        }
    }
}

impl Ended {
    pub(crate) fn of(result: &Result<RunResult, ToolError>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let end = if error.kind() == ToolErrorKind::Cancelled { End::Cancelled } else { End::Failed };
                return Self {
                    end,
                    text: ellipsed(&chain(error), MAX_ERROR_BYTES).into_owned(),
                    usage: Usage::default(),
                };
            }
        };
        let (end, why) = match &result.outcome {
            Outcome::Finished { .. } => {
                return Self { end: End::Completed, text: result.text(), usage: result.total_usage };
            }
            Outcome::Limit { limit } => (End::Failed, format!("the agent reached its limit of {limit}")),
            Outcome::Cancelled { by } => (End::Cancelled, format!("the agent was stopped by {by}")),
            Outcome::Failed { failure } => (End::Failed, format!("the agent failed: {failure}")),
            Outcome::Paused { .. } => (End::Failed, "the agent waits for the outside".to_owned()),
        };
        let said = result.text();
        let text = if said.is_empty() { why } else { format!("{why}; it had said: {said}") };
        Self { end, text, usage: result.total_usage }
    }
}
