//! The plan of a delegate call: decided once, and the same whenever the call is entered again.

use std::sync::Arc;

use adjutant_agent::{LogId, Spawn};
use adjutant_llm::Entry;
use adjutant_tool::{CallContext, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{DelegationShared, Recalled};

/// The largest number of restarts of a step that crashes interrupted.
const MAX_TORN: usize = 100;

/// The state of a step before a crash: its work may already be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    Maybe,
}

/// One task from the model.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TaskOrder {
    pub(super) agent: String,
    pub(super) task: String,
    pub(super) context: String,
    #[serde(default)]
    pub(super) task_id: Option<String>,
    #[serde(default)]
    mode: Mode,
}

/// The permission of an agent to send questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Blocking,
    Interactive,
}

/// The decisions for one task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Planned {
    /// The name of the instance.
    pub(super) instance: String,
    /// The lessons of earlier failures.
    #[serde(default)]
    pub(super) prior: Recalled,
}

impl TaskOrder {
    /// True if its agent can send questions.
    pub(super) fn may_ask(&self) -> bool {
        self.mode == Mode::Interactive
    }
}

/// Decides for each task; none for a task of an agent that is not known.
pub(super) async fn plan(
    cx: &CallContext,
    shared: &Arc<DelegationShared>,
    orders: &[TaskOrder],
) -> Result<Vec<Option<Planned>>, ToolError> {
    remember(cx, shared);
    run_durably(cx, "plan", |_| async {
        let mut plan = Vec::with_capacity(orders.len());
        for order in orders {
            let is_known = shared.registry.get(&order.agent).is_some();
            plan.push(if is_known {
                Some(plan_task(shared, order).await)
            } else {
                None
            });
        }
        Ok(plan)
    })
    .await
}

/// Looks up the names already used in this conversation, once: in another program, the numbers start again.
fn remember(cx: &CallContext, shared: &DelegationShared) {
    let (Some(log), Some(spawn)) = (cx.get::<LogId>(), cx.get::<dyn Spawn>()) else {
        return;
    };
    if !shared.registry.is_new(&log, &cx.who.thread) {
        return;
    }
    let history = spawn.parent().history;
    let results = history.iter().filter_map(|stored| match &stored.entry {
        Entry::Turn(turn) => Some(turn.results()),
        _ => None,
    });
    let reports = results
        .flatten()
        .filter_map(|result| result.details.as_array());
    for instance in reports
        .flatten()
        .filter_map(|report| report.get("agent")?.as_str())
    {
        shared.registry.was_there(instance);
    }
}

async fn plan_task(shared: &DelegationShared, order: &TaskOrder) -> Planned {
    let instance = shared.registry.instance_name(&order.agent, &order.task);
    let prior = match &shared.reflections {
        None => Recalled::default(),
        Some(reflections) => reflections
            .recall(&order.task)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "what was learned of failures could not be looked up");
                Recalled::default()
            }),
    };
    Planned { instance, prior }
}

/// Runs `work` until its result is in the log; it must be safe to repeat, and gets a flag if it is repeated.
pub(super) async fn run_durably<T, F, Fut>(
    cx: &CallContext,
    key: &str,
    work: F,
) -> Result<T, ToolError>
where
    T: Serialize + DeserializeOwned + Send,
    F: Fn(Again) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, ToolError>> + Send,
{
    let mut last = None;
    for torn in 0..MAX_TORN {
        let key = if torn == 0 {
            key.to_owned()
        } else {
            format!("{key}.{torn}")
        };
        let again = if torn == 0 { Again::No } else { Again::Maybe };
        match cx.once(&key, || work(again)).await {
            Err(error) if error.kind == ToolErrorKind::OutcomeUnknown => last = Some(error),
            settled => return settled,
        }
    }
    Err(last.unwrap_or_else(|| ToolError::failed(format!("step {key:?} was never begun"))))
}
