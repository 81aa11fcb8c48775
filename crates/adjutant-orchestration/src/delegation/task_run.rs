//! A handoff run of a delegated task: one agent works on the task, as long as the task is its own.

use std::{future, panic::AssertUnwindSafe, sync::Arc};

use adjutant_agent::{Event, EventKind, MemberRun, sections::identity};
use adjutant_llm::ThreadId;
use adjutant_tool::{ToolError, ToolErrorKind};
use futures_util::FutureExt;

use super::{
    Recalled,
    brief::Brief,
    delegated_task::{DelegatedEnd, DelegatedTask, Turn},
    driver::{Guard, Lost},
    equip,
    interactive::let_ask,
    questions::QuestionLine,
};
use crate::{child_run, text::cut_chars};

/// The largest number of characters of a task in the identity of an agent.
const MAX_TASK_CHARS: usize = 200;

/// One running agent of a delegated task.
pub(super) struct TaskRun<'a> {
    pub(super) task: &'a DelegatedTask,
    pub(super) turn: &'a Turn,
    /// The lessons of earlier failures.
    pub(super) prior: &'a Recalled,
    /// The criteria for the task's completion.
    pub(super) criteria: &'a [String],
}

impl TaskRun<'_> {
    /// Lets the agent work; how that ended, and its thread if it was opened.
    pub(super) async fn run(&self, guard: Option<&Guard>) -> (DelegatedEnd, Option<ThreadId>) {
        let mut thread = None;
        // The factory of the agent is the application's own.
        let worked = AssertUnwindSafe(self.work(guard, &mut thread))
            .catch_unwind()
            .await;
        let ended = worked.unwrap_or_else(|_| {
            Err(ToolError::failed(
                "the agent could not be made: it panicked",
            ))
        });
        (
            ended.unwrap_or_else(|error| DelegatedEnd::Ran(Box::new(Err(error)))),
            thread,
        )
    }

    async fn work(
        &self,
        guard: Option<&Guard>,
        thread: &mut Option<ThreadId>,
    ) -> Result<DelegatedEnd, ToolError> {
        let DelegatedTask {
            shared,
            place,
            order,
            ..
        } = self.task;
        if let (Some(placement), Some(_)) = (&shared.placement, &self.task.lent) {
            return Ok(DelegatedEnd::Ran(Box::new(self.elsewhere(placement).await)));
        }
        let mut held = std::pin::pin!(hold(guard, self.task.line.as_deref()));
        let cancel = self.task.cancel();
        let mut spawned = shared
            .registry
            .spawn_as(&self.turn.config, &self.turn.instance)?;
        let slot = spawned.slot.clone();
        let _occupied = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            lost = &mut held => return Ok(DelegatedEnd::Lost(lost)),
            occupied = slot.take() => occupied,
        };
        let task = cut_chars(&order.task, MAX_TASK_CHARS).into();
        let about = identity(Arc::clone(&spawned.profile.description));
        spawned.agent = spawned
            .agent
            .identify(|who| who.task = Some(task))
            .section(about);
        let agent = equip(
            &spawned,
            shared,
            place,
            place.max_handoffs.saturating_sub(self.turn.peers),
        );
        let (spawn, key) = (&self.task.spawn, self.key());
        let child = match &self.task.line {
            Some(line) if order.may_ask() => {
                spawn.keep(&key, let_ask(agent, line, &slot).into()).await?
            }
            Some(_) => spawn.keep(&key, agent.into()).await?,
            None => spawn.open(&key, agent.into()).await?,
        };
        let left = place.below(&spawned.profile);
        let _bound = shared
            .registry
            .limit_levels(&child.identity().agent_id, left);
        let thread = &*thread.insert(child.identity().thread.clone());
        let run = MemberRun::Child(child.stream(self.brief().messages())?);
        let (ran, lost) =
            child_run::follow(run, held, |event| self.show_reply(event, thread)).await;
        Ok(lost.map_or_else(|| DelegatedEnd::Ran(Box::new(ran)), DelegatedEnd::Lost))
    }

    /// The key of the child: the place of the task, and how many had it before.
    pub(super) fn key(&self) -> String {
        match self.turn.peers {
            0 => self.task.at.to_string(),
            peers => format!("{}.{peers}", self.task.at),
        }
    }

    pub(super) fn brief(&self) -> Brief<'_> {
        Brief {
            from: &self.task.cx.who.thread,
            context: &self.task.order.context,
            handoff: self
                .turn
                .handoff
                .as_ref()
                .map(|(said, thread)| (said.as_str(), thread)),
            reflections: &self.prior.text,
            task: &self.task.order.task,
            criteria: self.criteria,
        }
    }

    /// Reports the agent's own output; its calls and subagents have their own events.
    fn show_reply(&self, event: &Event, thread: &ThreadId) {
        let EventKind::ReplyFinished { reply, .. } = &event.kind else {
            return;
        };
        let text = reply.text();
        if event.who.thread == *thread && !text.trim().is_empty() {
            self.task.show(&self.turn.instance, "progress", &text);
        }
    }
}

/// Holds the task on the board, and waits until the agent must stop.
async fn hold(guard: Option<&Guard>, line: Option<&QuestionLine>) -> Lost {
    let held = async {
        match guard {
            Some(guard) => guard.driver.hold(&guard.task, &guard.agent).await,
            None => future::pending().await,
        }
    };
    let unanswered = async {
        match line {
            Some(line) => line.wait_for_expiry().await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        biased;
        lost = held => lost,
        () = unanswered => Lost::Unanswered,
    }
}

fn cancelled() -> ToolError {
    ToolError::new(
        ToolErrorKind::Cancelled,
        "cancelled: the call was stopped before the agent began",
    )
}
