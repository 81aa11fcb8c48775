//! The things that a run waits for, and the next steps. Nothing here decides anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_llm::{CallResult, Edit, Entry, FinishReason, Reply, Terminate, Transcript};

use super::{Run, RunPause, Working};
use crate::{
    journal::Work,
    pause::{Answered, Pause, PauseId},
    record::Lane,
};

/// A view of the waits of a run and of its next steps: read by its executor.
#[derive(Debug, Clone, Copy)]
pub struct WaitView<'a> {
    run: &'a Run,
    /// The number that the next queued message gets.
    pub next_item: u64,
}

/// The next step after a turn that is about to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// The run ends, whatever is queued.
    Ends,
    /// The run ends, unless a message is placed.
    Stops,
    /// Another turn.
    Goes,
}

/// The end of a conversation, for a request without a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The conversation is empty.
    Nothing,
    /// Something that a model can answer.
    Open,
    /// An answer.
    Answer,
}

/// A turn that is closed and about to be settled.
#[derive(Debug)]
pub struct Closed {
    /// The model's reply.
    pub reply: Arc<Reply>,
    /// The results of its calls, in their order.
    pub results: Vec<Arc<CallResult>>,
    /// The entries that the run has added to the conversation.
    pub entries: Vec<Entry>,
    scratch: Run,
}

impl Closed {
    /// Returns the view that the next request would show.
    pub fn view(&self) -> &Transcript {
        self.scratch.view.items()
    }

    /// Applies edits to the next view; all of them, or none if one does not match.
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
    /// Returns a view of the waits of the run and of its next steps.
    pub fn waiting(&self) -> WaitView<'_> {
        WaitView {
            run: self,
            next_item: self.items + 1,
        }
    }
}

impl<'a> WaitView<'a> {
    /// Returns the end of the conversation; an entry that no model sees is passed over.
    pub fn tail(self) -> Tail {
        let seen = |entry: &&Entry| match entry {
            Entry::Custom(_) => false,
            // A reply that was cut off without content exists only for its usage.
            Entry::Turn(turn) => {
                turn.reply().stop != FinishReason::Interrupted || !turn.reply().blocks.is_empty()
            }
            _ => true,
        };
        match self
            .run
            .view
            .items()
            .iter()
            .rev()
            .map(|stored| &stored.entry)
            .find(seen)
        {
            None => Tail::Nothing,
            Some(Entry::Turn(turn))
                if turn.results().is_empty() && turn.reply().stop != FinishReason::Paused =>
            {
                Tail::Answer
            }
            Some(_) => Tail::Open,
        }
    }

    /// The turn that is about to be settled, unless its reply was refused.
    pub fn closed(self) -> Option<Closed> {
        let reply = self.run.reply().filter(|reply| {
            !matches!(reply.stop, FinishReason::Refused | FinishReason::Filtered)
        })?;
        let results = self
            .run
            .history
            .iter()
            .rev()
            .find_map(|stored| match &stored.entry {
                Entry::Turn(turn) if Arc::ptr_eq(turn.reply(), reply) || turn.reply() == reply => {
                    Some(turn.results().to_vec())
                }
                _ => None,
            })?;
        let first = usize::try_from(self.run.current.as_ref()?.first_entry).unwrap_or(usize::MAX);
        let entries = self
            .run
            .history
            .iter_from(first)
            .map(|stored| stored.entry.clone())
            .collect();
        Some(Closed {
            reply: Arc::clone(reply),
            results,
            entries,
            scratch: self.run.clone(),
        })
    }

    /// Returns the next step after the open turn; `stop` is true if the application ends the run here, and `checked`
    /// is the result of the output check, if an answer was given.
    pub fn ahead(self, stop: bool, checked: Option<bool>) -> NextStep {
        let Some((current, working)) = self
            .run
            .current
            .as_ref()
            .and_then(|it| Some((it, it.turn.as_ref()?)))
        else {
            return NextStep::Goes;
        };
        let Some(reply) = &working.reply else {
            return NextStep::Goes;
        };
        let closing = current.cancel.is_some() || current.failure.is_some();
        let failed = matches!(reply.stop, FinishReason::Refused | FinishReason::Filtered);
        if closing
            || failed
            || stop
            || working.last.is_some()
            || working.terminates == Terminate::Now
        {
            return NextStep::Ends;
        }
        match (
            checked.unwrap_or_else(|| working.stops()),
            current.limit_reached(),
        ) {
            (_, Some(_)) => NextStep::Ends,
            (true, None) => NextStep::Stops,
            (false, None) => NextStep::Goes,
        }
    }

    /// Returns the messages that are queued and not placed, in order.
    pub fn pending_messages(self) -> impl Iterator<Item = (u64, Lane, &'a Entry)> {
        self.run
            .queue
            .iter()
            .map(|(item, (lane, entry))| (*item, *lane, entry))
    }

    /// Returns the reason why these answers do not match the pauses of the run, if they do not.
    ///
    /// A pause that can still be answered here, or that has timed out, needs no answer.
    pub fn mismatch(self, answers: &[Answered], now_ms: u64) -> Option<String> {
        if !self.run.is_open() {
            return Some("no run is open".into());
        }
        let mut open: BTreeMap<&PauseId, &RunPause> = self
            .run
            .open_pauses()
            .map(|asked| (&asked.pause.id, asked))
            .collect();
        let known: BTreeSet<&PauseId> = open.keys().copied().collect();
        for Answered {
            pause,
            answer,
            shown,
        } in answers
        {
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
        if !answers.is_empty() {
            return None;
        }
        let missing = self.run.open_pauses();
        let missing = missing.filter(|it| it.waiting && !it.pause.is_late(now_ms));
        let missing: Vec<&str> = missing.map(|it| &*it.pause.id.0).collect();
        (!missing.is_empty()).then(|| format!("no answer to {}", missing.join(", ")))
    }

    /// True if the run is past its deadline, were it resumed now; then it needs no answers.
    pub fn is_late(self, now_ms: u64) -> bool {
        let Some(current) = self
            .run
            .current
            .as_ref()
            .filter(|current| current.outcome.is_none())
        else {
            return false;
        };
        let at_ms = if current.limits.parked_counts {
            now_ms
        } else {
            current.heard_ms
        };
        current
            .limits
            .deadline_ms
            .is_some_and(|deadline| deadline <= at_ms)
    }

    /// Returns what a run that parks now waits for, and until when: a past time is ignored while something else must
    /// be answered.
    pub fn to_work(self, now_ms: u64) -> Work {
        let asked = || self.run.open_pauses().map(|asked| &asked.pause);
        let limits = self.run.current.as_ref().map(|current| &current.limits);
        let deadline = limits
            .filter(|limits| limits.parked_counts)
            .and_then(|limits| limits.deadline_ms);
        let goes_on = self.is_late(now_ms) || self.mismatch(&[], now_ms).is_none();
        let times = asked()
            .filter_map(|pause| pause.deadline_ms)
            .chain(deadline);
        let until_ms = times.filter(|at| goes_on || *at > now_ms).min();
        Work::from_pauses(asked(), until_ms)
    }

    /// The pause at a place.
    pub fn pause(self, at: u32) -> Option<&'a Arc<Pause>> {
        self.run
            .current
            .as_ref()?
            .pauses
            .get(at as usize)
            .map(|asked| &asked.pause)
    }
}

impl Working {
    /// True if the turn leaves nothing to do: an answer without calls, or results that all terminate the run.
    pub(super) fn stops(&self) -> bool {
        let Some(reply) = &self.reply else {
            return false;
        };
        let answered = self.slots.len() == 0
            && !matches!(reply.stop, FinishReason::Paused | FinishReason::Interrupted);
        answered || self.terminates == Terminate::IfAll
    }
}
