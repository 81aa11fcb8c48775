//! The states of the calls of a run's open turn. Nothing here decides anything.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{Call, CallId, CallResult, ToolName};
use adjutant_tool::{Answer, Replay};
use serde_json::Value;

use super::{CallStep, Run, StepState};
use crate::pause::{Answered, Pause};

/// A view of the calls to run, with their arguments and the results of earlier entries into a call's body: read by the
/// executor of a run.
#[derive(Debug, Clone, Copy)]
pub struct CallsView<'a>(&'a Run);

/// A call of the open turn.
#[derive(Debug, Clone, Copy)]
pub struct OpenCall<'a> {
    /// The call, as the model made it.
    pub call: &'a Call,
    /// The arguments that it was admitted with, and whether they were changed; none before it is admitted.
    pub args: Option<(&'a Arc<str>, bool)>,
    /// True if it was admitted as a call whose body can be entered again.
    pub is_resumable: bool,
    /// The pause that its admission waits for, and the answer, once there is one.
    pub answer: Option<(&'a Arc<Pause>, &'a Answer)>,
    /// Its result, whole, if it has ended.
    pub result: Option<&'a Arc<CallResult>>,
}

/// The known facts about a request of a call's body under a key.
#[derive(Debug, Clone)]
pub struct KnownStep {
    /// The key from the body.
    pub key: Arc<str>,
    /// The state that it reached.
    pub state: KnownState,
}

/// The state of a request of a call's body.
#[derive(Debug, Clone)]
pub enum KnownState {
    /// A step was started.
    Begun,
    /// A step came to this.
    Done(Value),
    /// A pause waits for its answer.
    Asked {
        /// The pause.
        pause: Arc<Pause>,
        /// True if no one here could answer it.
        parked: bool,
    },
    /// A pause was answered.
    Answered {
        /// The pause.
        pause: Arc<Pause>,
        /// The answer.
        answer: Answer,
    },
}

impl Run {
    /// Returns a view of the states of the calls of the open turn.
    pub fn calls(&self) -> CallsView<'_> {
        CallsView(self)
    }
}

impl<'a> CallsView<'a> {
    /// A call of the open turn, with the facts that are known of it.
    pub fn call(self, id: CallId) -> Option<OpenCall<'a>> {
        let working = self.0.working()?;
        let call = working.call(id)?;
        let slot = working.slot(id);
        let admitted = slot.and_then(|slot| slot.admitted.as_ref());
        let asked = slot.and_then(|slot| self.0.current.as_ref()?.pauses.get(slot.asked? as usize));
        Some(OpenCall {
            call,
            args: admitted.map(|admitted| (&admitted.args, admitted.changed)),
            is_resumable: admitted.is_some_and(|admitted| admitted.replay == Replay::Resumable),
            answer: asked.and_then(|asked| Some((&asked.pause, asked.answer.as_ref()?))),
            result: slot
                .filter(|slot| slot.done)
                .and_then(|_| self.find_result(id)),
        })
    }

    fn find_result(self, id: CallId) -> Option<&'a Arc<CallResult>> {
        let mut reports = self.0.current.as_ref()?.calls.iter().rev();
        reports
            .find(|report| report.call == id)
            .map(|report| &report.result)
    }

    /// True if all calls before this one in the open turn have ended.
    pub fn is_next(self, id: CallId) -> bool {
        let mut missing = self
            .0
            .working()
            .into_iter()
            .flat_map(|it| it.slots.missing());
        missing.next().is_some_and(|slot| slot.call == id)
    }

    /// True if calls of the open turn may run together.
    pub fn is_parallel(self) -> bool {
        let current = self
            .0
            .current
            .as_ref()
            .filter(|current| !current.limits.sequential);
        let slots = current.and_then(|current| Some(&current.turn.as_ref()?.slots));
        slots.is_some_and(|slots| slots.len() > slots.counts().sequential + 1)
    }

    /// Returns the steps that the body of a call has requested in earlier entries, in order.
    pub fn steps(self, call: CallId) -> Vec<KnownStep> {
        let Some(slot) = self.0.working().and_then(|working| working.slot(call)) else {
            return Vec::new();
        };
        let known = |step: &CallStep| {
            let state = match &step.state {
                StepState::Begun => KnownState::Begun,
                StepState::Noted(value) => KnownState::Done(value.clone()),
                StepState::Asked(at) => self.pause_state(*at)?,
            };
            Some(KnownStep {
                key: Arc::clone(&step.key),
                state,
            })
        };
        slot.steps.iter().filter_map(known).collect()
    }

    fn pause_state(self, at: u32) -> Option<KnownState> {
        let asked = self.0.current.as_ref()?.pauses.get(at as usize)?;
        let pause = Arc::clone(&asked.pause);
        Some(match &asked.answer {
            Some(answer) => KnownState::Answered {
                pause,
                answer: answer.clone(),
            },
            None => KnownState::Asked {
                pause,
                parked: asked.waiting,
            },
        })
    }

    /// Returns the pause by which this very call, of this tool with these arguments, was approved for the rest of the run.
    pub fn approval_for_run(self, tool: &ToolName, args: &str) -> Option<&'a Arc<Pause>> {
        let known = &self.0.current.as_ref()?.approved_calls;
        let of_tool =
            |pause: &&Arc<Pause>| pause.call.as_ref().is_some_and(|call| call.name == *tool);
        if !known.iter().any(|pause| of_tool(&pause)) {
            return None;
        }
        let args = serde_json::from_str::<Value>(args).ok()?;
        let is_same =
            |text: &str| serde_json::from_str(text).is_ok_and(|known: Value| known == args);
        known
            .iter()
            .filter(of_tool)
            .find(|pause| pause.call.as_ref().is_some_and(|call| is_same(&call.args)))
    }

    /// Returns the answers for sub-agents of this one; if one asked again, only the latest answer counts.
    pub fn answers_of_others(self) -> Vec<Answered> {
        let asked = self.0.current.iter().flat_map(|current| &current.pauses);
        let under = asked.filter(|it| Some(&it.pause.thread) != self.0.thread.as_ref());
        let newest: BTreeMap<_, _> = under
            .clone()
            .zip(0_usize..)
            .map(|(it, at)| (&it.pause.id, at))
            .collect();
        let newest = under
            .zip(0_usize..)
            .filter(|(it, at)| newest.get(&it.pause.id) == Some(at));
        let answered = newest.filter_map(|(it, _)| Some((it.pause.id.clone(), it.answer.clone()?)));
        answered
            .map(|(pause, answer)| Answered {
                pause,
                answer,
                shown: None,
            })
            .collect()
    }

    /// The calls that have started and not ended, in the order of their start.
    pub fn at_work(self) -> Vec<CallId> {
        let Some(working) = self.0.working().filter(|_| self.0.is_open()) else {
            return Vec::new();
        };
        let begun = working
            .slots
            .missing()
            .filter_map(|slot| Some((slot.launched_ms?, slot.call)));
        let mut begun: Vec<_> = begun.collect();
        begun.sort_by_key(|(at_ms, _)| *at_ms);
        begun.into_iter().map(|(_, call)| call).collect()
    }
}
