//! The writer of a session's log: one order over the records of all threads, shared by their executors.

mod headway;

use std::{
    fmt, mem,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
};

use adjutant_core::{
    Durability, Error, Flush, Folded, JournalError, JournalErrorKind, Log, LogId, PostNo, Record,
    Seq, Stamped, Work,
};
use adjutant_llm::ThreadId;
use tokio::sync::{Notify, oneshot};

use headway::Headway;

/// The largest number of records that wait to be saved as a group.
const MAX_UNSAVED: usize = 64;
/// The largest number of records that wait for the end of a drive.
const MAX_UNSAVED_TO_END: usize = 65_536;

/// The writer of a session's log; clones write to the same log.
#[derive(Clone)]
pub(crate) struct Writer {
    shared: Arc<WriterShared>,
}

struct WriterShared {
    name: LogId,
    /// The thread of the first agent, whose runs are the runs of the log.
    root: ThreadId,
    /// Never held over an await: while one thread saves, others number their records, and the next save takes all.
    state: Mutex<State>,
    /// Notified whenever a lease of the log ends.
    free: Notify,
    /// The last emitted record.
    newest: Arc<AtomicU64>,
    /// The number of sub-agents that also write.
    sharers: AtomicUsize,
    /// True if the log stays due when its run has ended.
    awaited: AtomicBool,
}

struct State {
    /// The log; `None` while it is leased, and after it was returned.
    log: Option<Box<dyn Log>>,
    leased: bool,
    /// The number of the newest record, saved or not.
    seq: Seq,
    /// The newest record that the log holds.
    saved: Seq,
    /// Records that are not in the log: saved with the next ones that must be durable, or before an executor waits.
    unsaved: Vec<Arc<Stamped>>,
    /// Batches after a save that has not ended: they are emitted in the order of the log.
    unshown: Vec<Unshown>,
    /// True if something was saved that a crash of the machine may undo.
    lazy: bool,
    headway: Headway,
    /// The error of an append that failed or was cut off, if one was: the log may hold it or not.
    broken: Option<JournalError>,
}

/// Records that belong together, of one thread.
pub(crate) struct Batch<'a> {
    /// They are removed from the list.
    pub(crate) records: &'a mut Vec<Record>,
    pub(crate) flush: Option<Flush>,
    /// The callers that wait until these records are durable.
    pub(crate) notes: Vec<oneshot::Sender<()>>,
    pub(crate) author: Arc<dyn Author>,
}

/// A numbered batch that was not emitted.
struct Unshown {
    author: Arc<dyn Author>,
    stamped: Vec<Arc<Stamped>>,
    notes: Vec<oneshot::Sender<()>>,
    /// True if it must be saved before it is emitted.
    lasts: bool,
}

/// The author of the records of a batch: called before they are appended, and again afterwards.
pub(crate) trait Author: Send + Sync {
    /// Returns the stamp of the records, called while no one else writes; `None` if they come too late.
    fn stamp(&self) -> Option<BatchStamp<'_>>;

    /// Receives the records, in the order of the log, and the last saved one, if all before it are saved.
    fn on_append(&self, stamped: &[Arc<Stamped>], saved: Option<Seq>);
}

/// The stamp of the records of a batch, with their durability.
pub(crate) struct BatchStamp<'a> {
    pub(crate) at_ms: u64,
    pub(crate) thread: &'a ThreadId,
    pub(crate) durability: Durability,
}

/// A share in a log: while one exists, appends are finished even if their caller is dropped.
pub(crate) struct Share {
    shared: Arc<WriterShared>,
}

/// The log while one task uses it, returned when this is dropped.
struct Lease {
    shared: Arc<WriterShared>,
    log: Option<Box<dyn Log>>,
    /// True during an append: if the lease is dropped then, it is unknown whether the log contains the records.
    appends: bool,
}

impl Writer {
    /// The writer of an owned log.
    pub(crate) fn new(log: Box<dyn Log>, name: LogId, root: ThreadId) -> Self {
        let seq = log.head().seq;
        let state = State {
            log: Some(log),
            leased: false,
            seq,
            saved: seq,
            unsaved: Vec::new(),
            unshown: Vec::new(),
            lazy: false,
            headway: Headway::default(),
            broken: None,
        };
        let shared = WriterShared {
            name,
            root,
            state: Mutex::new(state),
            free: Notify::new(),
            newest: Arc::new(AtomicU64::new(seq.0)),
            sharers: AtomicUsize::new(0),
            awaited: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The log's name.
    pub(crate) fn name(&self) -> &LogId {
        &self.shared.name
    }

    /// The last emitted record.
    pub(crate) fn newest(&self) -> &Arc<AtomicU64> {
        &self.shared.newest
    }

    /// Sets whether a waiter must be notified when the run has ended, so that the log stays queued.
    pub(crate) fn set_awaited(&self, awaited: bool) {
        self.shared.awaited.store(awaited, Ordering::Relaxed);
    }

    /// Another agent writes to the log until the share is dropped.
    pub(crate) fn share(&self) -> Share {
        self.shared.sharers.fetch_add(1, Ordering::AcqRel);
        Share {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Numbers records, stores and publishes them, in one order over all threads; adds them to the list `into`.
    ///
    /// While another thread saves, records that need not be durable wait to be emitted after it; `save` waits too.
    ///
    /// Cancel: while the log is shared, the append still completes; otherwise the log is unusable afterwards.
    pub(crate) async fn commit(
        &self,
        batch: Batch<'_>,
        into: &mut Vec<Arc<Stamped>>,
    ) -> Result<(), Error> {
        let flush = self.shared.state().number(batch, into)?;
        match flush {
            Some(flush) => self.save(flush).await.map(drop),
            None => Ok(()),
        }
    }

    /// Appends the pending records as one group; returns the last record of the log then.
    ///
    /// Cancel: like [`commit`](Self::commit).
    pub(crate) async fn save(&self, flush: Flush) -> Result<Seq, Error> {
        let upto = self.shared.state().seq;
        loop {
            if let Some(saved) = self.shared.state().holds(upto, flush)? {
                return Ok(saved);
            }
            let lease = self.lease().await?;
            // Another thread may have saved these records in the meantime.
            let records = match &mut *self.shared.state() {
                state if state.holds(upto, flush)?.is_some() => continue,
                state => mem::take(&mut state.unsaved),
            };
            if self.is_shared() {
                finish(lease.append(records, flush)).await?
            } else {
                lease.append(records, flush).await?
            }
        }
    }

    /// Reports to the journal that the run waits; a lost report is harmless: the run is checked again.
    pub(crate) async fn parks(&self, work: Work) -> Result<(), JournalError> {
        let Ok(mut lease) = self.lease().await else {
            return Ok(());
        };
        match &mut lease.log {
            Some(log) => {
                log.mark(work);
                log.append(&[], Flush::Lazy).await.map(drop)
            }
            None => Ok(()),
        }
    }

    /// Lets the journal forget posts, if all that came of them is saved.
    pub(crate) async fn mark_consumed(&self, upto: PostNo) -> Result<(), JournalError> {
        let Ok(mut lease) = self.lease().await else {
            return Ok(());
        };
        let saved = self.shared.state().is_saved();
        match &mut lease.log {
            Some(log) if saved => log.mark_consumed(upto).await,
            _ => Ok(()),
        }
    }

    /// The newest record, and the minimum number of records for a new fold, if everything is in a log that stores
    /// folds.
    pub(crate) async fn keeps(&self) -> Option<(Seq, u64)> {
        let lease = self.lease().await.ok()?;
        let state = self.shared.state();
        let every = lease.log.as_ref().filter(|_| state.is_saved())?.keeps()?;
        Some((state.seq, every))
    }

    /// Keeps a fold of all that is in the log.
    pub(crate) async fn keep(&self, folded: Folded) -> Result<(), JournalError> {
        let Ok(mut lease) = self.lease().await else {
            return Ok(());
        };
        match &mut lease.log {
            Some(log) => log.keep(folded).await,
            None => Ok(()),
        }
    }

    /// Saves everything and returns the log; later writers are fenced.
    pub(crate) async fn take_log(&self) -> Result<Box<dyn Log>, Error> {
        self.save(Flush::Now).await?;
        self.lease()
            .await?
            .log
            .take()
            .ok_or_else(log_released_error)
    }

    /// Waits until the log is free, and leases it.
    async fn lease(&self) -> Result<Lease, Error> {
        loop {
            if let Some(lease) = self.take_lease()? {
                return Ok(lease);
            }
            let mut free = pin!(self.shared.free.notified());
            free.as_mut().enable();
            match self.take_lease()? {
                Some(lease) => return Ok(lease),
                None => free.await,
            }
        }
    }

    fn take_lease(&self) -> Result<Option<Lease>, Error> {
        let mut state = self.shared.state();
        if state.leased {
            return Ok(None);
        }
        let log = Some(state.log.take().ok_or_else(log_released_error)?);
        state.leased = true;
        Ok(Some(Lease {
            shared: Arc::clone(&self.shared),
            log,
            appends: false,
        }))
    }

    /// True if numbered records were not emitted: they follow a save which has not ended.
    pub(crate) fn is_behind(&self) -> bool {
        !self.shared.state().unshown.is_empty()
    }

    fn is_shared(&self) -> bool {
        self.shared.sharers.load(Ordering::Acquire) > 0
    }
}

impl WriterShared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_saved(&self) -> bool {
        self.unsaved.is_empty() && self.broken.is_none()
    }

    /// Returns the newest record of the log if it contains those up to this one.
    ///
    /// # Errors
    /// If they can never be saved.
    fn holds(&self, upto: Seq, flush: Flush) -> Result<Option<Seq>, Error> {
        if self.saved >= upto && !(self.lazy && flush == Flush::Now) {
            return Ok(Some(self.saved));
        }
        self.broken
            .clone()
            .map_or(Ok(None), |error| Err(error.into()))
    }

    /// Numbers the records of a batch; returns how they must be saved, if they must be before they are emitted.
    fn number(
        &mut self,
        batch: Batch<'_>,
        into: &mut Vec<Arc<Stamped>>,
    ) -> Result<Option<Flush>, Error> {
        let Batch {
            records,
            flush,
            notes,
            author,
        } = batch;
        let Some(BatchStamp {
            at_ms,
            thread,
            durability,
        }) = author.stamp()
        else {
            return Err(fence_error("the call that opened the agent has ended"));
        };
        for record in records.drain(..) {
            self.seq.0 += 1;
            let stamped = Arc::new(Stamped::new(self.seq, at_ms, thread.clone(), record));
            self.unsaved.push(Arc::clone(&stamped));
            into.push(stamped);
        }
        let most = if durability == Durability::OnExit {
            MAX_UNSAVED_TO_END
        } else {
            MAX_UNSAVED
        };
        let many = (self.unsaved.len() >= most).then_some(Flush::Lazy);
        let flush = flush.and_then(|flush| durability.flush_for(flush)).or(many);
        if flush.is_none() && !self.leased && self.unshown.is_empty() {
            tell(&*author, into, notes, None);
        } else {
            self.unshown.push(Unshown {
                author,
                stamped: into.clone(),
                notes,
                lasts: flush.is_some(),
            });
        }
        Ok(flush)
    }

    /// Emits all emittable records, in the order of the log.
    fn show(&mut self) {
        let is_held =
            |it: &Unshown| it.lasts && it.stamped.last().is_some_and(|last| last.seq > self.saved);
        let held = self
            .unshown
            .iter()
            .position(is_held)
            .unwrap_or(self.unshown.len());
        for Unshown {
            author,
            stamped,
            notes,
            ..
        } in self.unshown.drain(..held)
        {
            let saved = stamped
                .last()
                .map(|last| last.seq)
                .filter(|seq| *seq <= self.saved);
            tell(&*author, &stamped, notes, saved);
        }
    }
}

impl Lease {
    /// Appends records that were taken out of the state.
    async fn append(mut self, records: Vec<Arc<Stamped>>, flush: Flush) -> Result<(), Error> {
        let Some(log) = &mut self.log else {
            return Err(log_released_error());
        };
        if let Some(work) = Work::after(&records, &self.shared.root) {
            let stays_due = work == Work::Idle && self.shared.awaited.load(Ordering::Relaxed);
            log.mark(if stays_due { Work::Open } else { work });
        }
        if self.shared.state().headway.comes_with(&records) {
            log.mark_progress();
        }
        self.appends = true;
        let appended = log.append(&records, flush).await;
        self.appends = false;
        let mut state = self.shared.state();
        if let Err(error) = appended {
            state.broken = Some(error.clone());
            // Waiters for one of their records learn that it is lost.
            state.unshown.clear();
            return Err(error.into());
        }
        state.saved = records.last().map_or(state.saved, |last| last.seq);
        state.lazy = flush == Flush::Lazy;
        if state.unsaved.is_empty() {
            // The next records find their room again.
            state.unsaved = records;
            state.unsaved.clear();
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        (state.log, state.leased) = (self.log.take(), false);
        if self.appends {
            let why = "nothing can be appended: an append before this one was cut off";
            state.broken = Some(JournalError::new(JournalErrorKind::Fenced, why));
            state.unshown.clear();
        }
        state.show();
        drop(state);
        self.shared.free.notify_waiters();
    }
}

fn tell(
    author: &dyn Author,
    stamped: &[Arc<Stamped>],
    notes: Vec<oneshot::Sender<()>>,
    saved: Option<Seq>,
) {
    for done in notes {
        // The caller may have been cancelled since; its note is in the log all the same.
        let _ = done.send(());
    }
    author.on_append(stamped, saved);
}

/// Finishes the work even if its caller is dropped: usually immediately, otherwise on a separate task.
async fn finish<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let mut work = Box::pin(work);
    match futures_util::poll!(work.as_mut()) {
        Poll::Ready(done) => done,
        Poll::Pending => tokio::spawn(work)
            .await
            .unwrap_or_else(|_| Err(fence_error("the append was lost"))),
    }
}

#[cold]
fn log_released_error() -> Error {
    fence_error("the log was given back")
}

#[cold]
fn fence_error(why: &str) -> Error {
    JournalError::new(
        JournalErrorKind::Fenced,
        format!("nothing can be appended: {why}"),
    )
    .into()
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shared.sharers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::Head;
    use async_trait::async_trait;
    use futures_util::{join, poll};

    use super::*;

    /// A log that keeps the numbers of each group, and whose appends wait for a word.
    #[derive(Debug, Default, Clone)]
    struct Slow {
        groups: Arc<Mutex<Vec<Vec<u64>>>>,
        go: Arc<Notify>,
        fails: Arc<AtomicBool>,
    }

    #[async_trait]
    impl Log for Slow {
        fn head(&self) -> Head {
            Head::default()
        }

        async fn append(&mut self, batch: &[Arc<Stamped>], _: Flush) -> Result<Head, JournalError> {
            self.go.notified().await;
            if self.fails.load(Ordering::SeqCst) {
                return Err(JournalError::new(JournalErrorKind::Io, "the disk is full"));
            }
            self.groups
                .lock()
                .expect("no panic")
                .push(batch.iter().map(|stamped| stamped.seq.0).collect());
            Ok(Head::default())
        }
    }

    /// An author that notes what it is shown.
    struct Noting(ThreadId, Arc<Mutex<Vec<u64>>>);

    impl Author for Noting {
        fn stamp(&self) -> Option<BatchStamp<'_>> {
            Some(BatchStamp {
                at_ms: 0,
                thread: &self.0,
                durability: Durability::default(),
            })
        }

        fn on_append(&self, stamped: &[Arc<Stamped>], _: Option<Seq>) {
            self.1
                .lock()
                .expect("no panic")
                .extend(stamped.iter().map(|stamped| stamped.seq.0));
        }
    }

    async fn commit(
        writer: &Writer,
        shown: &Arc<Mutex<Vec<u64>>>,
        flush: Option<Flush>,
    ) -> Result<(), Error> {
        let author = Arc::new(Noting("t".into(), Arc::clone(shown)));
        let records = &mut vec![Record::Withdrawn { item: 0 }];
        writer
            .commit(
                Batch {
                    records,
                    flush,
                    notes: Vec::new(),
                    author,
                },
                &mut Vec::new(),
            )
            .await
    }

    #[tokio::test]
    async fn records_of_others_are_saved_as_one_group_and_shown_in_order_while_one_saves() {
        let (log, shown) = (Slow::default(), Arc::default());
        let writer = Writer::new(Box::new(log.clone()), "log".into(), "t".into());
        let _share = writer.share();
        let now = Some(Flush::Now);
        let [mut first, mut second, mut lazy, mut last] =
            [now, now, None, now].map(|flush| Box::pin(commit(&writer, &shown, flush)));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        assert!(poll!(&mut lazy).is_ready() && poll!(&mut last).is_pending());
        assert!(writer.is_behind() && shown.lock().expect("no panic").is_empty());
        log.go.notify_one();
        first.await.expect("it is saved");
        log.go.notify_one();
        let (second, last) = join!(second, last);
        second.and(last).expect("they are saved");
        assert_eq!(
            *log.groups.lock().expect("no panic"),
            [vec![1], vec![2, 3, 4]]
        );
        assert_eq!(*shown.lock().expect("no panic"), [1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn nothing_is_saved_after_an_append_that_failed() {
        let (log, shown) = (Slow::default(), Arc::default());
        let writer = Writer::new(Box::new(log.clone()), "log".into(), "t".into());
        log.fails.store(true, Ordering::SeqCst);
        log.go.notify_one();
        commit(&writer, &shown, Some(Flush::Now))
            .await
            .expect_err("the disk is full");
        log.fails.store(false, Ordering::SeqCst);
        commit(&writer, &shown, Some(Flush::Now))
            .await
            .expect_err("the log may hold it or not");
        assert!(shown.lock().expect("no panic").is_empty() && !writer.shared.state().is_saved());
    }
}
