//! Knowledge of the threads under calls that are open: kept until the call has its result.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use adjutant_core::{
    CancelBy, Error, Illegal, Journal, Log, LogId, Outcome, Record, RecordStream, Run, RunResult,
    Seq, Stamped, Tally,
};
use adjutant_llm::{CallId, ThreadId};
use adjutant_tool::Identity;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::session::{ChildSession, OpenChild};
use crate::writer::Writer;

/// The prefix of thread names, under the parent's, for agents that belong to the run.
pub(crate) const KEPT: &str = "run.";

/// The threads of a log under its first one, by name.
#[derive(Default)]
pub(crate) struct Threads {
    known: BTreeMap<ThreadId, KnownThread>,
}

/// The writer of a session's log, with the known state of the log's threads; clones write to the same log.
#[derive(Debug, Clone)]
pub(crate) struct SessionWriter {
    writer: Writer,
    shared: Arc<KnownLog>,
}

/// The state that all writers of a log share.
#[derive(Debug)]
struct KnownLog {
    journal: Arc<dyn Journal>,
    threads: Mutex<Threads>,
    open: OpenChild,
}

/// A holder of a child.
pub(crate) trait ChildHolder: Send + Sync {
    /// True if the child may still be prompted.
    fn is_open(&self) -> bool;
}

/// The known facts of a thread.
#[derive(Default)]
pub(crate) struct KnownThread {
    /// The identity of the agent that speaks in it.
    pub(crate) who: Option<Arc<Identity>>,
    /// True if the parent's thread contains it.
    pub(crate) opened: bool,
    /// Its fold, for the part of the log that was read.
    pub(crate) run: Option<Run>,
    /// Its session, once it was opened here.
    pub(crate) session: Option<Arc<dyn ChildSession>>,
    /// The results of its runs, and the usage of each with all below, oldest first.
    pub(crate) results: Vec<(RunResult, Tally)>,
    /// The number of its ends in the parent's thread.
    pub(crate) told: usize,
    /// The holder of the child.
    pub(crate) holder: Option<Weak<dyn ChildHolder>>,
}

impl SessionWriter {
    /// The writer of an owned log of this name and first thread, of which these threads are known.
    pub(crate) fn new(
        log: Box<dyn Log>,
        (name, root): (LogId, ThreadId),
        journal: &Arc<dyn Journal>,
        threads: Threads,
        open: OpenChild,
    ) -> Self {
        let shared = KnownLog {
            journal: Arc::clone(journal),
            threads: Mutex::new(threads),
            open,
        };
        Self {
            writer: Writer::new(log, name, root),
            shared: Arc::new(shared),
        }
    }

    /// Returns the records of the log, from the first one; pending records are not included.
    pub(super) fn records(&self) -> RecordStream {
        self.shared.journal.read(self.name(), Seq(0))
    }

    /// Reads the thread of a sub-agent that is no longer known: the run that it belonged to has ended. Returns
    /// whether the thread exists.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold.
    pub(super) async fn learn(&self, thread: &ThreadId, parent: &ThreadId) -> Result<bool, Error> {
        if self
            .threads()
            .known
            .get(thread)
            .is_some_and(KnownThread::is_whole)
        {
            return Ok(true);
        }
        let (mut read, mut records) = (Threads::default(), self.records());
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            let concerns = match &stamped.record {
                Record::ChildOpened { thread: child, .. }
                | Record::ChildEnded { thread: child, .. } => child == thread,
                _ => stamped.thread == *thread,
            };
            if concerns {
                read.fold(&stamped, parent)?;
            }
        }
        let found = read.known.remove(thread);
        let is_found = found.is_some();
        if let Some(found) = found {
            // The notes about it here may contain nothing of its conversation.
            let mut threads = self.threads();
            let known = threads.entry(thread);
            if !known.is_whole() {
                let told = known.told.max(found.told);
                *known = KnownThread { told, ..found };
            }
        }
        Ok(is_found)
    }

    /// Opens the conversation of a child, with the fold of its thread.
    pub(super) fn open(&self, run: Run) -> Arc<dyn ChildSession> {
        (self.shared.open)(self.name().clone(), run)
    }

    /// Returns the known threads under open calls.
    pub(crate) fn threads(&self) -> MutexGuard<'_, Threads> {
        self.shared
            .threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for SessionWriter {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl Threads {
    /// Folds a record while a log is read; also records of the first thread.
    ///
    /// # Errors
    /// If the record cannot follow the folded records of its thread.
    pub(crate) fn fold(&mut self, stamped: &Stamped, first: &ThreadId) -> Result<(), Illegal> {
        match &stamped.record {
            Record::ChildOpened { thread, who, .. } => {
                let known = self.known.entry(thread.clone()).or_default();
                (known.who, known.opened) = (Some(Arc::clone(who)), true);
            }
            Record::ChildEnded { thread, .. } => {
                self.known.entry(thread.clone()).or_default().told += 1;
            }
            Record::Returned { call, .. } => self.forget(&stamped.thread, *call),
            Record::Ended { .. } => self.forget_kept(&stamped.thread),
            _ => {}
        }
        if stamped.thread == *first {
            return Ok(());
        }
        let known = self.known.entry(stamped.thread.clone()).or_default();
        let run = known.run.get_or_insert_with(Run::default);
        run.apply(stamped)?;
        let (who, ended) = (
            known.who.as_ref(),
            matches!(stamped.record, Record::Ended { .. }),
        );
        if let Some(result) = who.filter(|_| ended).and_then(|who| run.result(who)) {
            known.results.push((result, run.request().tally()));
        } else if let (Record::Overruled { outcome, .. }, Some(last)) =
            (&stamped.record, known.results.last_mut())
        {
            last.0.outcome = outcome.clone();
            if let Some(result) = who.and_then(|who| run.result(who)) {
                last.0 = result;
            }
        }
        Ok(())
    }

    /// True if no call that is open has threads under it.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the known facts of a thread; an empty entry if it is new.
    pub(crate) fn entry(&mut self, thread: &ThreadId) -> &mut KnownThread {
        self.known.entry(thread.clone()).or_default()
    }

    /// Returns the children of a call without a reported end: their outcomes, and their usage with everything below.
    pub(crate) fn orphans(
        &self,
        thread: &ThreadId,
        call: CallId,
    ) -> Vec<(ThreadId, Outcome, Tally)> {
        if self.known.is_empty() {
            return Vec::new();
        }
        self.untold(&format!("{thread}/{call}/"), 1)
    }

    /// The number of answers that are known of an agent.
    pub(super) fn answers(&self, thread: &ThreadId) -> usize {
        self.known
            .get(thread)
            .map_or(0, |known| known.results.len())
    }

    /// Returns the sub-agents, at any depth, that were running when the log was left, and were not continued yet.
    pub(crate) fn children_to_resume(&self, thread: &ThreadId) -> Vec<ThreadId> {
        let prefix = format!("{thread}/");
        let under = self
            .known
            .range(ThreadId::from(&*prefix)..)
            .take_while(|(it, _)| it.as_str().starts_with(&prefix));
        under
            .filter(|(_, known)| known.is_left_at_work())
            .map(|(thread, _)| thread.clone())
            .collect()
    }

    /// True if an agent was running under a call when the log was left, and that call may still continue it.
    pub(crate) fn is_expected(&self, thread: &ThreadId) -> bool {
        // The agents that a run keeps are continued before the run receives anything.
        let is_kept = || {
            thread
                .as_str()
                .split('/')
                .any(|part| part.starts_with(KEPT))
        };
        self.known
            .get(thread)
            .is_some_and(KnownThread::is_left_at_work)
            && !is_kept()
    }

    /// Returns the children of a run without a reported end.
    pub(crate) fn background_orphans(&self, thread: &ThreadId) -> Vec<(ThreadId, Outcome, Tally)> {
        // After the prefix follow the call that opened them, then the key.
        self.untold(&format!("{thread}/{KEPT}"), 2)
    }

    /// Returns the unreported ends under a prefix, by child: its name has this many parts after the prefix.
    fn untold(&self, prefix: &str, parts: usize) -> Vec<(ThreadId, Outcome, Tally)> {
        let mut orphans: Vec<(ThreadId, Outcome, Tally)> = Vec::new();
        for (thread, known) in self.known.range(ThreadId::from(prefix)..) {
            let Some(key) = thread.as_str().strip_prefix(prefix) else {
                break;
            };
            let Some((outcome, tally)) = known.untold() else {
                continue;
            };
            // A deeper thread belongs to the child above it, whose own end was not reported either.
            let ends = key
                .match_indices('/')
                .nth(parts - 1)
                .map_or(key.len(), |(at, _)| at);
            let child = ThreadId::from(format!("{prefix}{}", &key[..ends]));
            match orphans.iter_mut().find(|(known, ..)| *known == child) {
                Some((.., sum)) => *sum += tally,
                None => orphans.push((child, outcome, tally)),
            }
        }
        orphans
    }

    /// The end of a child was reported, whatever follows.
    pub(crate) fn tell(&mut self, thread: &ThreadId) {
        self.entry(thread).told = usize::MAX;
    }

    /// The call has its result: its threads, and the threads under them, are no longer needed.
    pub(crate) fn forget(&mut self, thread: &ThreadId, call: CallId) {
        if !self.known.is_empty() {
            self.forget_under(&format!("{thread}/{call}/"));
        }
    }

    /// The run has ended, and with it its children.
    pub(crate) fn forget_kept(&mut self, thread: &ThreadId) {
        if !self.known.is_empty() {
            self.forget_under(&format!("{thread}/{KEPT}"));
        }
    }

    fn forget_under(&mut self, prefix: &str) {
        let under = self
            .known
            .range(ThreadId::from(prefix)..)
            .map(|(thread, _)| thread);
        let gone: Vec<ThreadId> = under
            .take_while(|it| it.as_str().starts_with(prefix))
            .cloned()
            .collect();
        for thread in gone {
            self.known.remove(&thread);
        }
    }
}

/// The facts of a thread from its log only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedThread {
    thread: ThreadId,
    who: Option<Arc<Identity>>,
    opened: bool,
    run: Option<Run>,
    results: Vec<(RunResult, Tally)>,
    told: usize,
}

impl Threads {
    /// Returns the facts from the log only; `None` if a thread was running here, whose facts the log describes
    /// differently.
    pub(crate) fn to_recorded(&self) -> Option<Vec<RecordedThread>> {
        let of = |(thread, known): (&ThreadId, &KnownThread)| {
            let KnownThread {
                who,
                opened,
                run,
                session,
                results,
                told,
                holder,
            } = known;
            let is_read = session.is_none()
                && *told < usize::MAX
                && holder
                    .as_ref()
                    .is_none_or(|holder| holder.strong_count() == 0);
            let (who, run, results) = (who.clone(), run.clone(), results.clone());
            is_read.then(|| RecordedThread {
                thread: thread.clone(),
                who,
                opened: *opened,
                run,
                results,
                told: *told,
            })
        };
        self.known.iter().map(of).collect()
    }

    /// The same threads again.
    pub(crate) fn from_recorded(told: Vec<RecordedThread>) -> Self {
        let of = |it: RecordedThread| {
            let RecordedThread {
                thread,
                who,
                opened,
                run,
                results,
                told,
            } = it;
            (
                thread,
                KnownThread {
                    who,
                    opened,
                    run,
                    results,
                    told,
                    ..KnownThread::default()
                },
            )
        };
        Self {
            known: told.into_iter().map(of).collect(),
        }
    }
}

impl KnownThread {
    /// True if its conversation is known, not only notes about it.
    fn is_whole(&self) -> bool {
        self.who.is_some() && (self.run.is_some() || self.session.is_some())
    }

    /// True if the child has a handle.
    pub(super) fn is_held(&self) -> bool {
        self.holder
            .as_ref()
            .and_then(Weak::upgrade)
            .is_some_and(|holder| holder.is_open())
    }

    /// True if its agent had started, or was about to, and does not wait for external input.
    fn is_left_at_work(&self) -> bool {
        let fresh = self.opened && self.told == 0 && self.results.is_empty();
        self.session.is_none()
            && self
                .run
                .as_ref()
                .map_or(fresh, |run| run.is_open() && run.pauses().next().is_none())
    }

    /// Returns the outcome and the usage that were not reported to the parent.
    fn untold(&self) -> Option<(Outcome, Tally)> {
        if self.told == usize::MAX {
            return None;
        }
        let untold = self.results.get(self.told..).unwrap_or_default();
        let open = match (&self.session, &self.run) {
            (Some(session), _) => session.open_tally(),
            (None, run) => run
                .as_ref()
                .filter(|run| run.is_open())
                .map(|run| run.request().tally()),
        };
        let outcome = match (open, untold.last()) {
            // It was opened, and a crash came before it began.
            (None, None) if self.opened && self.told == 0 && self.results.is_empty() => {
                Outcome::Cancelled {
                    by: CancelBy::Parent,
                }
            }
            (None, None) => return None,
            (Some(_), _) => Outcome::Cancelled {
                by: CancelBy::Parent,
            },
            (None, Some((last, _))) => last.outcome.clone(),
        };
        let mut sum = open.unwrap_or_default();
        untold.iter().for_each(|(_, tally)| sum += *tally);
        Some((outcome, sum))
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads")
            .field("known", &self.known.keys().collect::<Vec<_>>())
            .finish()
    }
}
