//! A delegated task: one delegated task, from its claim on the board to its report.

use std::sync::Arc;

use adjutant_agent::{Caps, RunResult, Spawn};
use adjutant_llm::ThreadId;
use adjutant_tool::{CallContext, Cancel, Progress, ToolError};
use serde_json::json;

use super::{
    DelegationLevel, DelegationShared, TaskEnd,
    driver::{Guard, Lost},
    handoff::Handoff,
    plan::{Planned, TaskOrder, run_durably},
    questions::QuestionLine,
    report::TaskReport,
    task_run::TaskRun,
};
use crate::{completion::CompletionStatus, text::cut_chars};

/// The largest number of characters of an agent's text in a progress report.
const MAX_PROGRESS_CHARS: usize = 500;

/// One delegated task.
pub(super) struct DelegatedTask {
    /// Its place among the tasks of the call.
    pub(super) at: usize,
    /// Its part of the call's lent budget, if it works in its own session.
    pub(super) lent: Option<Result<Caps, ToolError>>,
    pub(super) cx: CallContext,
    pub(super) shared: Arc<DelegationShared>,
    pub(super) place: DelegationLevel,
    pub(super) spawn: Arc<dyn Spawn>,
    pub(super) order: TaskOrder,
    pub(super) planned: Option<Planned>,
    /// The line to who delegated it, if it belongs to the run, and not to the call.
    pub(super) line: Option<Arc<QuestionLine>>,
}

/// The current agent of a delegated task, and the message of the previous one.
pub(super) struct Turn {
    pub(super) config: String,
    pub(super) instance: String,
    /// The number of previous agents of the task.
    pub(super) peers: u32,
    /// The message of the previous agent, and its thread.
    pub(super) handoff: Option<(String, ThreadId)>,
}

/// The end of a turn.
pub(super) enum DelegatedEnd {
    Ran(Box<Result<RunResult, ToolError>>),
    Lost(Lost),
}

impl DelegatedTask {
    /// Performs it; whatever happens, there is a report.
    pub(super) async fn perform(&self) -> TaskReport {
        let report = self.report().await;
        self.show(
            &report.agent,
            "result",
            report
                .result
                .as_deref()
                .or(report.error.as_deref())
                .unwrap_or_default(),
        );
        report
    }

    /// Writes down what can be learned of a result.
    pub(super) async fn learn(&self, report: &TaskReport) {
        let (Some(reflections), Some(Planned { prior, .. })) =
            (&self.shared.reflections, &self.planned)
        else {
            return;
        };
        if let Some(failure) = report.failure() {
            let recorded = reflections
                .record(&report.config, &self.order.task, failure)
                .await;
            recorded.unwrap_or_else(
                |error| tracing::warn!(%error, "a failure could not be written down"),
            );
        }
        if !prior.ids.is_empty() {
            let noted = reflections.outcome(&prior.ids, report.is_helpful()).await;
            noted.unwrap_or_else(
                |error| tracing::warn!(%error, "what helped could not be written down"),
            );
        }
    }

    async fn report(&self) -> TaskReport {
        let Some(planned) = &self.planned else {
            let message = format!(
                "there is no agent of this name: {:?}; hint: list_agents",
                self.order.agent
            );
            return TaskReport::error(&*self.order.agent, message);
        };
        if self.order.task.trim().is_empty() {
            return TaskReport::error(&*self.order.agent, "`task` is blank: say what to do");
        }
        let claimed = match self.claim(&planned.instance).await {
            Ok(claimed) => claimed,
            Err(error) => {
                return TaskReport::error(
                    &*planned.instance,
                    format!("the task cannot be claimed: {error}"),
                );
            }
        };
        let (guard, criteria) = claimed.unzip();
        let mut report = self
            .pass_on(planned, guard, &criteria.unwrap_or_default())
            .await;
        if self.order.task_id.is_some() && self.shared.board.is_none() {
            report.warn("there is no board: `task_id` is ignored".to_owned());
        }
        report
    }

    /// Takes the task on the board; `None` if it is not on a board.
    async fn claim(&self, instance: &str) -> Result<Option<(Guard, Vec<String>)>, String> {
        let (Some(driver), Some(task)) = (&self.shared.board, &self.order.task_id) else {
            return Ok(None);
        };
        let (key, by) = (format!("claim.{}", self.at), &*self.cx.who.name);
        let claimed = run_durably(&self.cx, &key, |again| async move {
            Ok(driver
                .claim(task, instance, by, again)
                .await
                .map_err(|error| error.to_string()))
        });
        let criteria = claimed
            .await
            .unwrap_or_else(|error| Err(error.to_string()))?;
        let guard = Guard {
            driver: Arc::clone(driver),
            task: task.as_str().into(),
            agent: instance.to_owned(),
            cancel: self.cancel(),
            is_over: false,
        };
        Ok(Some((guard, criteria)))
    }

    /// Lets the agents work on it, and writes down on the board how it ended.
    async fn pass_on(
        &self,
        planned: &Planned,
        mut guard: Option<Guard>,
        criteria: &[String],
    ) -> TaskReport {
        let (
            Turn {
                config, instance, ..
            },
            ended,
        ) = self.turns(planned, &mut guard, criteria).await;
        let is_lost = matches!(ended, DelegatedEnd::Lost(Lost::Cancelled | Lost::Taken));
        let report = match ended {
            DelegatedEnd::Ran(ran) => TaskReport::from_result(&instance, *ran),
            DelegatedEnd::Lost(Lost::Cancelled) => {
                TaskReport::error(instance, "cancelled: the task was cancelled on the board")
            }
            DelegatedEnd::Lost(Lost::Taken) => {
                TaskReport::error(instance, "given up: another worker has the task")
            }
            DelegatedEnd::Lost(Lost::Unanswered) => {
                TaskReport::error(instance, "timed out: its question was not answered in time")
            }
        };
        let mut report = TaskReport { config, ..report };
        let Some(guard) = &mut guard else {
            return report;
        };
        if is_lost {
            guard.is_over = true;
            return report;
        }
        let completion = report.end();
        let end = match completion.status {
            CompletionStatus::Completed => TaskEnd::Completed(completion),
            CompletionStatus::Failed => TaskEnd::Failed(completion),
        };
        if let Err(error) = guard.end(end).await {
            report.warn(format!(
                "the board does not know how the task ended: {error}"
            ));
        }
        report
    }

    /// One agent after the other, until one does not hand the task on; returns the last agent and its end.
    async fn turns(
        &self,
        planned: &Planned,
        guard: &mut Option<Guard>,
        criteria: &[String],
    ) -> (Turn, DelegatedEnd) {
        let (config, instance) = (self.order.agent.clone(), planned.instance.clone());
        let mut turn = Turn {
            config,
            instance,
            peers: 0,
            handoff: None,
        };
        loop {
            let task_run = TaskRun {
                task: self,
                turn: &turn,
                prior: &planned.prior,
                criteria,
            };
            let (ended, thread) = task_run.run(guard.as_ref()).await;
            let Some((handoff, from)) = find_handoff(&ended).zip(thread) else {
                return (turn, ended);
            };
            let said = handoff.text(&turn.instance);
            let (config, instance, peers) = (handoff.target, handoff.instance, turn.peers + 1);
            if let Some(guard) = guard {
                if let Err(error) = guard.driver.hand_on(&guard.task, &instance).await {
                    let error =
                        ToolError::failed("the task cannot be handed on").with_source(error);
                    return (turn, DelegatedEnd::Ran(Box::new(Err(error))));
                }
                guard.agent.clone_from(&instance);
            }
            turn = Turn {
                config,
                instance,
                peers,
                handoff: Some((said, from)),
            };
        }
    }

    /// The stop request; a task that belongs to the run is stopped by its run, with the agent.
    pub(super) fn cancel(&self) -> Cancel {
        if self.line.is_some() {
            Cancel::new()
        } else {
            self.cx.cancel.clone()
        }
    }

    /// Reports the output of an agent.
    pub(super) fn show(&self, agent: &str, kind: &str, text: &str) {
        let text = cut_chars(text, MAX_PROGRESS_CHARS);
        let details = json!({ "agent": agent, "kind": kind, "text": text });
        self.cx.progress(Progress {
            content: Vec::new(),
            details,
        });
    }
}

fn find_handoff(ended: &DelegatedEnd) -> Option<Handoff> {
    match ended {
        DelegatedEnd::Ran(ran) => ran.as_ref().as_ref().ok().and_then(Handoff::from_run),
        DelegatedEnd::Lost(_) => None,
    }
}
