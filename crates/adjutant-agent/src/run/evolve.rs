//! `apply`: what a record means. Frozen: an old log folds to the same state for ever.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjutant_llm::{CallId, CallResult, Edit, Entry, NanoUsd, Reply, Terminate, Turn, Usage};

use super::{Admitted, Current, Illegal, Run, Slot, Step, Working};
use crate::{Admission, CallReport, Limits, Outcome, Record, RunNo, Stamped, TurnNo};

type Why = &'static str;

impl Run {
    /// Folds a record: what it means, for ever.
    ///
    /// # Errors
    /// If the record cannot follow what was folded before. The run is of no use then.
    pub fn apply(&mut self, stamped: &Stamped) -> Result<(), Illegal> {
        let illegal = |why| Illegal { seq: stamped.seq, why };
        self.seq = stamped.seq;
        match &stamped.record {
            Record::Seeded { entries } => {
                entries.iter().for_each(|entry| self.append(entry.clone()));
                Ok(())
            }
            Record::Began { run, prompts, limits } => self.began(*run, prompts, limits, stamped.at_ms),
            Record::Opened { turn } => self.opened(*turn),
            Record::Prepared { turn, edits, .. } => self.prepared(*turn, edits),
            Record::Retracted { turn, attempt, usage, cost } => self.retracted(*turn, *attempt, *usage, *cost),
            Record::Replied { turn, reply, cost } => self.replied(*turn, reply, *cost),
            Record::Admitted { call, admission } => self.decided(*call, admission),
            Record::Launched { calls } => self.launched(calls, stamped.at_ms),
            Record::Returned { call, result } => self.put(*call, result, stamped.at_ms),
            Record::Begun { call, key } => self.step(*call, key, Step::Begun),
            Record::Noted { call, key, value } => self.step(*call, key, Step::Noted(value.clone())),
            Record::Spent { usage, .. } => self.current_mut().map(|current| current.spent += *usage),
            Record::Settled { turn, stop } => self.settled(*turn, *stop),
            Record::Broke { failure, .. } => self.current_mut().map(|current| {
                current.failure.get_or_insert_with(|| failure.clone());
            }),
            Record::CancelAsked { by } => self.current_mut().map(|current| {
                current.cancel.get_or_insert(*by);
            }),
            Record::Ended { run, outcome } => self.ended(*run, outcome, stamped.at_ms),
            Record::App { .. } => Ok(()),
        }
        .map_err(illegal)
    }

    fn append(&mut self, entry: Entry) {
        let stored = self.history.push(entry);
        self.view.append(stored);
    }

    fn current_mut(&mut self) -> Result<&mut Current, Why> {
        self.current.as_mut().filter(|current| current.outcome.is_none()).ok_or("no run is open")
    }

    fn turn_mut(&mut self, turn: TurnNo) -> Result<&mut Working, Why> {
        let working = self.current_mut()?.turn.as_mut();
        working.filter(|working| working.no == turn && working.settled.is_none()).ok_or("the turn is not open")
    }

    fn slot_mut(&mut self, call: CallId) -> Result<&mut Slot, Why> {
        let working = self.current_mut()?.turn.as_mut();
        let slot = working.and_then(|working| working.slots.iter_mut().find(|slot| slot.call == call));
        slot.ok_or("the open turn has no such call")
    }

    fn began(&mut self, run: RunNo, prompts: &[Entry], limits: &Limits, at_ms: u64) -> Result<(), Why> {
        if self.is_open() {
            return Err("a run is open already");
        }
        self.runs = run.0;
        self.current = Some(Current {
            run,
            limits: limits.clone(),
            first_entry: self.history.len() as u64,
            began_ms: at_ms,
            ended_ms: at_ms,
            turns: 0,
            usage: Usage::default(),
            spent: Usage::default(),
            cost: None,
            calls: Vec::new(),
            turn: None,
            cancel: None,
            failure: None,
            outcome: None,
        });
        prompts.iter().for_each(|entry| self.append(entry.clone()));
        Ok(())
    }

    fn opened(&mut self, turn: TurnNo) -> Result<(), Why> {
        if turn.0 <= self.turns {
            return Err("turns count upwards");
        }
        let current = self.current_mut()?;
        if current.turn.as_ref().is_some_and(|working| working.settled.is_none()) {
            return Err("a turn is open already");
        }
        current.turns += 1;
        current.turn = Some(Working {
            no: turn,
            attempt: 0,
            prepared: false,
            reply: None,
            open: None,
            slots: Vec::new(),
            terminated: false,
            settled: None,
        });
        self.turns = turn.0;
        Ok(())
    }

    fn prepared(&mut self, turn: TurnNo, edits: &[Edit]) -> Result<(), Why> {
        self.turn_mut(turn)?.prepared = true;
        for edit in edits {
            match edit {
                Edit::Append { entry } => self.append(entry.clone()),
                other => self.view.apply(other).map_err(|_| "an edit of an entry that is not shown")?,
            }
        }
        Ok(())
    }

    fn retracted(&mut self, turn: TurnNo, attempt: u32, usage: Usage, cost: Option<NanoUsd>) -> Result<(), Why> {
        self.turn_mut(turn)?.attempt = attempt.saturating_add(1);
        self.current_mut().map(|current| current.bill(usage, cost))
    }

    fn replied(&mut self, turn: TurnNo, reply: &Arc<Reply>, cost: Option<NanoUsd>) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.reply.is_some() {
            return Err("the turn has its reply already");
        }
        working.reply = Some(Arc::clone(reply));
        working.slots = reply.calls().map(|call| Slot::new(call.id)).collect();
        if has_doubles(&working.slots) {
            return Err("two calls of a reply have one id");
        }
        working.open = Some(Turn::open(Arc::clone(reply)));
        let current = self.current_mut()?;
        current.bill(reply.usage, cost);
        self.close_if_full();
        Ok(())
    }

    fn decided(&mut self, call: CallId, admission: &Admission) -> Result<(), Why> {
        match admission {
            Admission::Refuse { result } => self.put(call, result, 0),
            Admission::Allow { args, changed, replay, sequential, title: _ } => {
                let admitted =
                    Admitted { args: Arc::clone(args), changed: *changed, replay: *replay, sequential: *sequential };
                self.slot_mut(call)?.admitted = Some(admitted);
                Ok(())
            }
        }
    }

    fn launched(&mut self, calls: &[CallId], at_ms: u64) -> Result<(), Why> {
        calls.iter().try_for_each(|call| {
            self.slot_mut(*call)?.launched_ms = Some(at_ms);
            Ok(())
        })
    }

    fn put(&mut self, id: CallId, result: &Arc<CallResult>, at_ms: u64) -> Result<(), Why> {
        let slot = self.slot_mut(id)?;
        if std::mem::replace(&mut slot.done, true) {
            return Err("the call has its result already");
        }
        let duration = slot.launched_ms.map_or(0, |launched| at_ms.saturating_sub(launched));
        let current = self.current_mut()?;
        let Some(open) = current.turn.as_mut().and_then(|working| working.open.as_mut()) else {
            return Err("the turn is closed");
        };
        let name = open.reply().calls().find(|call| call.id == id).map(|call| call.name.clone());
        open.put(id, Arc::clone(result)).map_err(|_| "the call has its result already")?;
        if let Some(name) = name {
            let duration = Duration::from_millis(duration);
            current.calls.push(CallReport { call: id, name, duration, result: Arc::clone(result) });
        }
        self.close_if_full();
        Ok(())
    }

    fn step(&mut self, call: CallId, key: &Arc<str>, step: Step) -> Result<(), Why> {
        self.slot_mut(call)?.steps.insert(Arc::clone(key), step);
        Ok(())
    }

    fn close_if_full(&mut self) {
        let Some(working) = self.current.as_mut().and_then(|current| current.turn.as_mut()) else { return };
        match working.open.take().map(|open| open.close()) {
            Some(Ok(turn)) => {
                working.terminated = terminates(turn.results());
                // Reports were pushed as calls ended; the caller sees them in the order of the calls.
                if let Some(current) = self.current.as_mut().filter(|_| turn.results().len() > 1) {
                    let first = current.calls.len() - turn.results().len();
                    let order: BTreeMap<CallId, usize> = turn.reply().calls().map(|call| call.id).zip(0..).collect();
                    current.calls[first..].sort_by_key(|report| order.get(&report.call).copied());
                }
                self.append(Entry::Turn(turn));
            }
            Some(Err(open)) => working.open = Some(open),
            None => {}
        }
    }

    fn settled(&mut self, turn: TurnNo, stop: bool) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.open.is_some() {
            return Err("a call of the turn has no result");
        }
        working.settled = Some(stop);
        Ok(())
    }

    fn ended(&mut self, run: RunNo, outcome: &Outcome, at_ms: u64) -> Result<(), Why> {
        let current = self.current_mut()?;
        if current.run != run {
            return Err("another run is open");
        }
        if current.turn.as_ref().is_some_and(|working| working.open.is_some()) {
            return Err("a call of the turn has no result");
        }
        current.outcome = Some(outcome.clone());
        current.ended_ms = at_ms;
        Ok(())
    }
}

impl Current {
    fn bill(&mut self, usage: Usage, cost: Option<NanoUsd>) {
        self.usage += usage;
        self.cost = cost.map(|cost| self.cost.unwrap_or_default() + cost).or(self.cost);
    }
}

/// Whether these results end the run: one of them for sure, or all of them together.
fn terminates(results: &[Arc<CallResult>]) -> bool {
    let one = results.iter().any(|result| result.terminate == Terminate::Now);
    one || (!results.is_empty() && results.iter().all(|result| result.terminate != Terminate::No))
}

fn has_doubles(slots: &[Slot]) -> bool {
    let mut ids: Vec<CallId> = slots.iter().map(|slot| slot.call).collect();
    ids.sort_unstable();
    ids.windows(2).any(|pair| pair[0] == pair[1])
}
