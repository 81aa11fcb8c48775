//! `next`: the possible next steps. Free to change, because its decisions are recorded.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_llm::{CallId, CallResult, FinishReason, OpenTurn, Reply, Terminate, ThreadId, Usage};
use adjutant_tool::Replay;

use super::{CallSlot, Current, Few, Next, Run, Tail, Working, texts};
use crate::{
    activity::{Activity, ActivityId},
    number::TurnNo,
    options::AtLimit,
    outcome::{Completion, Failure, Limit, Outcome},
    record::{AcknowledgedPart, Record, RunChange},
};

type Busy = BTreeSet<ActivityId>;

impl Run {
    /// Decides the possible next steps, given the activities in flight. An activity in the log and not in flight is
    /// orphaned.
    pub fn next(&self, busy: &Busy) -> Next {
        let Some(current) = &self.current else {
            return Next::Wait {
                until_ms: None,
                stop: Vec::new(),
            };
        };
        if let Some(outcome) = &current.outcome {
            return Next::Done(outcome.clone());
        }
        if let Some(outcome) = current.closing() {
            return current.wind_up(outcome, busy);
        }
        match &current.turn {
            None => self.beyond(current, busy),
            Some(working) => match (working.settled, &working.reply, &working.open) {
                (Some(stop), ..) => self.after(current, working, stop, busy),
                (None, Some(_), Some(open)) => current.serve(working, open, busy),
                (None, Some(_), None) => current.once(Activity::Settle { turn: working.no }, busy),
                (None, None, _) if current.exhausted.is_some() && working.last.is_none() => {
                    settle(working, false)
                }
                (None, None, _) => current.ask(working, busy),
            },
        }
    }

    /// The turn is settled: end, or continue.
    fn after(&self, current: &Current, working: &Working, stop: bool, busy: &Busy) -> Next {
        // An entry that no model sees leaves nothing to answer.
        let placed = working.placed && self.waiting().tail() != Tail::Answer;
        let checked = current.is_output_accepted(working.no);
        match working
            .reply
            .as_ref()
            .and_then(|reply| working.verdict(reply, stop, placed, checked))
        {
            Some(outcome) => current.end(outcome),
            None => match &working.last {
                Some(limit) => current.end(Outcome::Limit {
                    limit: limit.clone(),
                }),
                None => self.beyond(current, busy),
            },
        }
    }

    /// Between two turns: opens the next one, unless a limit is reached.
    fn beyond(&self, current: &Current, busy: &Busy) -> Next {
        let open = |last| {
            Next::Decide(vec![Record::Opened {
                turn: TurnNo(self.turns + 1),
                last,
            }])
        };
        let Some(limit) = current.limit_reached() else {
            return open(None);
        };
        let nobody = ThreadId::from("");
        let thread = self.thread.as_ref().unwrap_or(&nobody);
        match current.limits.at_limit {
            AtLimit::End => current.end(Outcome::Limit { limit }),
            AtLimit::LastTurn => open(Some(limit)),
            AtLimit::Ask => current
                .ask_for_more(&limit, thread, busy)
                .unwrap_or_else(|| open(Some(limit))),
        }
    }
}

impl Current {
    /// Returns the end of the run, if it must end now, whatever is open.
    pub(super) fn closing(&self) -> Option<Outcome> {
        match (&self.cancel, &self.failure, &self.exhausted) {
            (Some(by), ..) => Some(Outcome::Cancelled { by: *by }),
            (None, Some(failure), _) => Some(Outcome::Failed {
                failure: failure.clone(),
            }),
            (None, None, Some(Limit::Time)) => Some(Outcome::Limit { limit: Limit::Time }),
            (None, None, _) => None,
        }
    }

    /// The turn has no reply: prepare it, then send the request. An acknowledged attempt that is not running is void.
    fn ask(&self, working: &Working, busy: &Busy) -> Next {
        let turn = working.no;
        if working.is_half_heard() && !busy.contains(&ActivityId::Ask(turn)) {
            Next::Decide(vec![working.retraction_record()])
        } else if working.prepared {
            self.once(
                Activity::Ask {
                    turn,
                    attempt: working.attempt,
                },
                busy,
            )
        } else {
            self.once(Activity::Prepare { turn }, busy)
        }
    }

    /// The turn has calls without results: admit all, then run the admitted ones.
    fn serve(&self, working: &Working, open: &OpenTurn, busy: &Busy) -> Next {
        let reply = open.reply();
        if !reply.may_run_calls() {
            return close(open, |_| texts::stop_result(reply.stop));
        }
        if let Some(limit) = &working.last {
            return close(open, |_| texts::last_turn(limit));
        }
        if working.slots.counts().undecided > 0 {
            let undecided = working
                .slots
                .missing()
                .filter(|slot| slot.admitted.is_none() && slot.asked.is_none());
            let acts = undecided.map(|slot| Activity::Admit { call: slot.call });
            let acts: Few<Activity> = acts.filter(|act| !busy.contains(&act.id())).collect();
            return if acts.is_empty() {
                self.idle(busy)
            } else {
                Next::Start(acts)
            };
        }
        self.launch(working, busy)
    }

    /// Every call is admitted or waits for an approval: run admitted calls, and request the open approvals.
    fn launch(&self, working: &Working, busy: &Busy) -> Next {
        let counts = working.slots.counts();
        let cap = if self.limits.sequential {
            1
        } else {
            self.limits.max_parallel_tools.max(1) as usize
        };
        let running = busy
            .iter()
            .filter(|act| matches!(act, ActivityId::Call(_)))
            .count();
        let mut room = cap.saturating_sub(running);
        let (mut acts, mut lost) = (self.ask_outside(busy), Vec::new());
        // Without room, only a lost call, or a call with an open question, is handled.
        let is_served = counts.asked > 0 || counts.launched > running;
        for (place, slot) in working.slots.missing().enumerate() {
            let is_barrier = self.limits.sequential || slot.sequential;
            // A call that runs alone waits for all earlier ones, and later ones wait for it.
            if (room == 0 && !is_served) || (is_barrier && place > 0) {
                break;
            }
            match self.serve_slot(slot, busy) {
                Served::Busy => {}
                Served::Waits => {}
                Served::Lost => {
                    lost.push(Record::call_returned(slot.call, texts::unknown()));
                    continue;
                }
                Served::Admit => acts.extend([Activity::Admit { call: slot.call }]),
                Served::Enter(replay) if room > 0 => {
                    room -= 1;
                    acts.extend([Activity::Call {
                        call: slot.call,
                        replay,
                        again: slot.launched_ms.is_some(),
                    }]);
                }
                Served::Enter(_) => {}
            }
            if is_barrier {
                break;
            }
        }
        match (lost.is_empty(), acts.is_empty()) {
            (false, _) => Next::Decide(lost),
            (true, false) => Next::Start(acts),
            (true, true) => self.idle(busy),
        }
    }

    fn serve_slot(&self, slot: &CallSlot, busy: &Busy) -> Served {
        if busy.contains(&ActivityId::Call(slot.call))
            || busy.contains(&ActivityId::Admit(slot.call))
        {
            return Served::Busy;
        }
        match (&slot.admitted, slot.asked) {
            (Some(admitted), _) if slot.waits.is_empty() && slot.launched_ms.is_some() => {
                if may_repeat(admitted.replay) {
                    Served::Enter(admitted.replay)
                } else {
                    Served::Lost
                }
            }
            (Some(admitted), _) if self.may_enter(slot) => Served::Enter(admitted.replay),
            (None, Some(at)) if self.is_answered(at) => Served::Admit,
            (Some(_), _) | (None, _) => Served::Waits,
        }
    }

    /// A cancellation or a failure: nothing new starts, and open work is closed.
    #[cold]
    fn wind_up(&self, outcome: Outcome, busy: &Busy) -> Next {
        if !busy.is_empty() {
            return Next::Wait {
                until_ms: None,
                stop: busy.iter().copied().collect(),
            };
        }
        if let Some(working) = self.turn.as_ref().filter(|working| working.is_half_heard()) {
            return Next::Decide(vec![working.cut_off()]);
        }
        let open = self
            .turn
            .as_ref()
            .and_then(|working| Some((working, working.open.as_ref()?)));
        if let Some((working, open)) = open {
            return close(open, |call| match working.slot(call) {
                Some(slot)
                    if !self.may_enter(slot)
                        || (slot.asked.is_some() && slot.admitted.is_none()) =>
                {
                    texts::never_answered()
                }
                Some(slot) if slot.launched_ms.is_some() => texts::unknown(),
                _ => texts::never_started(),
            });
        }
        let unsettled = self
            .turn
            .as_ref()
            .filter(|working| working.settled.is_none());
        let settled = |working: &Working| Record::Settled {
            turn: working.no,
            stop: true,
            change: RunChange::default(),
        };
        let ended = Record::Ended {
            run: self.run,
            outcome,
        };
        Next::Decide(unsettled.map(settled).into_iter().chain([ended]).collect())
    }

    fn end(&self, outcome: Outcome) -> Next {
        Next::Decide(vec![Record::Ended {
            run: self.run,
            outcome,
        }])
    }

    fn once(&self, act: Activity, busy: &Busy) -> Next {
        if busy.contains(&act.id()) {
            self.idle(busy)
        } else {
            Next::Start(act.into())
        }
    }
}

impl Working {
    /// True if a part of a reply was acknowledged that has not come.
    fn is_half_heard(&self) -> bool {
        self.reply.is_none() && self.settled.is_none() && !self.heard.is_empty()
    }

    /// Makes the acknowledged parts into the reply, interrupted.
    fn cut_off(&self) -> Record {
        let reply = self
            .speaker
            .as_ref()
            .and_then(|model| AcknowledgedPart::reply(model, &self.heard));
        reply.map_or_else(
            || self.retraction_record(),
            |reply| Record::reply_received(self.no, Arc::new(reply), None),
        )
    }

    /// Voids the acknowledged parts: another attempt repeats them. Their usage is unknown.
    fn retraction_record(&self) -> Record {
        Record::Retracted {
            turn: self.no,
            attempt: self.attempt,
            usage: Usage::default(),
            cost: None,
        }
    }

    /// Returns the outcome of the run after this turn, regardless of its limits; `None` if it continues.
    fn verdict(
        &self,
        reply: &Arc<Reply>,
        stop: bool,
        placed: bool,
        checked: Option<bool>,
    ) -> Option<Outcome> {
        let finished = |why| {
            Some(Outcome::Finished {
                reply: Arc::clone(reply),
                why,
            })
        };
        match reply.stop {
            FinishReason::Refused => {
                return Some(failure_outcome(Failure::Refused {
                    text: reply.text().into(),
                }));
            }
            FinishReason::Filtered => {
                return Some(failure_outcome(Failure::Filtered {
                    text: reply.text().into(),
                }));
            }
            _ => {}
        }
        if stop {
            return finished(Completion::Stopped);
        }
        if self.terminates == Terminate::Now {
            return finished(Completion::Terminated);
        }
        // A refused answer is given again; an accepted one ends the run, in whatever form it was given.
        if placed
            || self.last.is_some()
            || checked == Some(false)
            || (checked.is_none() && !self.stops())
        {
            return None;
        }
        finished(match (self.terminates, reply.stop) {
            (Terminate::IfAll, _) => Completion::Terminated,
            (_, FinishReason::Length) if checked.is_none() => Completion::Length,
            _ => Completion::Answer,
        })
    }
}

/// The next step of a call without a result.
enum Served {
    Busy,
    Waits,
    Lost,
    Admit,
    Enter(Replay),
}

fn failure_outcome(failure: Failure) -> Outcome {
    Outcome::Failed { failure }
}

fn settle(working: &Working, stop: bool) -> Next {
    Next::Decide(vec![Record::Settled {
        turn: working.no,
        stop,
        change: RunChange::default(),
    }])
}

#[cold]
fn close(open: &OpenTurn, result: impl Fn(CallId) -> CallResult) -> Next {
    let returned = |call: CallId| Record::call_returned(call, result(call));
    Next::Decide(open.missing().map(|call| returned(call.id)).collect())
}

fn may_repeat(replay: Replay) -> bool {
    match replay {
        Replay::Pure | Replay::Idempotent | Replay::Resumable => true,
        Replay::Once => false,
        _ => false,
    }
}
