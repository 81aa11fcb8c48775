//! What a run waits for: who is to be asked, what was answered, and what may go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_llm::{CallId, ToolName};
use adjutant_tool::{Answer, Ask, AskKind, Replay};
use serde_json::{Value, json};

use super::{Asked, Current, Next, Run, Slot, StepState};
use crate::{
    act::{Act, ActId},
    outcome::Limit,
    pause::{Answered, Pause, PauseId},
    record::Record,
};

type Busy = BTreeSet<ActId>;

/// What is known of something that a call's body asked for under a key.
#[derive(Debug, Clone)]
pub struct Known {
    pub key: Arc<str>,
    pub state: KnownState,
}

/// How far something got that a call's body asked for.
#[derive(Debug, Clone)]
pub enum KnownState {
    /// A step was begun.
    Begun,
    /// A step came to this.
    Done(Value),
    /// A pause waits; `parked` says whether nobody here could answer.
    Asked { pause: Arc<Pause>, parked: bool },
    /// A pause was answered.
    Answered { pause: Arc<Pause>, answer: Answer },
}

impl Run {
    /// What the run waits for and nobody has answered, in the order in which it was asked.
    pub fn pauses(&self) -> impl Iterator<Item = &Arc<Pause>> {
        self.asked().map(|asked| &asked.pause)
    }

    /// Why these answers are not exactly those that the run waits for, if they are not.
    ///
    /// Nobody need answer what somebody here may still be asked, or what has run out of time.
    pub fn mismatch(&self, answers: &[Answered], now_ms: u64) -> Option<String> {
        if !self.is_open() {
            return Some("no run is open".into());
        }
        let mut open: BTreeMap<&PauseId, &Asked> = self.asked().map(|asked| (&asked.pause.id, asked)).collect();
        let known: BTreeSet<&PauseId> = open.keys().copied().collect();
        for Answered { pause, answer, shown } in answers {
            match open.remove(pause) {
                Some(asked) => {
                    if let Some(why) = asked.pause.differs(*shown) {
                        return Some(why);
                    }
                    if let Err(error) = answer.fits(&asked.pause.ask) {
                        return Some(format!("{pause}: {error}"));
                    }
                }
                None if known.contains(pause) => return Some(format!("{pause} is answered twice")),
                None => return Some(format!("{pause} is not waited for")),
            }
        }
        let missing = self.asked().filter(|it| open.contains_key(&it.pause.id));
        let missing = missing.filter(|it| it.waiting && !it.pause.is_late(now_ms));
        let missing: Vec<&str> = missing.map(|it| &*it.pause.id.0).collect();
        (!missing.is_empty()).then(|| format!("no answer to {}", missing.join(", ")))
    }

    fn asked(&self) -> impl Iterator<Item = &Asked> {
        let asked = self.current.iter().filter(|current| current.outcome.is_none()).flat_map(|it| &it.pauses);
        asked.filter(|asked| asked.answer.is_none())
    }

    /// Whether a call was admitted as one whose body may be entered again.
    pub fn is_resumable(&self, call: CallId) -> bool {
        let slot = self.working().and_then(|working| working.slot(call));
        slot.and_then(|slot| slot.admitted.as_ref()).is_some_and(|it| it.replay == Replay::Resumable)
    }

    /// What the body of a call has asked for in earlier entries, in order.
    pub fn steps(&self, call: CallId) -> Vec<Known> {
        let Some(slot) = self.working().and_then(|working| working.slot(call)) else { return Vec::new() };
        let known = |step: &super::Step| {
            let state = match &step.state {
                StepState::Begun => KnownState::Begun,
                StepState::Noted(value) => KnownState::Done(value.clone()),
                StepState::Asked(at) => self.known_pause(*at)?,
            };
            Some(Known { key: Arc::clone(&step.key), state })
        };
        slot.steps.iter().filter_map(known).collect()
    }

    fn known_pause(&self, at: u32) -> Option<KnownState> {
        let asked = self.current.as_ref()?.pauses.get(at as usize)?;
        let pause = Arc::clone(&asked.pause);
        Some(match &asked.answer {
            Some(answer) => KnownState::Answered { pause, answer: answer.clone() },
            None => KnownState::Asked { pause, parked: asked.waiting },
        })
    }

    /// The pause at a place.
    pub fn pause(&self, at: u32) -> Option<&Arc<Pause>> {
        self.current.as_ref()?.pauses.get(at as usize).map(|asked| &asked.pause)
    }

    /// What was answered to the pause that the admission of a call waits for.
    pub fn admission_answer(&self, call: CallId) -> Option<(&Arc<Pause>, &Answer)> {
        let at = self.working()?.slot(call)?.asked?;
        let asked = self.current.as_ref()?.pauses.get(at as usize)?;
        Some((&asked.pause, asked.answer.as_ref()?))
    }

    /// Whether calls of this tool were approved for the rest of the run.
    pub fn is_approved(&self, tool: &ToolName) -> bool {
        self.current.as_ref().is_some_and(|current| current.approved.contains(tool))
    }
}

impl Current {
    /// The limit that was reached, if one was.
    pub(super) fn reached(&self) -> Option<Limit> {
        let turns = || self.limits.max_turns.is_some_and(|max| self.turns >= max).then_some(Limit::Turns);
        self.exhausted.clone().or_else(turns)
    }

    /// Asks for what is open and not yet asked for.
    pub(super) fn ask_outside(&self, busy: &Busy) -> Vec<Act> {
        let open = (0..).zip(&self.pauses).filter(|(_, asked)| asked.answer.is_none() && !asked.waiting);
        open.map(|(pause, _)| Act::Answer { pause }).filter(|act| !busy.contains(&act.id())).collect()
    }

    /// Nothing can begin: waits for what is in flight, or for the outside.
    pub(super) fn idle(&self, busy: &Busy) -> Next {
        let waiting = self.pauses.iter().filter(|asked| asked.answer.is_none() && asked.waiting);
        let pauses: Vec<_> = waiting.map(|asked| Arc::clone(&asked.pause)).collect();
        if busy.is_empty() && !pauses.is_empty() {
            return Next::Park(pauses);
        }
        Next::Wait { until_ms: self.limits.deadline_ms, stop: Vec::new() }
    }

    /// Whether everything that a call's body waits for was answered.
    pub(super) fn may_enter(&self, slot: &Slot) -> bool {
        slot.waits.iter().all(|at| self.answered(*at))
    }

    pub(super) fn answered(&self, at: u32) -> bool {
        self.pauses.get(at as usize).is_some_and(|asked| asked.answer.is_some())
    }

    /// Asks whether the run may go on beyond a limit; `None` once that was asked and declined.
    pub(super) fn ask_for_more(&self, limit: &Limit, thread: &adjutant_llm::ThreadId, busy: &Busy) -> Option<Next> {
        if self.declined || self.limits.unattended {
            return None;
        }
        if self.pauses.iter().any(|asked| asked.answer.is_none()) {
            let acts = self.ask_outside(busy);
            return Some(if acts.is_empty() { self.idle(busy) } else { Next::Start(acts) });
        }
        let (kind, n) = (AskKind::Limit, self.pauses.len());
        let ask = Ask::new(kind, format!("the limit of {limit} is reached; may the run go on?"));
        let ask = ask.data(json!({ "limit": limit, "turns": self.turns }));
        let id = PauseId(format!("{thread}/limit/{}/{}/{n}", self.run, self.turns).into());
        let pause = Pause { id, ask, call: None, key: None, thread: thread.clone(), deadline_ms: None };
        Some(Next::Decide(vec![Record::Paused { pause: Arc::new(pause) }]))
    }
}

impl Asked {
    pub(super) fn new(pause: &Arc<Pause>, waiting: bool) -> Self {
        Self { pause: Arc::clone(pause), answer: None, waiting }
    }
}
