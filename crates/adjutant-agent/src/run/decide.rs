//! `next`: what may happen now. Free to change, because what it decides is recorded.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_llm::{CallId, CallResult, OpenTurn, Reply, Stop};
use adjutant_tool::Replay;

use super::{Current, Run, Slot, Working, texts};
use crate::{Act, ActId, Failure, Limit, Next, Outcome, Record, TurnNo, Why};

type Busy = BTreeSet<ActId>;

impl Run {
    /// Decides what may happen now, given what is in flight. In the log and not in flight means orphaned.
    pub fn next(&self, busy: &Busy) -> Next {
        let Some(current) = &self.current else { return wait(None) };
        if let Some(outcome) = &current.outcome {
            return Next::Done(outcome.clone());
        }
        if current.cancel.is_some() || current.failure.is_some() {
            return current.wind_up(busy);
        }
        match &current.turn {
            None if current.limits.max_turns == Some(0) => {
                let outcome = Outcome::Limit { limit: Limit::Turns };
                Next::Decide(vec![Record::Ended { run: current.run, outcome }])
            }
            None => self.open_turn(),
            Some(working) => match (&working.reply, &working.open) {
                (Some(_), Some(open)) => current.serve(working, open, busy),
                (Some(reply), None) => self.after(current, working, reply, busy),
                (None, _) => current.ask(working, busy),
            },
        }
    }

    fn open_turn(&self) -> Next {
        Next::Decide(vec![Record::Opened { turn: TurnNo(self.turns + 1) }])
    }

    /// The turn is closed: settle it, then go on or end.
    fn after(&self, current: &Current, working: &Working, reply: &Arc<Reply>, busy: &Busy) -> Next {
        let Some(stop) = working.settled else { return current.once(Act::Settle { turn: working.no }, busy) };
        match current.verdict(working, reply, stop) {
            Some(outcome) => Next::Decide(vec![Record::Ended { run: current.run, outcome }]),
            None => self.open_turn(),
        }
    }
}

impl Current {
    /// The turn has no reply: prepare it, then ask the model.
    fn ask(&self, working: &Working, busy: &Busy) -> Next {
        let turn = working.no;
        if working.prepared {
            self.once(Act::Ask { turn, attempt: working.attempt }, busy)
        } else {
            self.once(Act::Prepare { turn }, busy)
        }
    }

    /// The turn has calls without results: admit all, then run what may run.
    fn serve(&self, working: &Working, open: &OpenTurn, busy: &Busy) -> Next {
        let reply = open.reply();
        if !reply.may_run_calls() {
            return close(open, |_| texts::of_stop(reply.stop));
        }
        // A slot stands for each call, in the same order.
        let missing = || working.slots.iter().filter(|slot| !slot.done).map(|slot| (slot.call, slot));
        if missing().any(|(_, slot)| slot.admitted.is_none()) {
            let undecided = missing().filter(|(_, slot)| slot.admitted.is_none());
            let acts = undecided.map(|(call, _)| Act::Admit { call });
            let acts: Vec<Act> = acts.filter(|act| !busy.contains(&act.id())).collect();
            return if acts.is_empty() { self.wait() } else { Next::Start(acts) };
        }
        self.launch(working, missing(), busy)
    }

    fn launch<'a>(&self, working: &Working, admitted: impl Iterator<Item = (CallId, &'a Slot)>, busy: &Busy) -> Next {
        let sequential = self.limits.sequential
            || working.slots.iter().filter_map(|slot| slot.admitted.as_ref()).any(|admitted| admitted.sequential);
        let cap = if sequential { 1 } else { self.limits.max_parallel_tools.max(1) as usize };
        let mut room = cap.saturating_sub(busy.len());
        let (mut acts, mut lost) = (Vec::new(), Vec::new());
        for (call, slot) in admitted {
            let Some(replay) = slot.admitted.as_ref().map(|admitted| admitted.replay) else { continue };
            let again = slot.launched_ms.is_some();
            if busy.contains(&ActId::Call(call)) {
                continue;
            }
            if again && !may_repeat(replay) {
                lost.push(Record::Returned { call, result: Arc::new(texts::unknown()) });
            } else if room > 0 {
                room -= 1;
                acts.push(Act::Call { call, replay, again });
            }
        }
        match (lost.is_empty(), acts.is_empty()) {
            (false, _) => Next::Decide(lost),
            (true, false) => Next::Start(acts),
            (true, true) => self.wait(),
        }
    }

    /// Someone wished to stop, or something broke: nothing new begins, and what is open is closed.
    fn wind_up(&self, busy: &Busy) -> Next {
        if !busy.is_empty() {
            return Next::Wait { until_ms: None, stop: busy.iter().copied().collect() };
        }
        let open = self.turn.as_ref().and_then(|working| Some((working, working.open.as_ref()?)));
        if let Some((working, open)) = open {
            let started = |call| working.slot(call).is_some_and(|slot| slot.launched_ms.is_some());
            return close(open, |call| if started(call) { texts::unknown() } else { texts::never_started() });
        }
        let outcome = match (&self.cancel, &self.failure) {
            (Some(by), _) => Outcome::Cancelled { by: *by },
            (None, Some(failure)) => Outcome::Failed { failure: failure.clone() },
            (None, None) => return self.wait(),
        };
        let unsettled = self.turn.as_ref().filter(|working| working.settled.is_none());
        let settle = unsettled.map(|working| Record::Settled { turn: working.no, stop: true });
        Next::Decide(settle.into_iter().chain([Record::Ended { run: self.run, outcome }]).collect())
    }

    /// How the run ends after a settled turn; `None` if it goes on.
    fn verdict(&self, working: &Working, reply: &Arc<Reply>, stop: bool) -> Option<Outcome> {
        let finished = |why| Some(Outcome::Finished { reply: Arc::clone(reply), why });
        let failed = |failure| Some(Outcome::Failed { failure });
        match reply.stop {
            Stop::Refused => return failed(Failure::Refused { text: reply.text().into() }),
            Stop::Filtered => return failed(Failure::Filtered { text: reply.text().into() }),
            _ => {}
        }
        if stop {
            return finished(Why::Stopped);
        }
        if working.terminated {
            return finished(Why::Terminated);
        }
        if working.slots.is_empty() && reply.stop != Stop::Paused {
            return finished(if reply.stop == Stop::Length { Why::Length } else { Why::Answer });
        }
        let spent = self.limits.max_turns.is_some_and(|max| self.turns >= max);
        spent.then_some(Outcome::Limit { limit: Limit::Turns })
    }

    fn once(&self, act: Act, busy: &Busy) -> Next {
        if busy.contains(&act.id()) { self.wait() } else { Next::Start(vec![act]) }
    }

    fn wait(&self) -> Next {
        wait(self.limits.deadline_ms)
    }
}

fn wait(until_ms: Option<u64>) -> Next {
    Next::Wait { until_ms, stop: Vec::new() }
}

fn close(open: &OpenTurn, result: impl Fn(CallId) -> CallResult) -> Next {
    let returned = |call: CallId| Record::Returned { call, result: Arc::new(result(call)) };
    Next::Decide(open.missing().map(|call| returned(call.id)).collect())
}

fn may_repeat(replay: Replay) -> bool {
    match replay {
        Replay::Pure | Replay::Idempotent | Replay::Resumable => true,
        Replay::Once => false,
        _ => false,
    }
}
