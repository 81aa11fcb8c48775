//! An agent as a tool: the model gives it a task, and gets its answer.

use std::sync::Arc;

use adjutant_core::{Outcome, RunResult};
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Agent, AgentFactory};

/// The key of the child in its call.
const KEY: &str = "agent";

/// The arguments that the model gives.
#[derive(Deserialize)]
struct DelegateArgs {
    task: String,
    #[serde(default)]
    max_turns: Option<u32>,
}

/// A tool with this name that gives each task to an agent in a new conversation, and returns its answer.
///
/// The model may set the maximum number of requests of the agent, within the agent's own limit. A call that was cut
/// off by a crash continues where the agent was, and the pauses of the agent are pauses of the call.
pub fn agent_tool(
    name: &str,
    description: impl Into<Arc<str>>,
    agent: Agent,
) -> impl ErasedTool + 'static {
    let schema = json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "minLength": 1,
                "description": "What to do, with everything that must be known for it; nothing else is known there.",
            },
            "max_turns": { "type": "integer", "minimum": 1, "description": "How many requests it may make at most." },
        },
        "required": ["task"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new(name, description, schema)
    };
    tool_fn(spec, move |args: Value, cx: CallContext| {
        let agent = agent.clone();
        async move {
            let order: DelegateArgs = serde_json::from_value(args).map_err(|error| {
                ToolError::new(ToolErrorKind::InvalidArguments, "this is not a task")
                    .with_source(error)
            })?;
            if order.task.trim().is_empty() {
                return Err(ToolError::new(
                    ToolErrorKind::InvalidArguments,
                    "`task` is blank: say what to do",
                ));
            }
            let agent = order
                .max_turns
                .map_or(agent.clone(), |turns| agent.cap_turns(turns));
            let result = AgentFactory::from_context(&cx)?
                .create(KEY, agent)
                .await?
                .run(order.task)
                .await?;
            answer(&result)
        }
    })
}

fn answer(result: &RunResult) -> Result<CallResult, ToolError> {
    let ended = match &result.outcome {
        Outcome::Finished { .. } => {
            let wanted = result.output.as_ref().map(|value| value.to_string());
            return Ok(CallResult::ok(wanted.unwrap_or_else(|| result.text())));
        }
        Outcome::Limit { limit } => format!("the agent reached its limit of {limit}"),
        Outcome::Cancelled { by } => format!("the agent was stopped by {by}"),
        Outcome::Failed { failure } => format!("the agent failed: {failure}"),
        Outcome::Paused { .. } => "the agent waits for the outside".to_owned(),
    };
    let text = result.text();
    let reply = if text.is_empty() {
        String::new()
    } else {
        format!("; its last reply: {text}")
    };
    Err(ToolError::failed(format!("{ended}{reply}")))
}
