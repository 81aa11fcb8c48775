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
pub(crate) enum EndKind {
    Completed,
    Failed,
    Cancelled,
}

/// How an agent ended: its answer, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentEnd {
    pub(crate) end: EndKind,
    pub(crate) text: String,
    pub(crate) usage: Usage,
}

impl EndKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            EndKind::Completed => "completed",
            EndKind::Failed => "failed",
            EndKind::Cancelled => "cancelled",
        }
    }
}

impl AgentEnd {
    pub(crate) fn of(result: &Result<RunResult, ToolError>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let end = if error.kind() == ToolErrorKind::Cancelled { EndKind::Cancelled } else { EndKind::Failed };
                return Self {
                    end,
                    text: ellipsed(&chain(error), MAX_ERROR_BYTES).into_owned(),
                    usage: Usage::default(),
                };
            }
        };
        let (end, why) = match &result.outcome {
            Outcome::Finished { .. } => {
                return Self { end: EndKind::Completed, text: result.text(), usage: result.total_usage };
            }
            Outcome::Limit { limit } => (EndKind::Failed, format!("the agent reached its limit of {limit}")),
            Outcome::Cancelled { by } => (EndKind::Cancelled, format!("the agent was stopped by {by}")),
            Outcome::Failed { failure } => (EndKind::Failed, format!("the agent failed: {failure}")),
            Outcome::Paused { .. } => (EndKind::Failed, "the agent waits for the outside".to_owned()),
        };
        let said = result.text();
        let text = if said.is_empty() { why } else { format!("{why}; it had said: {said}") };
        Self { end, text, usage: result.total_usage }
    }
}
