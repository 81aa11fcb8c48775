//! Delays the end of a run until a task of it has ended, so that its agent gets the result.

use std::sync::Arc;

use adjutant_agent::{Hook, HookContext, Verdict, points::AfterTurn};
use adjutant_llm::{Entry, Terminate};
use async_trait::async_trait;
use futures_util::future::select_all;

use super::{launch::Mark, task::BackgroundTask, task_table::TaskTable};

/// Delays the end of a run while its tasks are running.
pub(super) struct Hold {
    table: Arc<TaskTable>,
}

impl Hold {
    pub(super) fn new(table: &Arc<TaskTable>) -> Self {
        Self {
            table: Arc::clone(table),
        }
    }

    /// The tasks of the agent, if its run launched any: tasks of earlier runs are not running.
    fn tasks(&self, cx: &HookContext, point: &AfterTurn) -> Vec<Arc<BackgroundTask>> {
        let turns = point.entries.iter().filter_map(|entry| match entry {
            Entry::Turn(turn) => Some(turn),
            _ => None,
        });
        let mut marks = turns
            .flat_map(|turn| turn.results())
            .filter_map(|result| Mark::from_details(&result.details));
        let session = marks.find_map(|mark| match mark {
            Mark::Launched { session, .. } => Some(session),
            Mark::Settled { .. } => None,
        });
        session.map_or_else(Vec::new, |session| {
            self.table.tasks_for(&session, &cx.who.thread)
        })
    }
}

#[async_trait]
impl Hook<AfterTurn> for Hold {
    async fn on(&self, cx: HookContext, point: AfterTurn) -> Verdict<AfterTurn> {
        if !ends(&point) {
            return Verdict::Pass(point);
        }
        let tasks = self.tasks(&cx, &point);
        // A message makes the run continue: tasks that still run then are waited for the next time.
        while !tasks.iter().any(|task| task.is_told()) {
            let running: Vec<_> = tasks
                .iter()
                .filter(|task| !task.kept && !task.state().is_ended())
                .collect();
            if running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => break,
                _ = select_all(running.iter().map(|task| Box::pin(task.wait_finished()))) => {}
            }
        }
        Verdict::Pass(point)
    }
}

/// True if the run would end after this turn without a message, because its agent has answered.
fn ends(point: &AfterTurn) -> bool {
    !point.stop
        && point
            .results
            .iter()
            .all(|result| result.terminate == Terminate::IfAll)
}
