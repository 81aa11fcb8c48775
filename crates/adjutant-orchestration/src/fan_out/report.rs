//! The texts of a fan-out for the model and the application.

use std::fmt::Write;

use adjutant_llm::{CallResult, Status};
use adjutant_tool::Progress;
use serde_json::{Value, json};

use super::TaskResult;
use crate::{
    child_run::{AgentEnd, TaskState},
    text::cut_with_ellipsis,
};

/// The largest number of bytes of all answers together.
pub(super) const MAX_OUTPUT_BYTES: usize = 100_000;
/// The largest number of bytes of a task above its answer.
const MAX_TITLE_BYTES: usize = 200;
/// The number of bytes of a section in addition to its title and its answer.
const FRAME_BYTES: usize = 160;

/// The result of the call: an error only if no task was completed.
pub(super) fn result(
    tasks: &[String],
    results: &[TaskResult],
    max_result_bytes: usize,
) -> CallResult {
    let share = MAX_OUTPUT_BYTES / tasks.len().max(1);
    let share = share.saturating_sub(MAX_TITLE_BYTES.min(share / 4) + FRAME_BYTES);
    let max_bytes = max_result_bytes.min(share);
    let (mut text, mut details, mut completed) = (String::new(), Vec::new(), 0);
    for (at, (task, result)) in tasks.iter().zip(results).enumerate() {
        let ended = AgentEnd::from_result(result);
        completed += usize::from(ended.state == TaskState::Completed);
        section(&mut text, at + 1, task, &ended, max_bytes);
        details.push(detail(task, &ended));
    }
    let status = if completed == 0 {
        Status::Failed
    } else {
        Status::Ok
    };
    CallResult {
        details: Value::Array(details),
        ..CallResult::new(status, text)
    }
}

/// The progress report for observers when a task has ended.
pub(super) fn progress(done: usize, tasks: &[String], at: usize, result: &TaskResult) -> Progress {
    let (ended, task) = (
        AgentEnd::from_result(result),
        tasks.get(at).map_or("", String::as_str),
    );
    let of = tasks.len();
    let text = format!(
        "{done}/{of}: task {} {}: {}",
        at + 1,
        ended.state.word(),
        title(task)
    );
    let mut progress = Progress::text(text);
    progress.details =
        json!({"done": done, "of": of, "task": at + 1, "status": ended.state.word()});
    progress
}

fn section(text: &mut String, number: usize, task: &str, ended: &AgentEnd, max_bytes: usize) {
    let shown = cut_with_ellipsis(&ended.text, max_bytes);
    let left_out = ended.text.len().saturating_sub(max_bytes);
    // Writing to a string does not fail.
    let _ = writeln!(text, "## Task {number}: {}", title(task));
    let mark = match ended.state {
        TaskState::Completed => "",
        TaskState::Failed | TaskState::Running => "**Error:** ",
        TaskState::Cancelled => "**Cancelled:** ",
    };
    let _ = writeln!(text, "{mark}{shown}");
    if left_out > 0 {
        let _ = writeln!(text, "[{left_out} bytes more were left out]");
    }
    text.push('\n');
}

fn detail(task: &str, ended: &AgentEnd) -> Value {
    let key = if ended.state == TaskState::Completed {
        "result"
    } else {
        "error"
    };
    json!({"task": task, "status": ended.state.word(), key: ended.text, "usage": ended.usage})
}

/// A task in one line.
fn title(task: &str) -> String {
    let line = task.split_whitespace().collect::<Vec<_>>().join(" ");
    cut_with_ellipsis(&line, MAX_TITLE_BYTES).into_owned()
}
