//! The writer of a session's log: one order over the records of all threads, shared by their executors.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
};

use adjutant_core::{
    Durability, Error, Flush, Folded, JournalError, JournalErrorKind, Log, LogId, PostNo, Record, Seq, Stamped,
};
use adjutant_llm::ThreadId;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

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
    state: Arc<AsyncMutex<State>>,
    /// The newest record that was shown.
    newest: Arc<AtomicU64>,
    /// The number of agents under the first one that write too.
    sharers: AtomicUsize,
}

struct State {
    log: Option<Box<dyn Log>>,
    /// The number of the newest record, saved or not.
    seq: Seq,
    /// Records that need not be durable yet: saved with the next ones that must, or before an executor waits.
    unsaved: Vec<Arc<Stamped>>,
    /// True if something was saved that a crash of the machine may undo.
    lazy: bool,
    /// The error of an append that failed, if one was: the log may hold it or not.
    broken: Option<JournalError>,
    /// True if an append was cut off, or goes on.
    cut: bool,
}

/// Records that belong together, of one thread.
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) flush: Option<Flush>,
    /// The callers that wait until these records are durable.
    pub(crate) notes: Vec<oneshot::Sender<()>>,
    pub(crate) author: Arc<dyn Author>,
}

/// The author of the records of a batch: asked before they are appended, and shown them afterwards.
pub(crate) trait Author: Send + Sync {
    /// Returns the stamp of the records, asked while nobody else writes; `None` if they come too late.
    fn stamp(&self) -> Option<BatchStamp<'_>>;

    /// Takes note of the records, in the order of the log, and of the newest one that is saved, if all before it are.
    fn appended(&self, stamped: &[Arc<Stamped>], saved: Option<Seq>);
}

/// The stamp of the records of a batch, with their durability.
pub(crate) struct BatchStamp<'a> {
    pub(crate) at_ms: u64,
    pub(crate) thread: &'a ThreadId,
    pub(crate) durability: Durability,
}

/// A share in a log: while there is one, appends are finished whoever is dropped.
pub(crate) struct Share {
    shared: Arc<WriterShared>,
}

impl Writer {
    /// The writer of an owned log.
    pub(crate) fn new(log: Box<dyn Log>, name: LogId) -> Self {
        let seq = log.head().seq;
        let state = State { log: Some(log), seq, unsaved: Vec::new(), lazy: false, broken: None, cut: false };
        let shared = WriterShared {
            name,
            state: Arc::new(AsyncMutex::new(state)),
            newest: Arc::new(AtomicU64::new(seq.0)),
            sharers: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The log's name.
    pub(crate) fn name(&self) -> &LogId {
        &self.shared.name
    }

    /// The newest record that was shown.
    pub(crate) fn newest(&self) -> &Arc<AtomicU64> {
        &self.shared.newest
    }

    /// Another agent writes to the log until the share is dropped.
    pub(crate) fn share(&self) -> Share {
        self.shared.sharers.fetch_add(1, Ordering::AcqRel);
        Share { shared: Arc::clone(&self.shared) }
    }

    /// Numbers records, keeps them, and shows them, all in one order over the threads.
    ///
    /// Cancel: as long as the log is shared, the append is finished all the same; otherwise the log is of no use then.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Vec<Arc<Stamped>>, Error> {
        if !self.is_shared() {
            return self.shared.state.lock().await.commit(batch).await;
        }
        let mut state = Arc::clone(&self.shared.state).lock_owned().await;
        finish(async move { state.commit(batch).await }).await
    }

    /// Appends what is not in the log yet, as one group; gives the newest record that the log holds then.
    pub(crate) async fn save(&self, flush: Flush) -> Result<Seq, Error> {
        if !self.is_shared() {
            return self.shared.state.lock().await.save(flush).await;
        }
        let mut state = Arc::clone(&self.shared.state).lock_owned().await;
        finish(async move { state.save(flush).await }).await
    }

    /// Lets the journal forget posts, if all that came of them is saved.
    pub(crate) async fn heeded(&self, upto: PostNo) -> Result<(), JournalError> {
        let mut state = self.shared.state.lock().await;
        let saved = state.is_saved();
        match &mut state.log {
            Some(log) if saved => log.heeded(upto).await,
            _ => Ok(()),
        }
    }

    /// The newest record, and how many records are worth a fold, if everything is in a log that keeps folds.
    pub(crate) async fn keeps(&self) -> Option<(Seq, u64)> {
        let state = self.shared.state.lock().await;
        let log = state.log.as_ref().filter(|_| state.is_saved())?;
        Some((state.seq, log.keeps()?))
    }

    /// Keeps a fold of all that is in the log.
    pub(crate) async fn keep(&self, folded: Folded) -> Result<(), JournalError> {
        let mut state = self.shared.state.lock().await;
        match state.log.as_mut() {
            Some(log) => log.keep(folded).await,
            None => Ok(()),
        }
    }

    /// Saves everything and gives the log back; whoever writes later is fenced.
    pub(crate) async fn take_log(&self) -> Result<Box<dyn Log>, Error> {
        let mut state = self.shared.state.lock().await;
        state.save(Flush::Now).await?;
        state.log.take().ok_or_else(|| fenced("the log was given back"))
    }

    fn is_shared(&self) -> bool {
        self.shared.sharers.load(Ordering::Acquire) > 0
    }
}

impl State {
    fn is_saved(&self) -> bool {
        self.unsaved.is_empty() && self.broken.is_none() && !self.cut
    }

    async fn commit(&mut self, batch: Batch) -> Result<Vec<Arc<Stamped>>, Error> {
        let Batch { records, flush, notes, author } = batch;
        let Some(BatchStamp { at_ms, thread, durability }) = author.stamp() else {
            return Err(fenced("the call that opened the agent has ended"));
        };
        let first = self.seq.0 + 1;
        let stamp = |(seq, record)| Arc::new(Stamped::new(Seq(seq), at_ms, thread.clone(), record));
        let stamped: Vec<_> = (first..).zip(records).map(stamp).collect();
        self.seq.0 += stamped.len() as u64;
        self.unsaved.extend(stamped.iter().cloned());
        let flush = flush.and_then(|flush| durability.of(flush));
        let most = if durability == Durability::OnExit { MAX_UNSAVED_TO_END } else { MAX_UNSAVED };
        if flush.is_some() || self.unsaved.len() >= most {
            self.save(flush.unwrap_or(Flush::Lazy)).await?;
        }
        for done in notes {
            // The caller may have been cancelled since; its note is in the log all the same.
            let _ = done.send(());
        }
        author.appended(&stamped, self.unsaved.is_empty().then_some(self.seq));
        Ok(stamped)
    }

    async fn save(&mut self, flush: Flush) -> Result<Seq, Error> {
        if self.unsaved.is_empty() && !(self.lazy && flush == Flush::Now) {
            return Ok(self.seq);
        }
        if self.cut {
            return Err(cut_off().into());
        }
        if let Some(error) = &self.broken {
            return Err(error.clone().into());
        }
        let log = self.log.as_mut().ok_or_else(|| fenced("the log was given back"))?;
        // If this is dropped here, the log may hold the records or not.
        self.cut = true;
        self.broken = log.append(&self.unsaved, flush).await.err();
        self.cut = false;
        if let Some(error) = &self.broken {
            return Err(error.clone().into());
        }
        self.unsaved.clear();
        self.lazy = flush == Flush::Lazy;
        Ok(self.seq)
    }
}

/// Finishes the work even if whoever waits for it is dropped: mostly at once, otherwise on a task of its own.
async fn finish<T: Send + 'static>(work: impl Future<Output = Result<T, Error>> + Send + 'static) -> Result<T, Error> {
    let mut work = Box::pin(work);
    match std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        Poll::Ready(done) => done,
        Poll::Pending => tokio::spawn(work).await.unwrap_or_else(|_| Err(fenced("the append was lost"))),
    }
}

fn cut_off() -> JournalError {
    let why = "nothing can be appended: an append before this one was cut off";
    JournalError::new(JournalErrorKind::Fenced, why)
}

fn fenced(why: &str) -> Error {
    JournalError::new(JournalErrorKind::Fenced, format!("nothing can be appended: {why}")).into()
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shared.sharers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("name", &self.shared.name).finish_non_exhaustive()
    }
}
