//! The tools with which a model launches, lists, awaits and stops tasks.

use std::{sync::Arc, time::Duration};

use adjutant_agent::RunLine;
use adjutant_llm::CallResult;
use adjutant_tool::{
    CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, Toolbox, Tools, tool_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Background, Launchable, TaskState,
    follow::one_line,
    launch::{LaunchOrder, Mark, VERSION, launch, session},
    task::{BackgroundTask, Stopper},
    task_table::TaskTable,
};
use crate::{Error, ErrorKind, text::cut_with_ellipsis};

/// The longest wait of `get_task`.
const MAX_WAIT: Duration = Duration::from_secs(3_600);
/// The time that `stop_task` waits for a task to end.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// The time that a call may take beyond its wait.
const SLACK: Duration = Duration::from_secs(60);
/// The largest number of bytes of a result that `get_task` shows.
const MAX_SHOWN_BYTES: usize = 50_000;

/// The arguments of any of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    agent: String,
    task: String,
    max_turns: Option<u32>,
    background: bool,
    keep: bool,
    task_id: String,
    wait: bool,
    timeout_ms: Option<u64>,
}

/// The tools, `launch_task` only if something can be launched.
pub(super) fn toolbox(background: &Background) -> impl Toolbox + 'static + use<> {
    let table = &background.table;
    let mut tools = Tools::new("background");
    if !background.agents.is_empty() {
        let agents = Arc::clone(&background.agents);
        let spec = launch_spec(agents.iter().map(|(name, it)| (&**name, it)));
        tools = tools.tool(tool(table, spec, move |table, args, cx| {
            let agents = Arc::clone(&agents);
            async move {
                let known = agents
                    .get_key_value(&*args.agent)
                    .ok_or_else(|| unknown(&args.agent))?;
                let (name, agent) = (Arc::clone(known.0), known.1.agent.clone());
                let Args {
                    task,
                    max_turns,
                    keep,
                    ..
                } = args;
                launch(
                    &table,
                    &cx,
                    LaunchOrder {
                        name,
                        agent,
                        task,
                        max_turns,
                        keep,
                    },
                )
                .await
            }
        }));
    }
    tools
        .tool(tool(table, get_spec(), get))
        .tool(tool(table, list_spec(), list))
        .tool(tool(table, stop_spec(), stop))
}

/// An agent as a tool, in the foreground or in the background.
pub(super) fn agent_tool(
    table: &Arc<TaskTable>,
    name: &str,
    description: Arc<str>,
    agent: adjutant_agent::Agent,
) -> impl ErasedTool + 'static + use<> {
    let (name, named): (Arc<str>, _) = (name.into(), name);
    table.know(&name, &agent);
    let foreground: Arc<dyn ErasedTool> = Arc::new(adjutant_agent::agent_tool(
        named,
        description,
        agent.clone(),
    ));
    let mut spec = foreground.spec();
    let mut schema = Value::clone(&spec.decl.schema);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let about = "Whether to go on at once: the answer is a task_id then, and a message tells the result later.";
        properties.insert(
            "background".to_owned(),
            json!({"type": "boolean", "description": about}),
        );
    }
    spec.decl.schema = schema.into();
    let table = Arc::clone(table);
    tool_fn(spec, move |value: Value, cx: CallContext| {
        let (table, foreground, name, agent) = (
            Arc::clone(&table),
            Arc::clone(&foreground),
            Arc::clone(&name),
            agent.clone(),
        );
        async move {
            let args = read(value.clone())?;
            if !args.background {
                return foreground.call(value, cx).await;
            }
            let Args {
                task, max_turns, ..
            } = args;
            launch(
                &table,
                &cx,
                LaunchOrder {
                    name,
                    agent,
                    task,
                    max_turns,
                    keep: false,
                },
            )
            .await
        }
    })
}

fn tool<F, Fut>(
    table: &Arc<TaskTable>,
    spec: ToolSpec,
    run: F,
) -> impl ErasedTool + 'static + use<F, Fut>
where
    F: Fn(Arc<TaskTable>, Args, CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    let table = Arc::clone(table);
    tool_fn(spec, move |args, cx| {
        let work = read(args).map(|args| run(Arc::clone(&table), args, cx));
        async move { work?.await }
    })
}

fn read(args: Value) -> Result<Args, ToolError> {
    serde_json::from_value(args)
        .map_err(|error| ToolError::new(ToolErrorKind::InvalidArguments, error.to_string()))
}

async fn get(table: Arc<TaskTable>, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
    let task = table.get(&session(&cx)?, &cx.who.thread, &args.task_id)?;
    if args.wait {
        let wait = args
            .timeout_ms
            .map_or(MAX_WAIT, Duration::from_millis)
            .min(MAX_WAIT);
        tokio::select! {
            biased;
            () = task.wait_finished() => {}
            () = cx.cancel.cancelled() => {
                return Err(ToolError::new(ToolErrorKind::Cancelled, "cancelled while it waited for a task"));
            }
            () = tokio::time::sleep(wait) => {}
        }
    }
    let standing = task.standing();
    let mut shown = json!({"task_id": task.id, "agent": task.agent, "status": standing.state});
    if !standing.state.is_ended() {
        shown["progress"] = json!(standing.progress);
        return Ok(CallResult::ok(shown.to_string()));
    }
    let key = if standing.state == TaskState::Completed {
        "result"
    } else {
        "error"
    };
    shown[key] = json!(cut_with_ellipsis(&standing.text, MAX_SHOWN_BYTES));
    if standing.text.len() > MAX_SHOWN_BYTES {
        shown["bytes"] = json!(standing.text.len());
    }
    task.read();
    if task.kept {
        // A later program need not find it again.
        RunLine::from_context(&cx)?.app("background.read", VERSION, json!({"task_id": task.id}));
    }
    table.tell();
    Ok(CallResult {
        details: build_settled_details(&task),
        ..CallResult::ok(shown.to_string())
    })
}

async fn list(table: Arc<TaskTable>, _: Args, cx: CallContext) -> Result<CallResult, ToolError> {
    let tasks = table.tasks_for(&session(&cx)?, &cx.who.thread);
    let line = |task: &Arc<BackgroundTask>| {
        let standing = task.standing();
        let what = one_line(&task.task);
        json!({
            "task_id": task.id, "agent": task.agent, "status": standing.state, "task": what,
            "progress": standing.progress,
        })
    };
    Ok(CallResult::ok(
        Value::from_iter(tasks.iter().map(line)).to_string(),
    ))
}

async fn stop(table: Arc<TaskTable>, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
    let task = table.get(&session(&cx)?, &cx.who.thread, &args.task_id)?;
    let was_running = task.stop(Stopper::Model);
    // The result is known only when the task has ended.
    let _ = tokio::time::timeout(STOP_WAIT, task.wait_finished()).await;
    let state = task.state();
    let message = match (was_running, state) {
        (_, TaskState::Running) => "it was asked to stop, and has not ended yet",
        (true, TaskState::Cancelled) => "it was stopped",
        (true, _) => "it ended before it could be stopped: get_task gives what it came to",
        (false, _) => "it had ended before",
    };
    let result = CallResult::ok(
        json!({"task_id": task.id, "status": state, "message": message}).to_string(),
    );
    Ok(if state == TaskState::Cancelled {
        CallResult {
            details: build_settled_details(&task),
            ..result
        }
    } else {
        result
    })
}

fn build_settled_details(task: &BackgroundTask) -> Value {
    Mark::Settled {
        task_id: Arc::clone(&task.id),
    }
    .details()
}

fn unknown(agent: &str) -> Error {
    Error::new(
        ErrorKind::Missing,
        format!(
            "no agent {:?} can be launched",
            cut_with_ellipsis(agent, 100)
        ),
    )
}

fn launch_spec<'a>(agents: impl Iterator<Item = (&'a str, &'a Launchable)> + Clone) -> ToolSpec {
    let names: Vec<_> = agents.clone().map(|(name, _)| name).collect();
    let lines: Vec<_> = agents
        .map(|(name, it)| format!("{name}: {}", it.description))
        .collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "agent": { "type": "string", "enum": names, "description": lines.join("\n") },
            "task": {
                "type": "string",
                "minLength": 1,
                "description": "What to do, with everything that must be known for it; nothing else is known there.",
            },
            "max_turns": { "type": "integer", "minimum": 1, "description": "How many requests it may make at most." },
            "keep": { "type": "boolean", "description": "Whether it goes on when your own work has ended." },
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    });
    let description = "Lets an agent work on a task in the background while you go on. A message tells you when it is done.";
    ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("launch_task", description, schema)
    }
}

fn get_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "task_id": { "type": "string", "minLength": 1 },
            "wait": { "type": "boolean", "description": "Whether to wait until it has ended." },
            "timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "How long to wait at most, in milliseconds; an hour by default.",
            },
        },
        "required": ["task_id"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new(
        "get_task",
        "Gives the status of a background task, and its result if it has one.",
        schema,
    );
    ToolSpec {
        replay: Replay::Pure,
        timeout: Some(MAX_WAIT + SLACK),
        ..spec
    }
}

fn list_spec() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let description =
        "Lists the background tasks: what each is to do, its status, and what it did last.";
    ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("list_tasks", description, schema)
    }
}

fn stop_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": { "task_id": { "type": "string", "minLength": 1 } },
        "required": ["task_id"],
        "additionalProperties": false,
    });
    ToolSpec {
        replay: Replay::Idempotent,
        ..ToolSpec::new("stop_task", "Stops a background task.", schema)
    }
}
