//! The tool `delegate`: several tasks at once, each to a separate agent, results in the order of the tasks.

use std::sync::{Arc, Mutex};

use adjutant_agent::Spawn;
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    DelegationLevel, DelegationShared, MAX_SHOWN_BYTES, TIMEOUT,
    agents::is_self,
    delegated_task::DelegatedTask,
    interactive, placed,
    plan::{TaskOrder, plan, run_durably},
};

/// The largest number of tasks in one call.
pub(super) const MAX_TASKS: usize = 128;

#[derive(Deserialize)]
struct Args {
    tasks: Vec<TaskOrder>,
}

/// The tool `delegate`.
pub(super) fn tool(
    shared: &Arc<DelegationShared>,
    place: &DelegationLevel,
) -> impl ErasedTool + 'static {
    let (shared, place) = (Arc::clone(shared), place.clone());
    tool_fn(
        spec(shared.is_interactive),
        move |args: Value, cx: CallContext| {
            let (shared, mut place) = (Arc::clone(&shared), place.clone());
            async move {
                let orders = read(args, &cx)?;
                // Limits also apply to an agent that the factory installed itself.
                place.left = place.left.min(
                    shared
                        .registry
                        .remaining_levels(&cx.who.agent_id)
                        .unwrap_or(place.left),
                );
                if place.left == 0 {
                    let message =
                        "no task was begun: the limit of depth is reached; do it yourself";
                    return Err(ToolError::new(ToolErrorKind::Denied, message));
                }
                if orders.is_empty() {
                    return Ok(CallResult {
                        details: json!([]),
                        ..CallResult::ok("[]")
                    });
                }
                let reports = place
                    .away(&cx, delegate(&cx, &shared, &place, orders))
                    .await?;
                let text = reports.to_string();
                Ok(CallResult {
                    details: reports,
                    ..CallResult::ok(text)
                })
            }
        },
    )
}

/// The model's arguments, if the call as a whole is valid.
fn read(args: Value, cx: &CallContext) -> Result<Vec<TaskOrder>, ToolError> {
    let refuse = |message: String| Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    let Args { mut tasks } = match serde_json::from_value(args) {
        Ok(args) => args,
        Err(error) => return refuse(format!("these are no tasks: {error}")),
    };
    let own = &cx.who.config_name;
    if tasks.iter().any(|order| is_self(own, &order.agent)) {
        return refuse(format!(
            "no task was begun: an agent cannot delegate to itself, {own:?}"
        ));
    }
    if tasks.len() > MAX_TASKS {
        return refuse(format!(
            "no task was begun: one call may hold {MAX_TASKS} tasks, not {}",
            tasks.len()
        ));
    }
    for order in &mut tasks {
        order.agent = order.agent.trim().to_owned();
        order.task_id = order
            .task_id
            .take()
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty());
    }
    Ok(tasks)
}

async fn delegate(
    cx: &CallContext,
    shared: &Arc<DelegationShared>,
    place: &DelegationLevel,
    orders: Vec<TaskOrder>,
) -> Result<Value, ToolError> {
    let spawn = cx.get::<dyn Spawn>();
    let spawn = spawn
        .ok_or_else(|| ToolError::failed("tasks are delegated only within a call of a run"))?;
    let planned = plan(cx, shared, &orders).await?;
    let loan = Mutex::new(None);
    // A task that is held or can ask questions while it works needs the delegating agent, and so do other tasks of
    // its call: lent budget is not available to them.
    let stays =
        |order: &TaskOrder| order.may_ask() || (order.task_id.is_some() && shared.board.is_some());
    let lent = match &shared.placement {
        Some(_) if !orders.iter().any(stays) => {
            Some(run_durably(cx, "placed", |_| placed::lend(cx, orders.len(), &loan)).await)
        }
        _ => None,
    };
    let tasks: Vec<DelegatedTask> = orders
        .into_iter()
        .zip(&planned)
        .enumerate()
        .map(|(at, (order, planned))| DelegatedTask {
            at,
            lent: lent.clone(),
            cx: cx.clone(),
            shared: Arc::clone(shared),
            place: place.clone(),
            spawn: Arc::clone(&spawn),
            order,
            planned: planned.clone(),
            line: None,
        })
        .collect();
    if shared.is_interactive && tasks.iter().any(|task| task.order.may_ask()) {
        return interactive::perform(cx, shared, tasks).await;
    }
    let reports = join_all(tasks.iter().map(DelegatedTask::perform)).await;
    if shared.reflections.is_some() {
        let learned = cx.once("learned", || async {
            for (task, report) in tasks.iter().zip(&reports) {
                task.learn(report).await;
            }
            Ok(())
        });
        if let Err(error) = learned.await {
            tracing::warn!(%error, "what was learned may be written down in part only");
        }
    }
    Ok(json!(reports))
}

fn spec(is_interactive: bool) -> ToolSpec {
    let text = |about: &str| json!({ "type": "string", "minLength": 1, "description": about });
    let mut task = json!({
        "type": "object",
        "properties": {
            "agent": text("The agent that is to do it."),
            "task": text("What to do, and how one sees that it is done."),
            "context": {
                "type": "string",
                "description": "What must be known for it: the agent knows nothing of this conversation.",
            },
            "task_id": { "type": "string", "description": "The task on the board that this is, if it is one." },
        },
        "required": ["agent", "task", "context"],
        "additionalProperties": false,
    });
    if is_interactive {
        task["properties"]["mode"] = json!({
            "type": "string",
            "enum": ["blocking", "interactive"],
            "description": "Whether the agent may ask you while it works; `blocking` by default.",
        });
    }
    let schema = json!({
        "type": "object",
        "properties": { "tasks": { "type": "array", "maxItems": MAX_TASKS, "items": task } },
        "required": ["tasks"],
        "additionalProperties": false,
    });
    let about = "Gives tasks to other agents, which work on them at the same time, and waits for all of them. The results \
        are in the order of the tasks.";
    ToolSpec {
        replay: Replay::Resumable,
        timeout: Some(TIMEOUT),
        max_output: Some(MAX_SHOWN_BYTES),
        ..ToolSpec::new("delegate", about, schema)
    }
}
