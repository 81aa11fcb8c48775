//! The actions that a resumed run would perform again, with the reasons. Pure; it predicts the decisions of `next`.

use std::{fmt, sync::Arc};

use adjutant_llm::{CallId, ThreadId, ToolName};
use adjutant_tool::Replay;
use serde::Serialize;

use super::{CallSlot, Current, Run, StepState, Working};
use crate::{
    number::TurnNo,
    pause::{Pause, PauseId},
};

/// An action that a resumed run would perform again, or a wait.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ResumeItem {
    /// The conversation that it belongs to.
    pub thread: ThreadId,
    /// The action.
    pub redo: ResumeAction,
}

/// An action that would be done again, or a wait.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResumeAction {
    /// The turn is prepared again: toolboxes, effects and hooks are called once more.
    Prepare {
        /// The turn.
        turn: TurnNo,
    },
    /// The request is sent; it may have been sent before, and be billed twice then.
    Ask {
        /// The turn.
        turn: TurnNo,
        /// The attempt at its reply.
        attempt: u32,
        /// True if a part of an earlier attempt was acknowledged, which is void then.
        heard: bool,
    },
    /// A call that has no result.
    Call {
        /// The call.
        call: CallId,
        /// The tool.
        name: ToolName,
        /// The rule for repeating it after a crash; `None` if it was not admitted yet.
        replay: Option<Replay>,
        /// The fate of the call.
        fate: CallFate,
    },
    /// Hooks decide again how to continue after the turn.
    Settle {
        /// The turn.
        turn: TurnNo,
    },
    /// An answer is waited for.
    Wait {
        /// The pause.
        pause: Arc<Pause>,
    },
}

/// The fate of a call without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallFate {
    /// It has started, and runs again with the same key.
    RunAgain,
    /// It has started, and its body is entered again from the top when it has no open pauses.
    EnterAgain {
        /// The steps that are answered from the log.
        answered: Vec<Arc<str>>,
        /// The steps that were started and have no known result.
        unknown: Vec<Arc<str>>,
        /// The pauses that it waits for.
        waits: Vec<PauseId>,
    },
    /// It has started and does not run again: the model is informed that its outcome is unknown.
    OutcomeUnknown,
    /// It has not started: it runs for the first time.
    NotStarted,
    /// It does not run: the reply, the turn or the run permits no more calls.
    Closed,
}

impl Run {
    /// Returns the actions that a resumed run would perform again, and the waits: nothing, if no run is open.
    pub fn explain(&self) -> Vec<ResumeItem> {
        let Some(current) = self
            .current
            .as_ref()
            .filter(|current| current.outcome.is_none())
        else {
            return Vec::new();
        };
        let thread = self.thread.clone().unwrap_or_else(|| ThreadId::from(""));
        let redone = if current.closing().is_some() {
            current.closed()
        } else {
            current.redone()
        };
        redone
            .into_iter()
            .map(|redo| ResumeItem {
                thread: thread.clone(),
                redo,
            })
            .collect()
    }
}

impl Current {
    /// The run ends: open work is closed.
    fn closed(&self) -> Vec<ResumeAction> {
        let Some(working) = &self.turn else {
            return Vec::new();
        };
        working.calls(|slot| {
            let asked = slot.asked.is_some() && slot.admitted.is_none();
            let begun = slot.launched_ms.is_some() && self.may_enter(slot) && !asked;
            if begun {
                CallFate::OutcomeUnknown
            } else {
                CallFate::Closed
            }
        })
    }

    fn redone(&self) -> Vec<ResumeAction> {
        let waits = || {
            let open = self.pauses.iter().filter(|asked| asked.answer.is_none());
            open.map(|asked| ResumeAction::Wait {
                pause: Arc::clone(&asked.pause),
            })
        };
        let Some(working) = self
            .turn
            .as_ref()
            .filter(|working| working.settled.is_none())
        else {
            return waits().collect();
        };
        let turn = working.no;
        match (&working.reply, &working.open) {
            (None, _) if self.exhausted.is_some() && working.last.is_none() => Vec::new(),
            (None, _) if working.prepared => {
                // An attempt that was acknowledged in part and is not running is void.
                let heard = !working.heard.is_empty();
                vec![ResumeAction::Ask {
                    turn,
                    attempt: working.attempt.saturating_add(u32::from(heard)),
                    heard,
                }]
            }
            (None, _) => vec![ResumeAction::Prepare { turn }],
            (Some(_), None) => vec![ResumeAction::Settle { turn }],
            (Some(reply), Some(_)) if !reply.may_run_calls() || working.last.is_some() => {
                working.calls(|_| CallFate::Closed)
            }
            (Some(_), Some(_)) => working
                .calls(|slot| self.fate(slot))
                .into_iter()
                .chain(waits())
                .collect(),
        }
    }

    fn fate(&self, slot: &CallSlot) -> CallFate {
        match &slot.admitted {
            Some(admitted) if slot.launched_ms.is_some() => match admitted.replay {
                Replay::Pure | Replay::Idempotent => CallFate::RunAgain,
                Replay::Resumable => self.reentry_fate(slot),
                _ if slot.waits.is_empty() => CallFate::OutcomeUnknown,
                // It was suspended, and continues with its answers.
                _ => self.reentry_fate(slot),
            },
            _ => CallFate::NotStarted,
        }
    }

    fn reentry_fate(&self, slot: &CallSlot) -> CallFate {
        let (mut answered, mut unknown) = (Vec::new(), Vec::new());
        for step in &slot.steps {
            match &step.state {
                StepState::Noted(_) => answered.push(Arc::clone(&step.key)),
                StepState::Asked(at) if self.is_answered(*at) => {
                    answered.push(Arc::clone(&step.key))
                }
                StepState::Begun => unknown.push(Arc::clone(&step.key)),
                StepState::Asked(_) => {}
            }
        }
        let open = slot.waits.iter().filter(|at| !self.is_answered(**at));
        let waits = open
            .filter_map(|at| Some(self.pauses.get(*at as usize)?.pause.id.clone()))
            .collect();
        CallFate::EnterAgain {
            answered,
            unknown,
            waits,
        }
    }
}

impl Working {
    /// The calls without a result, in order.
    fn calls(&self, fate: impl Fn(&CallSlot) -> CallFate) -> Vec<ResumeAction> {
        let name = |call: CallId| self.call(call).map(|it| it.name.clone());
        let missing = self.slots.missing();
        let call = |slot: &CallSlot| {
            let replay = slot.admitted.as_ref().map(|admitted| admitted.replay);
            Some(ResumeAction::Call {
                call: slot.call,
                name: name(slot.call)?,
                replay,
                fate: fate(slot),
            })
        };
        missing.filter_map(call).collect()
    }
}

impl fmt::Display for ResumeItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thread, self.redo)
    }
}

impl fmt::Display for ResumeAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResumeAction::Prepare { turn } => {
                write!(
                    f,
                    "turn {turn} is prepared: toolboxes, effects and hooks are asked"
                )
            }
            ResumeAction::Ask {
                turn,
                attempt,
                heard,
            } => {
                write!(f, "turn {turn}: the model is asked, attempt {attempt}")?;
                if *heard {
                    f.write_str("; its earlier output is void")
                } else {
                    Ok(())
                }
            }
            ResumeAction::Call {
                call,
                name,
                replay,
                fate,
            } => {
                write!(f, "call {call} of {name}")?;
                if let Some(replay) = replay {
                    write!(f, " ({})", class(*replay))?;
                }
                write!(f, ": {fate}")
            }
            ResumeAction::Settle { turn } => write!(f, "turn {turn} is settled: hooks are asked"),
            ResumeAction::Wait { pause } => write!(f, "{} waits: {}", pause.id, pause.ask.prompt),
        }
    }
}

impl fmt::Display for CallFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallFate::RunAgain => {
                f.write_str("runs again with the same key, because that is harmless")
            }
            CallFate::EnterAgain {
                answered,
                unknown,
                waits,
            } => {
                f.write_str("is entered again")?;
                if !waits.is_empty() {
                    let waits: Vec<&str> = waits.iter().map(|pause| &*pause.0).collect();
                    write!(f, " when these are answered: {}", waits.join(", "))?;
                }
                if !answered.is_empty() {
                    write!(f, "; answered from the log: {}", answered.join(", "))?;
                }
                if !unknown.is_empty() {
                    write!(f, "; begun and unknown: {}", unknown.join(", "))?;
                }
                Ok(())
            }
            CallFate::OutcomeUnknown => {
                f.write_str("has begun and does not run again; its outcome is unknown")
            }
            CallFate::NotStarted => f.write_str("has not begun, and runs for the first time"),
            CallFate::Closed => f.write_str("does not run any more"),
        }
    }
}

fn class(replay: Replay) -> &'static str {
    match replay {
        Replay::Pure => "pure",
        Replay::Idempotent => "idempotent",
        Replay::Resumable => "resumable",
        _ => "once",
    }
}
