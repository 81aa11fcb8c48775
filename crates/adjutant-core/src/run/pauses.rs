//! The pauses of a run: the questions, the answers, and the calls that may continue.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_tool::{Ask, AskKind};
use serde_json::json;

use super::{CallSlot, Current, Few, Next, Run, RunPause};
use crate::{
    activity::{Activity, ActivityId},
    outcome::Limit,
    pause::{Pause, PauseId},
    record::Record,
};

type Busy = BTreeSet<ActivityId>;

impl Run {
    /// Returns the unanswered pauses of the run, in the order of their creation.
    pub fn pauses(&self) -> impl Iterator<Item = &Arc<Pause>> {
        self.open_pauses().map(|asked| &asked.pause)
    }
}

impl Current {
    /// The limit that was reached, if one was.
    pub(super) fn limit_reached(&self) -> Option<Limit> {
        let turns = || {
            self.limits
                .max_turns
                .is_some_and(|max| self.turns >= max)
                .then_some(Limit::Turns)
        };
        self.exhausted.clone().or_else(turns)
    }

    /// Requests the open answers that were not requested yet.
    pub(super) fn ask_outside(&self, busy: &Busy) -> Few<Activity> {
        let open = (0..)
            .zip(&self.pauses)
            .filter(|(_, asked)| asked.answer.is_none() && !asked.waiting);
        open.map(|(pause, _)| Activity::Answer { pause })
            .filter(|act| !busy.contains(&act.id()))
            .collect()
    }

    /// Nothing can start: waits for activities in flight, or for the outside.
    pub(super) fn idle(&self, busy: &Busy) -> Next {
        let waiting = self
            .pauses
            .iter()
            .filter(|asked| asked.answer.is_none() && asked.waiting);
        let pauses: Vec<_> = waiting.map(|asked| Arc::clone(&asked.pause)).collect();
        if busy.is_empty() && !pauses.is_empty() {
            return Next::Park(pauses);
        }
        Next::Wait {
            until_ms: self.limits.deadline_ms,
            stop: Vec::new(),
        }
    }

    /// True if everything that a call's body waits for was answered.
    pub(super) fn may_enter(&self, slot: &CallSlot) -> bool {
        slot.waits.iter().all(|at| self.is_answered(*at))
    }

    pub(super) fn is_answered(&self, at: u32) -> bool {
        self.pauses
            .get(at as usize)
            .is_some_and(|asked| asked.answer.is_some())
    }

    /// Requests an approval to continue beyond a limit; `None` if it was denied before, or if an effect stops the run
    /// again before another turn since the extension: the question would be repeated without end.
    #[cold]
    pub(super) fn ask_for_more(
        &self,
        limit: &Limit,
        thread: &adjutant_llm::ThreadId,
        busy: &Busy,
    ) -> Option<Next> {
        let in_vain = self
            .extended
            .as_ref()
            .is_some_and(|(last, turns)| (last, *turns) == (limit, self.turns));
        if self.declined || in_vain || self.limits.unattended {
            return None;
        }
        if self.pauses.iter().any(|asked| asked.answer.is_none()) {
            let acts = self.ask_outside(busy);
            return Some(if acts.is_empty() {
                self.idle(busy)
            } else {
                Next::Start(acts)
            });
        }
        let (kind, n) = (AskKind::Limit, self.pauses.len());
        let ask = Ask::new(
            kind,
            format!("the limit of {limit} is reached; may the run go on?"),
        );
        let ask = Ask {
            data: json!({ "limit": limit, "turns": self.turns }),
            ..ask
        };
        let id = PauseId(format!("{thread}/limit/{}/{}/{n}", self.run, self.turns).into());
        let (agent, path) = Default::default();
        let (thread, refused) = (thread.clone(), Vec::new());
        let pause = Pause {
            id,
            ask,
            call: None,
            key: None,
            thread,
            agent,
            path,
            refused,
            deadline_ms: None,
        };
        Some(Next::Decide(vec![Record::Paused {
            pause: Arc::new(pause),
        }]))
    }
}

impl RunPause {
    pub(super) fn new(pause: &Arc<Pause>, waiting: bool) -> Self {
        Self {
            pause: Arc::clone(pause),
            answer: None,
            waiting,
        }
    }
}
