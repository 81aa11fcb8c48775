//! The launch of a task: its id, its agent as a child of the run, and the program that looks after it.

use std::sync::Arc;

use adjutant_agent::{Agent, LogId, MemberRun, RunLine, Spawn};
use adjutant_llm::{CallId, CallResult, Entry, ThreadId, Transcript};
use adjutant_tool::{CallContext, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    ear::Ear,
    follow, kept,
    task::{BackgroundTask, NewTask},
    task_table::TaskTable,
};
use crate::{child_run::with_task, text::cut_with_ellipsis};

/// The key of the child in its call.
const KEY: &str = "task";
/// The largest number of bytes of a task in listings.
const MAX_TASK_BYTES: usize = 500;
/// The version of `background.launched` and `background.ended`.
pub(super) const VERSION: u32 = 1;

/// The task that is to be launched.
pub(super) struct LaunchOrder {
    pub(super) name: Arc<str>,
    pub(super) agent: Agent,
    pub(super) task: String,
    pub(super) max_turns: Option<u32>,
    pub(super) keep: bool,
}

/// The data of `background.launched`, so that a task can be found again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Launched {
    pub(super) task_id: Arc<str>,
    pub(super) number: u64,
    pub(super) agent: Arc<str>,
    pub(super) thread: ThreadId,
    /// The task for listings.
    pub(super) task: Arc<str>,
    /// The whole prompt.
    pub(super) prompt: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_turns: Option<u32>,
    /// True if the task outlives its run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) kept: bool,
}

/// The marks about tasks in the details of results, for the application; they are found again in the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// A task was launched.
    Launched {
        task_id: Arc<str>,
        agent: Arc<str>,
        thread: ThreadId,
        session: LogId,
        #[serde(default)]
        kept: bool,
    },
    /// The model has received the end of a task.
    Settled { task_id: Arc<str> },
}

impl Mark {
    /// As the details of a result.
    pub(super) fn details(&self) -> Value {
        json!({ "background": self })
    }

    /// Returns the mark in the details of a result.
    pub(super) fn from_details(details: &Value) -> Option<Self> {
        Self::deserialize(details.get("background")?).ok()
    }
}

/// The session that a call belongs to.
pub(super) fn session(cx: &CallContext) -> Result<LogId, ToolError> {
    let log = cx.get::<LogId>();
    log.map(|log| LogId::clone(&log))
        .ok_or_else(|| ToolError::failed("tasks are launched only within a call of a run"))
}

/// Launches a task, and returns the result for the model.
pub(super) async fn launch(
    table: &Arc<TaskTable>,
    cx: &CallContext,
    order: LaunchOrder,
) -> Result<CallResult, ToolError> {
    if order.task.trim().is_empty() {
        return Err(ToolError::new(
            ToolErrorKind::InvalidArguments,
            "`task` is blank: say what to do",
        ));
    }
    let (session, line) = (session(cx)?, RunLine::from_context(cx)?);
    let outside = || ToolError::failed("tasks are launched only within a call of a run");
    let spawn = cx.get::<dyn Spawn>().ok_or_else(outside)?;
    let agent = order.max_turns.map_or(order.agent.clone(), |turns| {
        order.agent.clone().cap_turns(turns)
    });
    let (by, number) = (
        cx.who.thread.clone(),
        number(&spawn.parent().history, line.call),
    );
    let new = |thread| NewTask {
        session: session.clone(),
        by: by.clone(),
        number,
        agent: Arc::clone(&order.name),
        thread,
        task: cut_with_ellipsis(&order.task, MAX_TASK_BYTES).into(),
        kept: order.keep,
    };
    let agent = with_task(agent, &order.task);
    if order.keep {
        let no_journal =
            || ToolError::failed("nothing can be kept here: there is no journal for it");
        let journal = table.journal().ok_or_else(no_journal)?;
        let log = kept::log_of(&session, &by, line.call)?;
        if let Some(task) = table.find(&session, &by, &ThreadId::from(&*log.0)) {
            // The call was entered again, and the task is already managed.
            line.app(
                "background.launched",
                VERSION,
                json!(record_of(&task, &order)),
            );
            return Ok(launch_result(&task));
        }
        // No await between listing it and managing it.
        let stands = kept::stands(&*journal, &log).await?;
        let task = table.list(new(ThreadId::from(&*log.0)))?;
        line.app(
            "background.launched",
            VERSION,
            json!(record_of(&task, &order)),
        );
        let agent = agent.journal(journal).session(log);
        let begun = kept::begin(table, &task, stands, agent, &order.task, Ear::Run(line));
        begun.inspect_err(|_| table.unlist(&task))?;
        return Ok(launch_result(&task));
    }
    if let Some(task) = table.find(&session, &by, &line.thread_for_key(KEY)) {
        // The call was entered again, and the task was found in the log before.
        return Ok(launch_result(&task));
    }
    let child = spawn.keep(KEY, agent.into()).await?;
    let task = table.list(new(child.identity().thread.clone()))?;
    let record = json!(record_of(&task, &order));
    let run = child
        .stream(order.task)
        .inspect_err(|_| table.unlist(&task))?;
    line.app("background.launched", VERSION, record);
    tokio::spawn(follow::follow(
        Arc::clone(table),
        Arc::clone(&task),
        MemberRun::Child(run),
        Ear::Run(line),
    ));
    Ok(launch_result(&task))
}

fn launch_result(task: &BackgroundTask) -> CallResult {
    let said = json!({"task_id": task.id, "agent": task.agent, "status": "launched"});
    let mark = Mark::Launched {
        task_id: Arc::clone(&task.id),
        agent: Arc::clone(&task.agent),
        thread: task.thread.clone(),
        session: task.session.clone(),
        kept: task.kept,
    };
    CallResult {
        details: mark.details(),
        ..CallResult::ok(said.to_string())
    }
}

fn record_of(task: &BackgroundTask, order: &LaunchOrder) -> Launched {
    Launched {
        task_id: Arc::clone(&task.id),
        number: task.number,
        agent: Arc::clone(&task.agent),
        thread: task.thread.clone(),
        task: Arc::clone(&task.task),
        prompt: order.task.as_str().into(),
        max_turns: order.max_turns,
        kept: order.keep,
    }
}

/// The number of the task that a call launches: greater than all before it in the conversation.
///
/// It depends only on the log, so that a call that is entered again gets the same number, and a restarted program
/// uses none twice. Calls of one turn differ in their blocks; numbers between them are unused.
fn number(history: &Transcript, call: CallId) -> u64 {
    let newest = history.iter().rev().find_map(|stored| match &stored.entry {
        Entry::Turn(turn) => turn
            .results()
            .iter()
            .filter_map(|result| launch_number(&result.details))
            .max(),
        _ => None,
    });
    newest
        .unwrap_or(0)
        .saturating_add(1)
        .saturating_add(u64::from(call.block))
}

fn launch_number(details: &Value) -> Option<u64> {
    match Mark::from_details(details)? {
        Mark::Launched { task_id, .. } => task_id.strip_prefix("task-")?.parse().ok(),
        Mark::Settled { .. } => None,
    }
}
