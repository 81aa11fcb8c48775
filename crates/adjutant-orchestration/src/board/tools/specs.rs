//! The texts for models about the tools of a board.

use std::time::Duration;

use adjutant_tool::{Replay, ToolSpec};
use serde_json::{Value, json};

use super::{
    super::{MAX_CRITERIA, MAX_DEPENDENCIES, TaskStatus},
    LISTED, MAX_LISTED, MAX_WAIT, WAIT,
};

/// The largest number of bytes of a result: a page, or a complete task.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// The time that a call of `wait_task` may take beyond its wait.
const GRACE: Duration = Duration::from_secs(30);

pub(super) fn create() -> ToolSpec {
    let about = "Puts a task on the board. It is pending until an agent claims it, and blocked until the tasks that it \
                 depends on are completed.";
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("create_task", about, contents(), &["title"])
    }
}

pub(super) fn list() -> ToolSpec {
    let about = "Lists the tasks on the board, oldest first, with what blocks them.";
    let fields = json!({
        "status": { "type": "string", "enum": TaskStatus::ALL, "description": "Only tasks that stand so." },
        "assignee": text("Only tasks of this agent."),
        "blocked": { "type": "boolean", "description": "Only tasks that are blocked, or only those that are not." },
        "after": text("Goes on behind this task: `more_after` of the page before."),
        "limit": {
            "type": "integer", "minimum": 1, "maximum": MAX_LISTED,
            "description": format!("How many at most; {LISTED} if nothing is said."),
        },
    });
    ToolSpec {
        replay: Replay::Pure,
        ..spec("list_tasks", about, fields, &[])
    }
}

pub(super) fn get() -> ToolSpec {
    let about = "Shows all there is to know about a task.";
    ToolSpec {
        replay: Replay::Pure,
        ..spec("get_task", about, json!({ "task_id": id() }), &["task_id"])
    }
}

pub(super) fn claim() -> ToolSpec {
    let about = "Claims a pending task that is not blocked: from then on it is yours to do. Claim a task before you work \
                 on it, and again or update it now and then while you do, or it may be given to another agent.";
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec(
            "claim_task",
            about,
            json!({ "task_id": id() }),
            &["task_id"],
        )
    }
}

pub(super) fn update() -> ToolSpec {
    let about = "Changes what a task says. What is not mentioned stays; dependencies and criteria are replaced, metadata \
                 is added, and taken away by null.";
    let mut fields = json!({ "task_id": id() });
    if let (Value::Object(fields), Value::Object(contents)) = (&mut fields, contents()) {
        fields.extend(contents);
    }
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec("update_task", about, fields, &["task_id"])
    }
}

pub(super) fn complete() -> ToolSpec {
    let about = "Ends your work on a task that you claimed. To complete it, every acceptance criterion needs evidence; if \
                 it cannot be done, say that it failed and why.";
    let evidence = json!({
        "type": "object",
        "properties": {
            "criterion": text("The criterion, by its text or its number, counted from 1."),
            "proof": text("What shows that it is met: what was run, and what came of it."),
        },
        "required": ["criterion", "proof"],
        "additionalProperties": false,
    });
    let fields = json!({
        "task_id": id(),
        "status": { "type": "string", "enum": ["completed", "failed"], "description": "How it ended." },
        "result": text("What came of it, or why it failed."),
        "caveats": text("What is to be minded about the result."),
        "evidence": { "type": "array", "items": evidence, "maxItems": MAX_CRITERIA },
    });
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec(
            "complete_task",
            about,
            fields,
            &["task_id", "status", "result"],
        )
    }
}

pub(super) fn wait() -> ToolSpec {
    let about = "Waits until a task has ended, and shows it. If it does not end in time, it is shown as it is.";
    let fields = json!({
        "task_id": id(),
        "timeout_seconds": {
            "type": "integer", "minimum": 1, "maximum": MAX_WAIT.as_secs(),
            "description": format!("How long to wait at most; {} if nothing is said.", WAIT.as_secs()),
        },
    });
    ToolSpec {
        replay: Replay::Pure,
        timeout: Some(MAX_WAIT + GRACE),
        ..spec("wait_task", about, fields, &["task_id"])
    }
}

pub(super) fn cancel() -> ToolSpec {
    let about = "Cancels a task that has not ended; who works on it is told to stop.";
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec(
            "cancel_task",
            about,
            json!({ "task_id": id() }),
            &["task_id"],
        )
    }
}

pub(super) fn retry() -> ToolSpec {
    let about = "Makes a task that failed or was cancelled pending again, so that it can be claimed once more.";
    // A second time, it could be another failure that is retried.
    ToolSpec {
        replay: Replay::Once,
        ..spec(
            "retry_task",
            about,
            json!({ "task_id": id() }),
            &["task_id"],
        )
    }
}

/// Returns the fields of a task's contents.
fn contents() -> Value {
    json!({
        "title": { "type": "string", "minLength": 1, "description": "What is to be done, in one line." },
        "description": text("All that must be known to do it."),
        "priority": { "type": "integer", "description": "The higher, the earlier it is done; 0 is usual." },
        "dependencies": {
            "type": "array", "items": { "type": "string" }, "maxItems": MAX_DEPENDENCIES,
            "description": "The ids of the tasks that must be completed before.",
        },
        "acceptance_criteria": {
            "type": "array", "items": { "type": "string" }, "maxItems": MAX_CRITERIA,
            "description": "What must be shown for it to be completed.",
        },
        "metadata": { "type": "object", "description": "Anything else that is to be kept with it." },
    })
}

fn spec(name: &str, about: &str, fields: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    ToolSpec {
        max_output: Some(MAX_OUTPUT_BYTES),
        ..ToolSpec::new(name, about, schema)
    }
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn id() -> Value {
    text("The id of the task, as list_tasks shows it.")
}
