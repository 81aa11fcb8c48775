//! What a port asks of a run while it performs an act. Nothing here decides anything.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{CallResult, Edit, Effort, Entry, ModelId, NanoUsd, Reply, Stop, Terminate, ToolName, Transcript};
use serde_json::Value;

use super::{Measured, Run, Spend, Tally, Working};
use crate::{
    options::{Caps, Limits},
    outcome::Limit,
    pause::Answered,
    record::Lane,
};

/// What lies behind a turn that is about to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// The run ends, whatever is queued.
    Ends,
    /// The run ends, unless a message is placed.
    Stops,
    /// Another turn.
    Goes,
}

/// What a conversation ends with, as far as a request without a prompt is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing was said yet.
    Nothing,
    /// Something that a model can answer.
    Open,
    /// An answer.
    Answer,
}

/// A turn that is closed and about to be settled.
pub struct Closed {
    pub reply: Arc<Reply>,
    pub results: Vec<Arc<CallResult>>,
    /// What the run has added to the conversation.
    pub entries: Vec<Entry>,
    scratch: Run,
}

impl Closed {
    /// What the next request would show.
    pub fn view(&self) -> &Transcript {
        self.scratch.view.items()
    }

    /// Applies edits to what the next request would show; all of them, or none if one does not fit.
    pub fn edit(&mut self, edits: &[Edit]) -> bool {
        let mut edited = self.scratch.clone();
        let fits = edited.edit(edits).is_ok();
        if fits {
            self.scratch = edited;
        }
        fits
    }
}

impl Run {
    /// What the conversation ends with; what no model sees is passed over.
    pub fn tail(&self) -> Tail {
        let seen = |entry: &&Entry| match entry {
            Entry::Custom(_) => false,
            // A reply that was cut off before it said anything is there only for what it used.
            Entry::Turn(turn) => turn.reply().stop != Stop::Interrupted || !turn.reply().blocks.is_empty(),
            _ => true,
        };
        match self.view.items().iter().rev().map(|stored| &stored.entry).find(seen) {
            None => Tail::Nothing,
            Some(Entry::Turn(turn)) if turn.results().is_empty() && turn.reply().stop != Stop::Paused => Tail::Answer,
            Some(_) => Tail::Open,
        }
    }

    /// The turn that is about to be settled, unless its reply was refused.
    pub fn closed(&self) -> Option<Closed> {
        let reply = self.reply().filter(|reply| !matches!(reply.stop, Stop::Refused | Stop::Filtered))?;
        let results = self.history.iter().rev().find_map(|stored| match &stored.entry {
            Entry::Turn(turn) if Arc::ptr_eq(turn.reply(), reply) || turn.reply() == reply => {
                Some(turn.results().to_vec())
            }
            _ => None,
        })?;
        let first = usize::try_from(self.current.as_ref()?.first_entry).unwrap_or(usize::MAX);
        let entries = self.history.iter_from(first).map(|stored| stored.entry.clone()).collect();
        Some(Closed { reply: Arc::clone(reply), results, entries, scratch: self.clone() })
    }

    /// The limits of the newest run.
    pub fn limits(&self) -> Option<&Limits> {
        self.current.as_ref().map(|current| &current.limits)
    }

    /// What lies behind the open turn; `stop` says whether the application ends the run here.
    pub fn ahead(&self, stop: bool) -> Ahead {
        let Some((current, working)) = self.current.as_ref().and_then(|it| Some((it, it.turn.as_ref()?))) else {
            return Ahead::Goes;
        };
        let Some(reply) = &working.reply else { return Ahead::Goes };
        let closing = current.cancel.is_some() || current.failure.is_some();
        let failed = matches!(reply.stop, Stop::Refused | Stop::Filtered);
        if closing || failed || stop || working.last.is_some() || working.terminates == Terminate::Now {
            return Ahead::Ends;
        }
        match (working.stops(), current.reached()) {
            (_, Some(_)) => Ahead::Ends,
            (true, None) => Ahead::Stops,
            (false, None) => Ahead::Goes,
        }
    }

    /// What is queued and not placed, in order.
    pub fn queued(&self) -> impl Iterator<Item = (u64, Lane, &Entry)> {
        self.queue.iter().map(|(item, (lane, entry))| (*item, *lane, entry))
    }

    /// The number that the next queued message gets.
    pub fn next_item(&self) -> u64 {
        self.items + 1
    }

    /// What effects remember, by key.
    pub fn memos(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.memos
    }

    /// How many tokens the next request holds, system prompt and tools included.
    ///
    /// From what the provider counted last, and estimates of what has changed since; `overhead` is what system prompt
    /// and tools are estimated at, for as long as nothing was counted.
    pub fn context_tokens(&self, overhead: u64) -> u64 {
        Measured::scale(self.measured, self.view.tokens(), overhead)
    }

    /// The model that an earlier turn of this run chose.
    pub fn chosen_model(&self) -> Option<&ModelId> {
        self.current.as_ref()?.change.model.as_ref()
    }

    /// How much to think, as an earlier turn of this run chose.
    pub fn chosen_thinking(&self) -> Option<Effort> {
        self.current.as_ref()?.change.thinking
    }

    /// The only tools that an earlier turn of this run left.
    pub fn chosen_tools(&self) -> Option<&[ToolName]> {
        self.current.as_ref()?.change.tools.as_deref()
    }

    /// The tools that are neither shown nor run in the open turn.
    pub fn hidden(&self) -> &[ToolName] {
        self.working().map(|working| &working.hidden[..]).unwrap_or_default()
    }

    /// What the open turn's request shows.
    pub fn shown(&self) -> Transcript {
        let once = self.working().map(|working| &working.once[..]).unwrap_or_default();
        if once.is_empty() {
            return self.view.items().clone();
        }
        let mut view = self.view.clone();
        // They were tried on this very view before they were recorded.
        let fits = view.apply_all(once).is_ok();
        if fits { view.items().fork() } else { self.view.items().clone() }
    }

    /// Whether the open turn is the last and may call no tools.
    pub fn is_last(&self) -> bool {
        self.working().is_some_and(|working| working.last.is_some())
    }

    /// Whether the open turn's request was too large once.
    pub fn has_overflowed(&self) -> bool {
        self.working().is_some_and(|working| working.overflowed.is_some())
    }

    /// The caps of the newest run, raised by what was allowed since.
    pub fn caps(&self) -> Caps {
        self.current.as_ref().map(|current| current.limits.caps).unwrap_or_default()
    }

    /// What the newest run and everything under it that has ended used.
    pub fn spend(&self) -> Spend {
        let Some(current) = &self.current else { return Spend::default() };
        let unasked = self.working().is_some_and(|it| it.settled.is_none() && it.reply.is_none() && it.attempt == 0);
        Spend {
            tokens: (current.usage + current.spent).total(),
            cost: NanoUsd::sum_known(current.cost, current.spent_cost).unwrap_or_default(),
            requests: u64::from(current.turns - u32::from(unasked && current.turns > 0))
                .saturating_add(current.child_requests),
            tool_calls: current.allowed.saturating_add(current.child_calls),
        }
    }

    /// The same, as it is counted while an agent works.
    pub fn tally(&self) -> Tally {
        let Spend { requests, tool_calls, .. } = self.spend();
        let (usage, cost) = self.current.as_ref().map_or_else(Default::default, |current| {
            (current.usage + current.spent, NanoUsd::sum_known(current.cost, current.spent_cost))
        });
        Tally { usage, cost, requests, tool_calls }
    }

    /// How long the newest run has been performed, in milliseconds: what passed while it was parked is free.
    pub fn active_ms(&self) -> u64 {
        self.current.as_ref().map(|current| current.active_ms).unwrap_or_default()
    }

    /// Whether a request of the open turn may be on its way.
    pub fn is_asking(&self) -> bool {
        self.working().is_some_and(|it| it.prepared && it.reply.is_none() && it.settled.is_none())
    }

    /// What the agents under this one were answered; if one asked again, only the newest answer counts.
    pub fn answers_of_others(&self) -> Vec<Answered> {
        let asked = self.current.iter().flat_map(|current| &current.pauses);
        let under = asked.filter(|it| Some(&it.pause.thread) != self.thread.as_ref());
        let newest: BTreeMap<_, _> = under.clone().zip(0_usize..).map(|(it, at)| (&it.pause.id, at)).collect();
        let newest = under.zip(0_usize..).filter(|(it, at)| newest.get(&it.pause.id) == Some(at));
        let answered = newest.filter_map(|(it, _)| Some((it.pause.id.clone(), it.answer.clone()?)));
        answered.map(|(pause, answer)| Answered { pause, answer, shown: None }).collect()
    }

    /// The limit that was reached, if one was.
    pub fn reached(&self) -> Option<Limit> {
        self.current.as_ref()?.reached()
    }
}

impl Working {
    /// Whether the turn leaves nothing to do: an answer without calls, or results that all say so.
    pub(super) fn stops(&self) -> bool {
        let Some(reply) = &self.reply else { return false };
        let answered = self.slots.is_empty() && !matches!(reply.stop, Stop::Paused | Stop::Interrupted);
        answered || self.terminates == Terminate::IfAll
    }
}
