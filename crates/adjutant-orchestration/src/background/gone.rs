//! The effect `background`: notifies the model of tasks that ended without a result, with their run or with the
//! program.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{Action, Effect, EffectContext, EffectError, LogId, Phase};
use adjutant_llm::{Entry, Origin, ThreadId};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{TaskState, launch::Mark, task_table::TaskTable};

/// The largest number of tasks that one reminder names.
const MAX_NAMED: usize = 20;

/// Notifies the model of lost tasks.
pub(super) struct Gone {
    table: Arc<TaskTable>,
}

/// The tasks whose end the model does not know, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct OpenTasks(BTreeMap<Arc<str>, OpenTask>);

/// A task whose end the model does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenTask {
    agent: Arc<str>,
    thread: ThreadId,
    session: LogId,
    #[serde(default)]
    kept: bool,
}

impl Gone {
    pub(super) fn new(table: &Arc<TaskTable>) -> Self {
        Self {
            table: Arc::clone(table),
        }
    }

    /// True if there will be no more news about a task.
    fn is_gone(&self, by: &ThreadId, id: &str, open: &OpenTask) -> bool {
        match self.table.get(&open.session, by, id) {
            Ok(task) => task.state() == TaskState::Cancelled && task.is_read(),
            // A task that is kept is somewhere, even if this program has not looked for it.
            Err(_) => !open.kept,
        }
    }
}

#[async_trait]
impl Effect for Gone {
    fn kind(&self) -> &str {
        "background"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if !matches!(cx.phase, Phase::Request | Phase::Preview) {
            return Ok(Vec::new());
        }
        let before: OpenTasks = cx.memo().unwrap_or_default();
        let mut open = before.clone();
        cx.fresh().for_each(|stored| open.hear(&stored.entry));
        let by = &cx.who.thread;
        let gone: Vec<_> = open
            .0
            .extract_if(.., |id, task| self.is_gone(by, id, task))
            .collect();
        let mut actions = Vec::new();
        if open != before {
            actions.push(Action::Remember(json!(open)));
        }
        if !gone.is_empty() {
            actions.push(Action::Remind(reminder(&gone).into()));
        }
        Ok(actions)
    }
}

impl OpenTasks {
    /// Records what an entry contains about tasks.
    fn hear(&mut self, entry: &Entry) {
        match entry {
            Entry::Turn(turn) => {
                turn.results()
                    .iter()
                    .filter_map(|result| Mark::from_details(&result.details))
                    .for_each(|mark| self.mark(mark));
            }
            Entry::User(message) => {
                if let Origin::Peer { from } = &message.origin {
                    self.0.retain(|_, task| task.thread != *from);
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Launched {
                task_id,
                agent,
                thread,
                session,
                kept,
            } => {
                self.0.insert(
                    task_id,
                    OpenTask {
                        agent,
                        thread,
                        session,
                        kept,
                    },
                );
            }
            Mark::Settled { task_id } => {
                self.0.remove(&task_id);
            }
        }
    }
}

fn reminder(gone: &[(Arc<str>, OpenTask)]) -> String {
    let named: Vec<_> = gone
        .iter()
        .take(MAX_NAMED)
        .map(|(id, task)| format!("{id} ({})", task.agent))
        .collect();
    let more = gone.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "These background tasks are lost, because the run or the program that they belonged to ended before they did: \
         {}{more}. Unless a message still tells what one came to, there is no result; launch it again if you need it.",
        named.join(", ")
    )
}
