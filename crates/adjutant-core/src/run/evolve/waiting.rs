//! The meaning of records of pauses and answers. Frozen, like everything here.

use std::sync::Arc;

use adjutant_llm::{CallId, Entry, NanoUsd, Origin, UserMessage};
use adjutant_tool::{Answer, AskKind};

use super::{Run, StepState, Why};
use crate::{
    options::Limits,
    outcome::Limit,
    pause::{Answered, Pause, PauseId},
    run::{CallStep, Current, RunPause},
};

impl Current {
    /// The call of this pause, with its arguments, is approved for the rest of the run.
    pub(super) fn approve_call(&mut self, pause: &Arc<Pause>) {
        self.approved
            .extend(pause.call.iter().map(|call| call.name.clone()));
        self.approved_calls.push(Arc::clone(pause));
    }
}

impl Run {
    /// Adds a pause and gives its place.
    pub(super) fn ask(&mut self, pause: &Arc<Pause>, waiting: bool) -> Result<u32, Why> {
        let pauses = &mut self.current_mut()?.pauses;
        let at = u32::try_from(pauses.len()).map_err(|_| "too many pauses")?;
        pauses.push(RunPause::new(pause, waiting));
        Ok(at)
    }

    pub(super) fn apply_pause(&mut self, pause: &Arc<Pause>) -> Result<(), Why> {
        let at = self.ask(pause, false)?;
        match (pause.call_id(), &pause.key) {
            (Some(call), Some(key)) if self.is_own(pause) => {
                self.step(call, key, StepState::Asked(at))
            }
            _ => Ok(()),
        }
    }

    /// Records a request of a call's body, or its result. A key keeps the place of its first request.
    pub(super) fn step(
        &mut self,
        call: CallId,
        key: &Arc<str>,
        state: StepState,
    ) -> Result<(), Why> {
        self.slot_mut(call, |slot| {
            match slot.steps.iter_mut().rev().find(|step| step.key == *key) {
                Some(step) => step.state = state,
                None => slot.steps.push(CallStep {
                    key: Arc::clone(key),
                    state,
                }),
            }
        })
    }

    /// True if a pause is about this thread, not about an agent under it.
    fn is_own(&self, pause: &Pause) -> bool {
        self.thread
            .as_ref()
            .is_none_or(|thread| *thread == pause.thread)
    }

    /// Closes the pauses that waited for this call's sake: the call has its result.
    pub(super) fn close_pauses(&mut self, call: CallId) {
        let thread = self.thread.clone();
        let Ok(current) = self.current_mut() else {
            return;
        };
        let waits = current
            .turn
            .as_ref()
            .and_then(|it| it.slot(call))
            .map(|it| it.waits.clone())
            .unwrap_or_default();
        for (at, asked) in (0..).zip(&mut current.pauses) {
            let is_own =
                asked.pause.call_id() == Some(call) && thread.as_ref() == Some(&asked.pause.thread);
            if asked.answer.is_none() && (is_own || waits.contains(&at)) {
                asked.answer = Some(Answer::Expired);
            }
        }
    }

    /// The open pause of that name; an answer to another one comes too late and means nothing.
    fn open_pause_mut(&mut self, id: &PauseId) -> Result<Option<&mut RunPause>, Why> {
        let mut pauses = self.current_mut()?.pauses.iter_mut().rev();
        Ok(pauses.find(|asked| asked.pause.id == *id && asked.answer.is_none()))
    }

    pub(super) fn apply_unanswered(&mut self, id: &PauseId) -> Result<(), Why> {
        if let Some(asked) = self.open_pause_mut(id)? {
            asked.waiting = true;
        }
        Ok(())
    }

    pub(super) fn apply_suspension(
        &mut self,
        call: CallId,
        pauses: &[Arc<Pause>],
    ) -> Result<(), Why> {
        let mut waits = Vec::with_capacity(pauses.len());
        for pause in pauses {
            let known = self
                .current_mut()?
                .pauses
                .iter()
                .rposition(|it| it.pause.id == pause.id && it.answer.is_none());
            waits.push(match known.and_then(|at| u32::try_from(at).ok()) {
                Some(at) => at,
                None => self.ask_late(call, pause)?,
            });
        }
        self.slot_mut(call, |slot| slot.waits = waits)
    }

    /// A pause that its body requested at the moment of its suspension.
    fn ask_late(&mut self, call: CallId, pause: &Arc<Pause>) -> Result<u32, Why> {
        let at = self.ask(pause, true)?;
        match &pause.key {
            Some(key) if self.is_own(pause) => {
                self.step(call, key, StepState::Asked(at)).map(|()| at)
            }
            _ => Ok(at),
        }
    }

    pub(super) fn apply_answer(&mut self, id: &PauseId, answer: &Answer) -> Result<(), Why> {
        let Some(asked) = self.open_pause_mut(id)? else {
            return Ok(());
        };
        asked.answer = Some(answer.clone());
        let pause = Arc::clone(&asked.pause);
        if !self.is_own(&pause) {
            // It belongs to a child: the child's own thread handles it.
            return Ok(());
        }
        let current = self.current_mut()?;
        match (pause.ask.kind, answer) {
            (
                AskKind::Approval,
                Answer::Approve {
                    for_run: true,
                    args: None,
                },
            ) if pause.key.is_none() => {
                current.approve_call(&pause);
            }
            (AskKind::Limit, Answer::Extend { by, .. }) => current.extend(&pause, *by),
            (AskKind::Limit, _) => current.declined = true,
            _ => {}
        }
        if let (
            AskKind::Limit,
            Answer::Extend {
                message: Some(text),
                ..
            }
            | Answer::Decline {
                message: Some(text),
            },
        ) = (pause.ask.kind, answer)
        {
            self.append(Entry::User(UserMessage {
                origin: Origin::Steering,
                ..UserMessage::text(Arc::clone(text))
            }));
        }
        Ok(())
    }

    pub(super) fn apply_resume(
        &mut self,
        answers: &[Answered],
        limits: Option<&Limits>,
        free_ms: u64,
    ) -> Result<(), Why> {
        let current = self.current_mut()?;
        let deadline_ms = current.limits.deadline_ms;
        if let Some(limits) = limits {
            current.limits = limits.clone();
        }
        if current.limits.deadline_ms == deadline_ms {
            current.limits.deadline_ms = deadline_ms.map(|at| at.saturating_add(free_ms));
        }
        for Answered { pause, answer, .. } in answers {
            self.apply_answer(pause, answer)?;
        }
        self.current_mut()?
            .pauses
            .iter_mut()
            .for_each(|asked| asked.waiting = false);
        Ok(())
    }
}

impl Current {
    /// Raises the limit that a pause was about.
    fn extend(&mut self, pause: &Pause, by: u64) {
        let limit = pause
            .ask
            .data
            .get("limit")
            .and_then(|limit| serde_json::from_value::<Limit>(limit.clone()).ok());
        let raised = |cap: Option<u64>| cap.map(|cap| cap.saturating_add(by));
        let caps = &mut self.limits.caps;
        match limit {
            Some(Limit::Turns) => {
                let more = u32::try_from(by).unwrap_or(u32::MAX);
                self.limits.max_turns = Some(self.turns.saturating_add(more));
            }
            Some(Limit::Tokens) => caps.tokens = raised(caps.tokens),
            Some(Limit::Money) => caps.cost = caps.cost.map(|cost| cost + NanoUsd(by)),
            Some(Limit::Time) => caps.wall_ms = raised(caps.wall_ms),
            Some(Limit::Requests) => caps.requests = raised(caps.requests),
            Some(Limit::ToolCalls) => caps.tool_calls = raised(caps.tool_calls),
            Some(numberless) => self.extended = Some((numberless, self.turns)),
            None => {}
        }
        self.exhausted = None;
    }
}
