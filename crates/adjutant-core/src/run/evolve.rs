//! `apply`: the meaning of a record. Frozen: an old log always folds to the same state.

mod heard;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use adjutant_llm::{
    Block, CallId, CallResult, Edit, Entry, Estimate, NanoUsd, OpenTurn, Overflow, Reply, Stored,
    Terminate, ToolChange, ToolDecl, Turn, Usage, UserMessage,
};
use serde_json::Value;

use adjutant_tool::Answer;

use super::{
    Admitted, CallSlot, Current, Illegal, Measured, Run, RunPause, StepState, Working, slots::Slots,
};
use crate::{
    journal::Stamped,
    number::{RunNo, TurnNo},
    options::Limits,
    outcome::{Limit, Outcome},
    record::{Admission, Lane, Memo, Record, Revised, RunChange, Terms},
    report::CallReport,
};

type Why = &'static str;

impl Run {
    /// Folds a record; its meaning never changes.
    ///
    /// # Errors
    /// If the record cannot follow the folded ones. The run is unusable then.
    pub fn apply(&mut self, stamped: &Stamped) -> Result<(), Illegal> {
        let illegal = |why| Illegal {
            seq: stamped.seq,
            why,
        };
        self.seq = stamped.seq;
        if self.thread.is_none() {
            self.thread = Some(stamped.thread.clone());
        }
        let free_ms = self.pass_time(&stamped.record, stamped.at_ms);
        self.take(&stamped.record, stamped.at_ms, free_ms)
            .map_err(illegal)
    }

    /// Counts the time in which the run was running, and returns the free time: the time before it was resumed.
    fn pass_time(&mut self, record: &Record, at_ms: u64) -> u64 {
        let Some(current) = self
            .current
            .as_mut()
            .filter(|current| current.outcome.is_none())
        else {
            return 0;
        };
        let passed = at_ms.saturating_sub(current.heard_ms);
        current.heard_ms = at_ms;
        let free_ms = if current.is_free(record) { passed } else { 0 };
        current.active_ms = current.active_ms.saturating_add(passed - free_ms);
        free_ms
    }

    fn take(&mut self, record: &Record, at_ms: u64, free_ms: u64) -> Result<(), Why> {
        match record {
            Record::Seeded { entries } => self.append_all(entries),
            Record::Appended { entries } => self.apply_append(entries),
            Record::Began {
                run,
                prompts,
                limits,
                terms,
            } => {
                self.began(*run, limits, at_ms)?;
                self.goes_by(terms.as_deref())?;
                self.append_all(prompts)
            }
            Record::OutputChecked { turn, verdict } => self.apply_output_verdict(*turn, verdict),
            Record::Queued {
                item,
                lane,
                content,
            } => self.queue(*item, *lane, content),
            Record::Withdrawn { item } => self
                .queue
                .remove(item)
                .map(|_| ())
                .ok_or("no such message is queued"),
            Record::Placed { items, revised } => self.apply_placement(items, revised),
            Record::Opened { turn, last } => self.apply_turn_start(*turn, last),
            Record::Prepared {
                turn,
                edits,
                once,
                hidden,
                memos,
                spent,
                cost,
                stop,
                reports: _,
                model: _,
            } => {
                let working = self.turn_mut(*turn)?;
                working.hidden.clone_from(hidden);
                working.once.clone_from(once);
                self.remember(memos);
                self.current_mut()?.spend(*spent, *cost, stop);
                self.apply_preparation(*turn, edits)
            }
            Record::Configured { config } => {
                self.config = Some(Arc::clone(config));
                Ok(())
            }
            Record::Declared { prefix } => {
                self.prefix = Some(Arc::clone(prefix));
                Ok(())
            }
            Record::Heard {
                turn,
                attempt,
                model,
                parts,
            } => self.apply_parts(*turn, *attempt, model, parts),
            Record::Billed { usage, cost, by: _ } => self.apply_bill(*usage, *cost),
            Record::Heeded { post } => {
                self.posts = self.posts.max(*post);
                Ok(())
            }
            Record::Overflowed { turn, overflow } => self.apply_overflow(*turn, *overflow),
            Record::Refused { turn, edits, .. } => self.apply_refusal(*turn, edits),
            Record::Retracted {
                turn,
                attempt,
                usage,
                cost,
            } => self.apply_retraction(*turn, *attempt, *usage, *cost),
            Record::Replied {
                turn,
                reply,
                cost,
                original,
                recovered: _,
            } => self.apply_reply(
                *turn,
                reply,
                original.as_ref().unwrap_or(reply).usage,
                *cost,
            ),
            Record::Admitted { call, admission } => self.apply_admission(*call, admission),
            Record::Launched { calls } => self.apply_launch(calls, at_ms),
            Record::Returned {
                call,
                result,
                shown,
            } => {
                self.slot_mut(*call, |slot| slot.shown.clone_from(shown))?;
                self.put(*call, result, at_ms)
            }
            Record::Begun { call, key } => self.step(*call, key, StepState::Begun),
            Record::Noted { call, key, value } => {
                self.step(*call, key, StepState::Noted(value.clone()))
            }
            Record::Spent {
                usage,
                cost,
                requests,
                tool_calls,
                ..
            }
            | Record::ChildEnded {
                usage,
                cost,
                requests,
                tool_calls,
                ..
            } => self.current_mut().map(|current| {
                current.spend(*usage, *cost, &None);
                current.child_requests = current.child_requests.saturating_add(*requests);
                current.child_calls = current.child_calls.saturating_add(*tool_calls);
            }),
            Record::Paused { pause } => self.apply_pause(pause),
            Record::Unanswered { pause } => self.apply_unanswered(pause),
            Record::Suspended { call, pauses } => self.apply_suspension(*call, pauses),
            Record::Answered { pause, answer } => self.apply_answer(pause, answer),
            Record::Resumed {
                answers,
                limits,
                terms,
            } => {
                self.apply_resume(answers, limits.as_ref(), free_ms)?;
                self.goes_by(terms.as_deref())
            }
            Record::Settled { turn, stop, change } => self.apply_settlement(*turn, *stop, change),
            Record::Exhausted { limit } => self.current_mut().map(|current| current.exhaust(limit)),
            Record::Broke { failure, .. } => self.current_mut().map(|current| {
                current.failure.get_or_insert_with(|| failure.clone());
            }),
            Record::CancelAsked { by } => self.current_mut().map(|current| {
                current.cancel.get_or_insert(*by);
            }),
            Record::Ended { run, outcome } => self.apply_end(*run, outcome, at_ms),
            Record::Overruled {
                run,
                outcome,
                by: _,
                instead,
            } => self.apply_overrule(*run, outcome, instead.as_ref()),
            Record::ChildOpened { .. } | Record::Denied { .. } | Record::App { .. } => Ok(()),
        }
    }

    fn append(&mut self, entry: Entry) {
        if let Entry::User(UserMessage {
            tools: Some(change),
            ..
        }) = &entry
        {
            self.change_tools(change);
        }
        let stored = self.history.push(entry);
        self.view.append(stored);
    }

    #[cold]
    fn change_tools(&mut self, change: &ToolChange) {
        let is_kept = |known: &&ToolDecl| change.added.iter().all(|new| new.name != known.name);
        self.added = self
            .added
            .iter()
            .filter(is_kept)
            .chain(&change.added)
            .cloned()
            .collect();
    }

    fn append_all(&mut self, entries: &[Entry]) -> Result<(), Why> {
        entries.iter().for_each(|entry| self.append(entry.clone()));
        Ok(())
    }

    fn apply_append(&mut self, entries: &[Entry]) -> Result<(), Why> {
        if self.is_open() {
            return Err("a run is open");
        }
        self.append_all(entries)
    }

    pub(super) fn current_mut(&mut self) -> Result<&mut Current, Why> {
        self.current
            .as_mut()
            .filter(|current| current.outcome.is_none())
            .ok_or("no run is open")
    }

    pub(super) fn turn_mut(&mut self, turn: TurnNo) -> Result<&mut Working, Why> {
        let working = self.current_mut()?.turn.as_mut();
        working
            .filter(|working| working.no == turn && working.settled.is_none())
            .ok_or("the turn is not open")
    }

    fn slot_mut<T>(
        &mut self,
        call: CallId,
        change: impl FnOnce(&mut CallSlot) -> T,
    ) -> Result<T, Why> {
        let working = self.current_mut()?.turn.as_mut();
        let changed = working.and_then(|working| working.slots.change(call, change));
        changed.ok_or("the open turn has no such call")
    }

    fn began(&mut self, run: RunNo, limits: &Limits, at_ms: u64) -> Result<(), Why> {
        if self.is_open() {
            return Err("a run is open already");
        }
        self.runs = run.0;
        self.past = self.usage();
        self.current = Some(Current {
            run,
            limits: limits.clone(),
            first_entry: self.history.len() as u64,
            began_ms: at_ms,
            ended_ms: at_ms,
            active_ms: 0,
            heard_ms: at_ms,
            turns: 0,
            allowed: 0,
            child_requests: 0,
            child_calls: 0,
            usage: Usage::default(),
            spent: Usage::default(),
            cost: None,
            spent_cost: None,
            calls: Vec::new(),
            turn: None,
            pauses: Vec::new(),
            approved: BTreeSet::new(),
            approved_calls: Vec::new(),
            change: RunChange::default(),
            exhausted: None,
            extended: None,
            declined: false,
            cancel: None,
            failure: None,
            outcome: None,
            refusals: 0,
            output: None,
        });
        if let Some(terms) = &mut self.terms {
            terms.state.clear();
            terms.model = None;
        }
        Ok(())
    }

    /// Applies the settings of a run that was started or resumed, where they are set.
    fn goes_by(&mut self, terms: Option<&Terms>) -> Result<(), Why> {
        let Some(said) = terms else { return Ok(()) };
        if let Some(output) = &said.output {
            self.apply_output_request(output)?;
        }
        let terms = self.terms.get_or_insert_default();
        terms.system = said.system.clone().or(terms.system.take());
        terms.agent = said.agent.clone().or(terms.agent.take());
        terms.state.extend(
            said.state
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        if let Some(model) = &said.model {
            terms.model = Some(model.clone());
            let current = self.current_mut()?;
            current.change.model = Some(model.clone());
            current
                .turn
                .iter_mut()
                .for_each(|working| working.moved = working.prepared);
        }
        Ok(())
    }

    fn queue(&mut self, item: u64, lane: Lane, content: &Entry) -> Result<(), Why> {
        if item <= self.items {
            return Err("queued messages count upwards");
        }
        self.items = item;
        self.queue.insert(item, (lane, content.clone()));
        Ok(())
    }

    fn apply_placement(&mut self, items: &[u64], revised: &[Revised]) -> Result<(), Why> {
        for item in items {
            let (_, content) = self.queue.remove(item).ok_or("no such message is queued")?;
            let revised = revised.iter().find(|revised| revised.item == *item);
            self.append(revised.map_or(content, |revised| revised.content.clone()));
        }
        if let Some(working) = self
            .current
            .as_mut()
            .and_then(|current| current.turn.as_mut())
        {
            working.placed |= working.settled.is_some();
        }
        Ok(())
    }

    fn remember(&mut self, memos: &[Memo]) {
        for memo in memos {
            match &memo.value {
                Value::Null => self.memos.remove(&memo.key),
                value => self.memos.insert(Arc::clone(&memo.key), value.clone()),
            };
        }
    }

    fn apply_turn_start(&mut self, turn: TurnNo, last: &Option<Limit>) -> Result<(), Why> {
        if turn.0 <= self.turns {
            return Err("turns count upwards");
        }
        let current = self.current_mut()?;
        if current
            .turn
            .as_ref()
            .is_some_and(|working| working.settled.is_none())
        {
            return Err("a turn is open already");
        }
        current.turns += 1;
        current.turn = Some(Working {
            heard: Vec::new(),
            speaker: None,
            no: turn,
            last: last.clone(),
            attempt: 0,
            prepared: false,
            overflowed: None,
            hidden: Vec::new(),
            once: Vec::new(),
            reply: None,
            open: None,
            slots: Slots::default(),
            terminates: Terminate::No,
            settled: None,
            placed: false,
            moved: false,
        });
        current.pauses.clear();
        self.turns = turn.0;
        Ok(())
    }

    fn apply_preparation(&mut self, turn: TurnNo, edits: &[Edit]) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        (working.prepared, working.moved) = (true, false);
        self.edit(edits)?;
        self.seen = self.history.next_id();
        Ok(())
    }

    /// Appended entries join the history too; runs of other edits are applied at once.
    pub(super) fn edit(&mut self, edits: &[Edit]) -> Result<(), Why> {
        let is_append = |edit: &Edit| matches!(edit, Edit::Append { .. });
        for run in edits.chunk_by(|one, other| is_append(one) == is_append(other)) {
            if !is_append(&run[0]) {
                self.view
                    .apply_all(run)
                    .map_err(|_| "an edit of an entry that is not shown")?;
                continue;
            }
            for edit in run {
                if let Edit::Append { entry } = edit {
                    self.append(entry.clone());
                }
            }
        }
        Ok(())
    }

    fn apply_overflow(&mut self, turn: TurnNo, overflow: Overflow) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.reply.is_some() {
            return Err("the turn has its reply already");
        }
        working.overflowed = Some(overflow);
        working.prepared = false;
        working.heard.clear();
        Ok(())
    }

    fn apply_refusal(&mut self, turn: TurnNo, edits: &[Edit]) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.reply.is_some() {
            return Err("the turn has its reply already");
        }
        working.prepared = false;
        working.heard.clear();
        let current = self.current_mut()?;
        current.refusals = current.refusals.saturating_add(1);
        self.edit(edits)
    }

    /// The newest run pays, whether it has ended or not.
    fn apply_bill(&mut self, usage: Usage, cost: Option<NanoUsd>) -> Result<(), Why> {
        self.current
            .as_mut()
            .ok_or("there was no run yet")?
            .spend(usage, cost, &None);
        Ok(())
    }

    fn apply_retraction(
        &mut self,
        turn: TurnNo,
        attempt: u32,
        usage: Usage,
        cost: Option<NanoUsd>,
    ) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        // If `heard` was filled after that attempt, it belongs to a later attempt.
        if working.heard.is_empty() || attempt >= working.attempt {
            working.attempt = attempt.saturating_add(1);
            working.heard.clear();
        }
        self.current_mut().map(|current| current.bill(usage, cost))
    }

    fn apply_reply(
        &mut self,
        turn: TurnNo,
        reply: &Arc<Reply>,
        used: Usage,
        cost: Option<NanoUsd>,
    ) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.reply.is_some() {
            return Err("the turn has its reply already");
        }
        working.reply = Some(Arc::clone(reply));
        working.heard.clear();
        let mut slots = Vec::with_capacity(reply.calls().count());
        slots.extend(reply.calls().map(|call| CallSlot::new(call.id)));
        working.slots = slots.into();
        if working.slots.has_doubles() {
            return Err("two calls of a reply have one id");
        }
        working.open = Some(Turn::open(Arc::clone(reply)));
        let current = self.current_mut()?;
        current.bill(used, cost);
        if used.input() > 0 {
            // The reply is estimated like everything else until the next request is counted.
            self.measured = Some(Measured {
                tokens: used.input(),
                estimate: self.view.items().tokens(),
            });
        }
        self.close_if_full();
        Ok(())
    }

    fn apply_admission(&mut self, call: CallId, admission: &Admission) -> Result<(), Why> {
        match admission {
            Admission::Refuse { result } => self.put(call, result, 0),
            Admission::Supplied { result, shown } => {
                self.slot_mut(call, |slot| slot.shown.clone_from(shown))?;
                self.put(call, result, 0)
            }
            Admission::Allow {
                args,
                changed,
                replay,
                sequential,
                title: _,
            } => {
                let admitted = Admitted {
                    args: Arc::clone(args),
                    changed: *changed,
                    replay: *replay,
                };
                let asked = self.slot_mut(call, |slot| {
                    (slot.admitted, slot.sequential) = (Some(admitted), *sequential);
                    slot.asked
                })?;
                let current = self.current_mut()?;
                current.allowed += 1;
                let asked = asked
                    .and_then(|at| current.pauses.get(at as usize))
                    .cloned();
                // Other arguments were approved, and have passed what arguments pass.
                if let Some(RunPause {
                    pause,
                    answer:
                        Some(Answer::Approve {
                            args: Some(edited),
                            for_run: true,
                        }),
                    ..
                }) = asked
                {
                    let mut pause = crate::pause::Pause::clone(&pause);
                    if let Some(call) = &mut pause.call {
                        call.args = edited;
                    }
                    current.approve_call(&Arc::new(pause));
                }
                Ok(())
            }
            Admission::Ask { pause, sequential } => {
                let at = self.ask(pause, false)?;
                self.slot_mut(call, |slot| {
                    (slot.asked, slot.sequential) = (Some(at), *sequential)
                })
            }
        }
    }

    fn apply_launch(&mut self, calls: &[CallId], at_ms: u64) -> Result<(), Why> {
        calls
            .iter()
            .try_for_each(|call| self.slot_mut(*call, |slot| slot.launched_ms = Some(at_ms)))
    }

    fn put(&mut self, id: CallId, result: &Arc<CallResult>, at_ms: u64) -> Result<(), Why> {
        let (was_done, launched_ms) = self.slot_mut(id, |slot| {
            (std::mem::replace(&mut slot.done, true), slot.launched_ms)
        })?;
        if was_done {
            return Err("the call has its result already");
        }
        let duration = launched_ms.map_or(0, |launched| at_ms.saturating_sub(launched));
        self.close_pauses(id);
        let current = self.current_mut()?;
        let working = current.turn.as_mut();
        let name = working
            .as_ref()
            .and_then(|working| Some(working.call(id)?.name.clone()));
        let Some(open) = working.and_then(|working| working.open.as_mut()) else {
            return Err("the turn is closed");
        };
        open.put(id, Arc::clone(result))
            .map_err(|_| "the call has its result already")?;
        if let Some(name) = name {
            let duration = Duration::from_millis(duration);
            current.calls.push(CallReport {
                call: id,
                name,
                duration,
                result: Arc::clone(result),
            });
        }
        self.close_if_full();
        Ok(())
    }

    fn close_if_full(&mut self) {
        let Some(working) = self
            .current
            .as_mut()
            .and_then(|current| current.turn.as_mut())
        else {
            return;
        };
        match working.open.take().map(OpenTurn::close) {
            Some(Ok(turn)) => {
                working.terminates = terminates(turn.results());
                let shown = working.visible_turn(&turn);
                // Reports were pushed as calls ended; the caller sees them in the order of the calls.
                if let Some(current) = self.current.as_mut().filter(|_| turn.results().len() > 1) {
                    let first = current.calls.len() - turn.results().len();
                    let order: BTreeMap<CallId, usize> =
                        turn.reply().calls().map(|call| call.id).zip(0..).collect();
                    current.calls[first..].sort_by_key(|report| order.get(&report.call).copied());
                }
                self.close(turn, shown);
            }
            Some(Err(open)) => working.open = Some(open),
            None => {}
        }
    }

    /// The history holds the turn whole; the view may show less of its results.
    fn close(&mut self, turn: Turn, shown: Option<Turn>) {
        let stored = self.history.push(Entry::Turn(turn));
        match shown.map(Entry::Turn) {
            Some(entry) => {
                self.view.append(Arc::new(Stored {
                    id: stored.id,
                    tokens: Estimate::entry(&entry),
                    entry,
                }));
            }
            None => self.view.append(stored),
        }
    }

    fn apply_settlement(
        &mut self,
        turn: TurnNo,
        stop: bool,
        change: &RunChange,
    ) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.open.is_some() {
            return Err("a call of the turn has no result");
        }
        working.settled = Some(stop);
        let (said, prepared) = (
            working.reply.is_some() || working.attempt > 0,
            working.prepared,
        );
        let current = self.current_mut()?;
        let asked = said || (prepared && current.exhausted.is_none());
        if !asked {
            // A turn that ended before its request was made.
            current.turns -= 1;
        }
        let known = &mut current.change;
        known.model = change.model.clone().or(known.model.take());
        known.thinking = change.thinking.or(known.thinking);
        known.tools = change.tools.clone().or(known.tools.take());
        self.edit(&change.edits)
    }

    fn apply_end(&mut self, run: RunNo, outcome: &Outcome, at_ms: u64) -> Result<(), Why> {
        let current = self.current_mut()?;
        if current.run != run {
            return Err("another run is open");
        }
        if current
            .turn
            .as_ref()
            .is_some_and(|working| working.open.is_some())
        {
            return Err("a call of the turn has no result");
        }
        current.outcome = Some(outcome.clone());
        current.ended_ms = at_ms;
        Ok(())
    }

    fn apply_overrule(
        &mut self,
        run: RunNo,
        outcome: &Outcome,
        instead: Option<&Arc<Reply>>,
    ) -> Result<(), Why> {
        let ended = self
            .current
            .as_mut()
            .filter(|current| current.run == run && current.outcome.is_some());
        let current = ended.ok_or("the run has not ended")?;
        current.overrule_output(outcome);
        current.outcome = Some(outcome.clone());
        instead.map_or(Ok(()), |instead| self.withhold(instead))
    }

    /// Replaces the content of the latest reply in the view; its calls stay. The history contains both.
    fn withhold(&mut self, instead: &Arc<Reply>) -> Result<(), Why> {
        let newest = self
            .view
            .items()
            .iter()
            .rev()
            .find_map(|stored| match &stored.entry {
                Entry::Turn(turn) => Some((stored.id, turn.clone())),
                _ => None,
            });
        let answer = self.working().and_then(|working| working.reply.as_ref());
        let Some((at, said)) =
            newest.filter(|(_, turn)| answer.is_some_and(|answer| turn.reply() == answer))
        else {
            // An edit took it out of the view already.
            return Ok(());
        };
        let calls = said
            .reply()
            .blocks
            .iter()
            .filter(|block| matches!(***block, Block::Call(_)));
        let blocks = instead.blocks.iter().chain(calls).cloned().collect();
        let mut shown = Turn::open(Arc::new(Reply {
            blocks,
            ..Reply::clone(instead)
        }));
        for (call, result) in said.pairs() {
            shown
                .put(call.id, Arc::clone(result))
                .map_err(|_| "a call of the answer has two results")?;
        }
        let close = |open: OpenTurn| {
            open.close()
                .map_err(|_| "a call stands in the place of an answer")
        };
        let (turn, shown) = (close(Turn::open(Arc::clone(instead)))?, close(shown)?);
        self.history.push(Entry::Turn(turn));
        self.view
            .apply(&Edit::Replace {
                at,
                with: Entry::Turn(shown),
            })
            .map_err(|_| "the answer is not shown")
    }
}

impl Working {
    /// The turn as the view shows it, if that is less than the whole.
    fn visible_turn(&self, turn: &Turn) -> Option<Turn> {
        if self.slots.iter().all(|slot| slot.shown.is_none()) {
            return None;
        }
        let mut open = Turn::open(Arc::clone(turn.reply()));
        for (slot, (call, result)) in self.slots.iter().zip(turn.pairs()) {
            open.put(call.id, Arc::clone(slot.shown.as_ref().unwrap_or(result)))
                .ok()?;
        }
        open.close().ok()
    }
}

impl Current {
    /// True if the time before a record counts for no limit.
    fn is_free(&self, record: &Record) -> bool {
        matches!(record, Record::Resumed { .. }) && !self.limits.parked_counts
    }

    fn spend(&mut self, usage: Usage, cost: Option<NanoUsd>, stop: &Option<Limit>) {
        self.spent += usage;
        self.spent_cost = NanoUsd::sum_known(self.spent_cost, cost);
        if let Some(limit) = stop {
            self.exhaust(limit);
        }
    }

    fn exhaust(&mut self, limit: &Limit) {
        self.exhausted.get_or_insert_with(|| limit.clone());
    }

    fn bill(&mut self, usage: Usage, cost: Option<NanoUsd>) {
        self.usage += usage;
        self.cost = NanoUsd::sum_known(self.cost, cost);
    }
}

/// Returns whether these results end the run: one of them for sure, or all of them together.
fn terminates(results: &[Arc<CallResult>]) -> Terminate {
    if results
        .iter()
        .any(|result| result.terminate == Terminate::Now)
    {
        return Terminate::Now;
    }
    let all = !results.is_empty()
        && results
            .iter()
            .all(|result| result.terminate != Terminate::No);
    if all { Terminate::IfAll } else { Terminate::No }
}
