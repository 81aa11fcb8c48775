//! The stage of the loop's tests: a scripted model, tools that are functions, and short views of what happened.

use std::sync::Arc;

use adjutant_agent::{Agent, EventKind, RunResult, Running};
use adjutant_llm::{CallResult, Script, ScriptedModel, Status};
use adjutant_tool::{CallContext, ErasedTool, ToolError, ToolSpec, tool_fn};
use serde_json::{Value, json};

/// A model that says these replies, and an agent with it.
pub(crate) fn agent(scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), Agent::new(model))
}

/// What a tool says about itself when its arguments may be any object.
pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "A tool.", json!({"type": "object"}))
}

/// A tool that takes any object.
pub(crate) fn tool<Fut>(
    name: &str,
    body: impl Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
) -> impl ErasedTool + 'static
where
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    tool_fn(spec(name), body)
}

/// The calls of a run: the tool, how it ended, and what the model is told.
pub(crate) fn calls(result: &RunResult) -> Vec<(String, Status, String)> {
    let short = |report: &adjutant_agent::CallReport| {
        (
            report.name.to_string(),
            report.result.status,
            report.result.text(),
        )
    };
    result.calls.iter().map(short).collect()
}

/// All events of a run.
pub(crate) async fn events(mut running: Running) -> Vec<EventKind> {
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event.kind);
    }
    events
}
