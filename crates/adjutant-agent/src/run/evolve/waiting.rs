//! What records of pauses and answers mean. Frozen, like everything here.

use std::sync::Arc;

use adjutant_llm::{CallId, Entry, NanoUsd, Origin, UserMessage};
use adjutant_tool::{Answer, AskKind};

use super::{Run, Why};
use crate::{
    Answered, Limit, Pause, PauseId,
    run::{Asked, Current},
};

impl Run {
    /// Adds a pause and gives its place.
    pub(super) fn ask(&mut self, pause: &Arc<Pause>, waiting: bool) -> Result<u32, Why> {
        let pauses = &mut self.current_mut()?.pauses;
        let at = u32::try_from(pauses.len()).map_err(|_| "too many pauses")?;
        pauses.push(Asked::new(pause, waiting));
        Ok(at)
    }

    pub(super) fn paused(&mut self, pause: &Arc<Pause>) -> Result<(), Why> {
        self.ask(pause, false).map(|_| ())
    }

    fn asked_mut(&mut self, id: &PauseId) -> Result<&mut Asked, Why> {
        let asked = self.current_mut()?.pauses.iter_mut().rev().find(|it| it.pause.id == *id && it.answer.is_none());
        asked.ok_or("no such pause is open")
    }

    pub(super) fn unanswered(&mut self, id: &PauseId) -> Result<(), Why> {
        self.asked_mut(id)?.waiting = true;
        Ok(())
    }

    pub(super) fn suspended(&mut self, call: CallId, pauses: &[Arc<Pause>]) -> Result<(), Why> {
        let mut waits = Vec::with_capacity(pauses.len());
        for pause in pauses {
            let known =
                self.current_mut()?.pauses.iter().rposition(|it| it.pause.id == pause.id && it.answer.is_none());
            waits.push(match known.and_then(|at| u32::try_from(at).ok()) {
                Some(at) => at,
                None => self.ask(pause, true)?,
            });
        }
        self.slot_mut(call)?.waits = waits;
        Ok(())
    }

    pub(super) fn answered(&mut self, id: &PauseId, answer: &Answer) -> Result<(), Why> {
        let asked = self.asked_mut(id)?;
        asked.answer = Some(answer.clone());
        let pause = Arc::clone(&asked.pause);
        let current = self.current_mut()?;
        match (pause.ask.kind, answer) {
            (AskKind::Approval, Answer::Approve { for_run: true, .. }) => {
                current.approved.extend(pause.call.iter().map(|call| call.name.clone()));
            }
            (AskKind::Limit, Answer::Extend { by, .. }) => current.extend(&pause, *by),
            (AskKind::Limit, _) => current.declined = true,
            _ => {}
        }
        match (pause.ask.kind, answer) {
            (AskKind::Limit, Answer::Extend { message: Some(text), .. } | Answer::Decline { message: Some(text) }) => {
                self.append(Entry::User(UserMessage::text(Arc::clone(text)).from_origin(Origin::Steering)));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn resumed(&mut self, answers: &[Answered]) -> Result<(), Why> {
        for Answered { pause, answer } in answers {
            self.answered(pause, answer)?;
        }
        self.current_mut()?.pauses.iter_mut().for_each(|asked| asked.waiting = false);
        Ok(())
    }
}

impl Current {
    /// Raises the limit that a pause was about.
    fn extend(&mut self, pause: &Pause, by: u64) {
        let limit = pause.ask.data.get("limit").and_then(|limit| serde_json::from_value::<Limit>(limit.clone()).ok());
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
            _ => {}
        }
        self.exhausted = None;
    }
}
