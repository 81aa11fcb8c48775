//! Fan-out as a tool: the model passes a list of tasks.

use std::sync::Arc;

use adjutant_agent::{Agent, AgentFactory};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AtFailure, FanOut, FanOutOptions, report};

/// What the model says.
#[derive(Deserialize)]
struct FanOutArgs {
    tasks: Vec<String>,
    #[serde(default)]
    stop_on_failure: Option<bool>,
}

/// A tool with this name that gives each of several tasks to a separate agent, each in a new conversation.
///
/// The model gets a section for each task, in the order of the tasks, with its answer or its error; the application
/// finds `[{task, status, result | error, usage}]` in the details. The call fails only if no task was completed. The
/// model can choose whether a failure stops the other tasks; otherwise the options apply. A call that was interrupted
/// by a crash continues with its agents, and pauses of an agent are pauses of the call.
pub fn fan_out_tool(
    name: &str,
    description: impl Into<Arc<str>>,
    template: Agent,
    options: FanOutOptions,
) -> impl ErasedTool + 'static {
    let fan_out = FanOut::new(template).options(options);
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new(name, description, schema(&fan_out.options))
    };
    let spec = ToolSpec {
        max_output: Some(report::MAX_OUTPUT_BYTES),
        ..spec
    };
    tool_fn(spec, move |args: Value, cx: CallContext| {
        let fan_out = fan_out.clone();
        async move {
            let order: FanOutArgs = serde_json::from_value(args).map_err(|error| {
                ToolError::new(ToolErrorKind::InvalidArguments, "these are no tasks")
                    .with_source(error)
            })?;
            let fan_out = match order.stop_on_failure {
                None => fan_out,
                Some(stops) => {
                    let at_failure = if stops {
                        AtFailure::CancelOthers
                    } else {
                        AtFailure::GoOn
                    };
                    let options = fan_out.options.clone().at_failure(at_failure);
                    fan_out.options(options)
                }
            };
            let (factory, mut done) = (AgentFactory::from_context(&cx)?, 0);
            let ended = |at, result: &_| {
                done += 1;
                cx.progress(report::progress(done, &order.tasks, at, result));
            };
            let results = fan_out.run_with(&factory, &order.tasks, ended).await?;
            Ok(report::result(
                &order.tasks,
                &results,
                fan_out.options.max_result_bytes,
            ))
        }
    })
}

fn schema(options: &FanOutOptions) -> Value {
    json!({
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": options.max_tasks,
                "items": { "type": "string", "minLength": 1 },
                "description": "What to do, one text for each agent, with everything that it must know.",
            },
            "stop_on_failure": {
                "type": "boolean",
                "description": "Whether the first failure stops all other tasks.",
            },
        },
        "required": ["tasks"],
        "additionalProperties": false,
    })
}
