//! A run without its entries: the part that is stored next to a log, which already contains every entry.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use adjutant_llm::{CallId, CallResult, Entry, EntryId, Stored, ToolName, Transcript, View};
use serde::{Deserialize, Serialize};

use super::Run;
use crate::report::CallReport;

/// A run without the entries of its history.
#[derive(Debug, Serialize, Deserialize)]
pub struct Frozen {
    run: Run,
    next: EntryId,
    view: Vec<ShownEntry>,
    view_next: EntryId,
    calls: Vec<Reported>,
}

/// An item of the view.
#[derive(Debug, Serialize, Deserialize)]
enum ShownEntry {
    /// Entries of the history: the place of the first one, and how many.
    Same(usize, usize),
    Other(Arc<Stored>),
}

/// The report of a call; its result is omitted if the history contains it.
#[derive(Debug, Serialize, Deserialize)]
struct Reported(CallId, ToolName, Duration, Option<Arc<CallResult>>);

impl Run {
    /// The run without the entries of its history.
    pub fn frozen(&self) -> Frozen {
        let mut run = Self {
            history: Transcript::new(),
            view: View::default(),
            ..self.clone()
        };
        let calls = run
            .current
            .as_mut()
            .map(|current| std::mem::take(&mut current.calls))
            .unwrap_or_default();
        let kept = self.results();
        let report = |it: CallReport| {
            let is_kept = kept
                .get(&it.call)
                .is_some_and(|kept| Arc::ptr_eq(kept, &it.result) || **kept == it.result);
            Reported(
                it.call,
                it.name,
                it.duration,
                (!is_kept).then_some(it.result),
            )
        };
        Frozen {
            calls: calls.into_iter().map(report).collect(),
            view: self.visible_items(),
            view_next: self.view.items().next_id(),
            next: self.history.next_id(),
            run,
        }
    }

    /// The results in the history of the newest run, by call.
    fn results(&self) -> BTreeMap<CallId, &Arc<CallResult>> {
        let first = self
            .current
            .as_ref()
            .map_or(u64::MAX, |current| current.first_entry);
        let newest = self
            .history
            .iter_from(usize::try_from(first).unwrap_or(usize::MAX));
        let turns = newest.filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(turn),
            _ => None,
        });
        turns
            .flat_map(|turn| turn.pairs())
            .map(|(call, result)| (call.id, result))
            .collect()
    }

    fn visible_items(&self) -> Vec<ShownEntry> {
        let mut shown = Vec::new();
        for stored in self.view.items().iter() {
            let same = self.history.position(stored.id);
            let same = same.filter(|at| {
                self.history
                    .get(*at)
                    .is_some_and(|kept| Arc::ptr_eq(kept, stored))
            });
            match (same, shown.last_mut()) {
                (Some(at), Some(ShownEntry::Same(first, many))) if at == *first + *many => {
                    *many += 1
                }
                (Some(at), _) => shown.push(ShownEntry::Same(at, 1)),
                (None, _) => shown.push(ShownEntry::Other(Arc::clone(stored))),
            }
        }
        shown
    }
}

impl Frozen {
    /// Returns the run with the entries of its history; `None` if they are not its original entries.
    pub fn with(self, entries: impl IntoIterator<Item = Arc<Stored>>) -> Option<Run> {
        let Self {
            mut run,
            next,
            view,
            view_next,
            calls,
        } = self;
        run.history = Transcript::from_stored(entries, next).ok()?;
        let mut shown = Vec::with_capacity(view.len());
        for part in view {
            match part {
                ShownEntry::Same(first, many) => {
                    let end = first
                        .checked_add(many)
                        .filter(|end| *end <= run.history.len())?;
                    shown.extend((first..end).filter_map(|at| run.history.get(at).cloned()));
                }
                ShownEntry::Other(stored) => shown.push(stored),
            }
        }
        run.view = View::from(Transcript::from_stored(shown, view_next).ok()?);
        let kept = run.results();
        let report = |Reported(call, name, duration, result)| {
            let result = result.or_else(|| kept.get(&call).copied().cloned())?;
            Some(CallReport {
                call,
                name,
                duration,
                result,
            })
        };
        let calls: Vec<CallReport> = calls.into_iter().map(report).collect::<Option<_>>()?;
        match &mut run.current {
            Some(current) => current.calls = calls,
            None if calls.is_empty() => {}
            None => return None,
        }
        Some(run)
    }
}
