//! Manages one task: records what its agent does, ends it, and notifies the agent that launched it.

use std::sync::Arc;

use adjutant_agent::{Event, EventKind, MemberRun};
use adjutant_llm::{Origin, UserMessage};
use serde_json::json;

use super::{
    TaskState,
    ear::Ear,
    launch::VERSION,
    task::{BackgroundTask, Stopper},
    task_table::TaskTable,
};
use crate::{
    child_run::{self, AgentEnd},
    text::cut_with_ellipsis,
};

/// The largest number of bytes of a result in the message about it.
const MAX_TOLD_BYTES: usize = 4_000;
/// The largest number of bytes of a result that are kept.
const MAX_KEPT_BYTES: usize = 100_000;
/// The largest number of bytes of a line of progress.
const MAX_LINE_BYTES: usize = 200;

/// Looks after a task until it has ended.
pub(super) async fn follow(
    table: Arc<TaskTable>,
    task: Arc<BackgroundTask>,
    run: MemberRun,
    ear: Ear,
) {
    let (ended, _) = child_run::follow(run, task.wish.cancelled(), |event| {
        note(&table, &task, event)
    })
    .await;
    end(&table, &task, &ear, AgentEnd::from_result(&ended));
}

fn note(table: &TaskTable, task: &BackgroundTask, event: &Event) {
    // A kept task is a first agent.
    let is_own = if task.kept {
        event.who.depth == 0
    } else {
        event.who.thread == task.thread
    };
    if !is_own {
        return;
    }
    let shown = match &event.kind {
        EventKind::ReplyFinished { reply, .. } => one_line(&reply.text()),
        EventKind::ToolStarted { name, .. } => format!("calls {name}"),
        _ => return,
    };
    if !shown.is_empty() {
        task.progress(shown.into());
        table.tell();
    }
}

/// Ends a task, and notifies its agent.
pub(super) fn end(table: &TaskTable, task: &BackgroundTask, ear: &Ear, ended: AgentEnd) {
    // The agent is not notified about a task that was stopped by its own request or by the end of its run.
    if ended.state != TaskState::Cancelled || task.stopper() == Stopper::Application {
        let (message, whole) = notice(task, ended.state, &ended.text);
        match ear.steer(message) {
            Ok(queued) => task.tell(queued, whole),
            // The result can still be read.
            Err(error) => tracing::warn!(
                task = &*task.id,
                "nobody is told that a task has ended: {error}"
            ),
        }
    }
    let (id, agent, thread) = (&task.id, &task.agent, &task.thread);
    let data = json!({"task_id": id, "agent": agent, "thread": thread, "status": ended.state, "usage": ended.usage});
    ear.app("background.ended", VERSION, data);
    settle(table, task, ended);
}

/// Ends a task. This is the last step: a waiting caller finds everything else done.
pub(super) fn settle(table: &TaskTable, task: &BackgroundTask, ended: AgentEnd) {
    let text = cut_with_ellipsis(&ended.text, MAX_KEPT_BYTES).into();
    task.end(ended.state, text, ended.usage);
    table.tell();
}

/// The message about the end of a task, and whether it contains the complete text.
fn notice(task: &BackgroundTask, state: TaskState, text: &str) -> (UserMessage, bool) {
    let (shown, whole) = (
        cut_with_ellipsis(text, MAX_TOLD_BYTES),
        text.len() <= MAX_TOLD_BYTES,
    );
    let mut said = format!(
        "The background task {} ({}) is {}:\n{shown}",
        task.id,
        task.agent,
        state.word()
    );
    if !whole {
        said.push_str(&format!(
            "\n[{} bytes in all: get_task gives the rest]",
            text.len()
        ));
    }
    (
        UserMessage {
            origin: Origin::Peer {
                from: task.thread.clone(),
            },
            ..UserMessage::text(said)
        },
        whole,
    )
}

/// The beginning of a text, in one line.
pub(super) fn one_line(text: &str) -> String {
    let head = cut_with_ellipsis(text, 4 * MAX_LINE_BYTES);
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    cut_with_ellipsis(&line, MAX_LINE_BYTES).into_owned()
}
