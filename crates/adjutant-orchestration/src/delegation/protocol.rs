//! How an agent reports the completion of its task: the tool `task_complete`, and its section of the prompt.

use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_agent::{
    Agent,
    sections::{SectionKind, section_text},
};
use adjutant_llm::{CallResult, Terminate};
use adjutant_tool::{ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde_json::{Value, json};

use crate::{Completion, completion::TASK_COMPLETE};

/// Its section of the prompt.
const PROTOCOL: &str = "\
Another agent has given you this task, and reads nothing but what you report. When the task is done, or when you are sure \
that you cannot do it, call `task_complete` exactly once: that ends your work. Report what you found and changed, not what \
you intended. Say `failed` rather than presenting half of the work as the whole.";

/// Gives an agent the tool to report completion.
pub(super) fn install(agent: Agent) -> Agent {
    agent
        .tool(tool())
        .section(section_text(SectionKind::CompletionProtocol, PROTOCOL))
}

fn tool() -> impl ErasedTool + 'static {
    let is_said = AtomicBool::new(false);
    tool_fn(spec(), move |args: Value, _| {
        let said = serde_json::from_value::<Completion>(args).map(Completion::into_bounded);
        let answer = match said {
            Err(error) => Err(ToolError::new(
                ToolErrorKind::InvalidArguments,
                "this is no completion",
            )
            .with_source(error)),
            Ok(_) if is_said.swap(true, Ordering::SeqCst) => Ok(CallResult {
                terminate: Terminate::Now,
                ..CallResult::ok("Ignored: you have reported already, and the first report counts.")
            }),
            Ok(completion) => Ok(CallResult {
                details: json!(completion),
                terminate: Terminate::Now,
                ..CallResult::ok("Reported.")
            }),
        };
        async move { answer }
    })
}

fn spec() -> ToolSpec {
    let list = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let schema = json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["completed", "failed"],
                "description": "Whether the task is done.",
            },
            "summary": {
                "type": "string",
                "description": "What was done and found, or why it could not be done; at most 2,000 characters.",
            },
            "files_modified": list("The files that were changed."),
            "tests_run": list("The tests that were run, and how they ended."),
            "caveats": { "type": "string", "description": "What whoever builds on it must know: limits, open ends." },
        },
        "required": ["status", "summary"],
        "additionalProperties": false,
    });
    let about = "Reports that your task is done, or that you give it up, and ends your work.";
    // One after the other: of several reports in one turn, the first counts.
    ToolSpec {
        replay: Replay::Idempotent,
        sequential: true,
        ..ToolSpec::new(TASK_COMPLETE, about, schema)
    }
}
