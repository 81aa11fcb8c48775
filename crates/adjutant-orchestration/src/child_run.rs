//! The run of an agent under another one: how it is followed to its end, and what that end is in words.

use std::pin::pin;

use adjutant_agent::{Agent, Event, MemberRun, Outcome, RunResult};
use adjutant_llm::Usage;
use adjutant_tool::{ToolError, ToolErrorKind};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use crate::text::{chain, cut_with_ellipsis};

/// The largest number of bytes of a task that are kept in the identity of an agent.
const MAX_TASK_BYTES: usize = 200;
/// The largest number of bytes of an error in a result.
const MAX_ERROR_BYTES: usize = 2_000;

/// The state of a task; after running it gets one of the others, which is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// Its agent is running.
    Running,
    /// Its agent has answered.
    Completed,
    /// Its agent could not answer.
    Failed,
    /// It was stopped before its agent answered.
    Cancelled,
}

/// The end of an agent: its answer, or the reason why it has none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentEnd {
    pub(crate) state: TaskState,
    pub(crate) text: String,
    pub(crate) usage: Usage,
}

/// An agent with a task in its identity section.
pub(crate) fn with_task(agent: Agent, task: &str) -> Agent {
    agent.identify(|who| who.task = Some(cut_with_ellipsis(task, MAX_TASK_BYTES).into()))
}

/// Follows a run to its end, and cancels it after a stop request; also returns that request.
pub(crate) async fn follow<W>(
    mut run: MemberRun,
    wish: impl Future<Output = W>,
    mut hear: impl FnMut(&Event),
) -> (Result<RunResult, ToolError>, Option<W>) {
    let (mut wish, mut wished) = (pin!(wish), None);
    loop {
        tokio::select! {
            biased;
            // An agent that continues after the request must not end before it is cancelled.
            why = &mut wish, if wished.is_none() => {
                run.cancel();
                wished = Some(why);
            }
            event = run.next() => match event {
                Some(event) => hear(&event),
                None => return (run.finish().await, wished),
            },
        }
    }
}

impl TaskState {
    /// True if the state is final.
    pub fn is_ended(self) -> bool {
        self != TaskState::Running
    }

    /// The state in one word, as models see it.
    pub fn word(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

impl AgentEnd {
    pub(crate) fn from_result(result: &Result<RunResult, ToolError>) -> Self {
        match result {
            Ok(result) => {
                let ended = Self::from_outcome(&result.outcome, result.total_usage);
                let text = match result.text() {
                    said if ended.state == TaskState::Completed => said,
                    said if said.is_empty() => ended.text,
                    said => format!("{}; its last reply: {said}", ended.text),
                };
                Self { text, ..ended }
            }
            Err(error) => {
                let is_cancelled = error.kind == ToolErrorKind::Cancelled;
                let state = if is_cancelled {
                    TaskState::Cancelled
                } else {
                    TaskState::Failed
                };
                Self {
                    state,
                    text: cut_with_ellipsis(&chain(error), MAX_ERROR_BYTES).into_owned(),
                    usage: Usage::default(),
                }
            }
        }
    }

    /// Returns the end for an outcome, without earlier text.
    pub(crate) fn from_outcome(outcome: &Outcome, usage: Usage) -> Self {
        let (state, text) = match outcome {
            Outcome::Finished { reply, .. } => (TaskState::Completed, reply.text()),
            Outcome::Limit { limit } => (
                TaskState::Failed,
                format!("the agent reached its limit of {limit}"),
            ),
            Outcome::Cancelled { by } => (
                TaskState::Cancelled,
                format!("the agent was stopped by {by}"),
            ),
            Outcome::Failed { failure } => {
                (TaskState::Failed, format!("the agent failed: {failure}"))
            }
            Outcome::Paused { .. } => (
                TaskState::Failed,
                "the agent waits for the outside".to_owned(),
            ),
        };
        Self { state, text, usage }
    }
}
