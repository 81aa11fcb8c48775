//! The toolbox `reflections`: an agent looks up lessons from failures.

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_orchestration::Reflections;
use adjutant_tool::{CallContext, Replay, ToolError, ToolErrorKind, ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

/// The description of the tool.
const ABOUT: &str = "Shows what was learned from tasks like this one that failed before. Describe the task in a sentence.";

/// The toolbox with `recall_reflections`.
pub(super) fn toolbox(reflections: &Reflections) -> Tools {
    let schema = json!({
        "type": "object",
        "properties": { "task": { "type": "string", "minLength": 1, "description": "What is to be done." } },
        "required": ["task"],
        "additionalProperties": false,
    });
    let reflections = Arc::new(reflections.clone());
    let spec = ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("recall_reflections", ABOUT, schema)
    };
    Tools::new("reflections").tool(tool_fn(spec, move |args: Value, _: CallContext| {
        let reflections = Arc::clone(&reflections);
        async move {
            let task = args.get("task").and_then(Value::as_str).unwrap_or_default();
            let found = reflections.recall(task).await.map_err(|error| {
                ToolError::new(ToolErrorKind::Failed, "the reflections cannot be read")
                    .with_source(error)
            })?;
            let text = Reflections::render(&found);
            Ok(CallResult::ok(if text.is_empty() {
                "nothing was learned of such tasks".to_owned()
            } else {
                text
            }))
        }
    }))
}
