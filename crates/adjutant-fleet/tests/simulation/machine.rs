//! A machine of a simulation: its way to the storage takes time, and is cut off now and then; it may be killed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Backlog, DueLog, DueWork, Flush, Folded, Head, Journal, JournalError, JournalErrorKind, Log,
    LogId, LogInfo, LogPage, LogQuery, MemoryJournal, Owner, Post, PostNo, PostStream, Posted,
    RecordStream, Seq, SessionMeta, Stamped, Work,
};
use adjutant_llm::World;
use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::{
    place::{Clock, lock},
    server::{Lease, Server, Taken},
};

/// The longest time that a call waits for a storage that is cut off.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many calls in a thousand are lost on their way, each way.
const LOST: u64 = 20;
/// The most that one way takes, in milliseconds, at usual speed.
const WAY_MS: u64 = 6;

/// A machine; it is its journal. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Machine(Arc<MachineState>);

#[derive(Debug)]
struct MachineState {
    no: u64,
    server: Arc<Server>,
    clock: Clock,
    /// The same logs, by the clock of the machine.
    journal: MemoryJournal,
    cut_until: Mutex<Instant>,
    is_dead: AtomicBool,
    /// The ownerships that it keeps up.
    leases: Mutex<BTreeMap<usize, Arc<Lease>>>,
}

impl Machine {
    /// A machine that keeps its leases up, every so often.
    pub(crate) fn new(server: &Arc<Server>, no: u64, wrong_by_ms: i64, beat: Duration) -> Self {
        let clock = Clock {
            place: Arc::clone(&server.place),
            wrong_by_ms,
        };
        let machine = Arc::new(MachineState {
            no,
            server: Arc::clone(server),
            journal: server.journal.clone().world(clock.clone()),
            clock,
            cut_until: Mutex::new(Instant::now()),
            is_dead: AtomicBool::new(false),
            leases: Mutex::default(),
        });
        tokio::spawn(keep_up(Arc::downgrade(&machine), beat));
        Self(machine)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    /// Cuts it off from the storage for some time.
    pub(crate) fn cut(&self, time: Duration) {
        *lock(&self.0.cut_until) = Instant::now() + time;
    }

    /// From now on it does nothing that others could notice.
    pub(crate) fn kill(&self) {
        self.0.is_dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_dead.load(Ordering::Relaxed)
    }
}

impl MachineState {
    fn fails(&self) -> JournalError {
        JournalError::new(
            JournalErrorKind::Io,
            format!("machine {} does not reach the storage", self.no),
        )
    }

    /// One way between the machine and the storage.
    async fn way(&self) -> Result<(), JournalError> {
        let place = &self.server.place;
        place
            .pause(WAY_MS * place.slowness.load(Ordering::Relaxed))
            .await;
        let cut_until = *lock(&self.cut_until);
        if place.has_faults.load(Ordering::Relaxed) && cut_until > Instant::now() {
            tokio::time::sleep_until(cut_until.min(Instant::now() + PATIENCE)).await;
            return Err(self.fails());
        }
        if self.is_dead.load(Ordering::Relaxed) || place.fails(LOST) {
            Err(self.fails())
        } else {
            Ok(())
        }
    }

    /// Does something at the storage: what was done is done, also if nobody here learns of it.
    async fn call<T>(
        &self,
        work: impl Future<Output = Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        self.way().await?;
        let done = work.await;
        self.way().await?;
        done
    }
}

async fn keep_up(machine: Weak<MachineState>, beat: Duration) {
    loop {
        tokio::time::sleep(beat).await;
        let Some(machine) = machine
            .upgrade()
            .filter(|it| !it.is_dead.load(Ordering::Relaxed))
        else {
            return;
        };
        let leases: Vec<_> = lock(&machine.leases).values().cloned().collect();
        if leases.is_empty() || machine.way().await.is_err() {
            continue;
        }
        for lease in leases {
            machine.server.renew(&lease).await;
        }
    }
}

impl MachineState {
    fn log(self: &Arc<Self>, (lease, head): Taken) -> Box<dyn Log> {
        lock(&self.leases).insert(key(&lease), Arc::clone(&lease));
        Box::new(FarLog {
            machine: Arc::clone(self),
            lease,
            head,
            work: (None, false),
            is_broken: false,
        })
    }
}

fn key(lease: &Arc<Lease>) -> usize {
    Arc::as_ptr(lease).addr()
}

#[async_trait]
impl Journal for Machine {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let taken = self
            .0
            .call(self.0.server.own(log, owner, self.0.no))
            .await?;
        Ok(self.0.log(taken))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let (machine, log) = (Arc::clone(&self.0), log.clone());
        let read = async move {
            machine.way().await?;
            Ok(machine.journal.read(&log, after))
        };
        Box::pin(stream::once(read).try_flatten())
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        let posted = async {
            let posted = self.0.journal.post(log, post).await;
            self.0.server.tell();
            posted
        };
        self.0.call(posted).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        let (machine, posts) = (Arc::clone(&self.0), self.0.journal.posts(log, after)?);
        let arrives = move |posted| {
            let machine = Arc::clone(&machine);
            // It is asked for until it comes.
            async move {
                let mut posts = Vec::new();
                if let Err(error) = machine.way().await {
                    posts.push(Err(error));
                    let is_dead = || machine.is_dead.load(Ordering::Relaxed);
                    loop {
                        let arrived = machine.way().await.is_ok();
                        if arrived || is_dead() {
                            break;
                        }
                    }
                }
                posts.push(posted);
                stream::iter(posts)
            }
        };
        Some(Box::pin(posts.then(arrives).flatten()))
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        self.0.call(self.0.journal.read_posts(log, after)).await
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        self.0.call(self.0.journal.info(log)).await
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        self.0.call(self.0.journal.list(query)).await
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        self.0.call(self.0.journal.describe(log, about)).await
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        self.0.call(self.0.journal.load_fold(log)).await
    }
}

#[async_trait]
impl DueWork for Machine {
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError> {
        let it = &self.0;
        let due = it
            .call(
                it.server
                    .due(&it.journal, it.clock.now_ms(), (owner, it.no), most),
            )
            .await?;
        let arrived = |(info, newest_post, lost, taken)| DueLog {
            info,
            newest_post,
            lost,
            log: it.log(taken),
        };
        Ok(due.into_iter().map(arrived).collect())
    }

    async fn until_due(&self) {
        self.0.server.news.notified().await;
    }

    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        self.0.call(self.0.journal.pass_over(log, upto)).await
    }

    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        self.0.call(self.0.journal.set_aside(log, why)).await
    }

    async fn retry(&self, log: &LogId) -> Result<bool, JournalError> {
        let retried = async {
            let retried = self.0.journal.retry(log).await;
            self.0.server.tell();
            retried
        };
        self.0.call(retried).await
    }

    async fn backlog(&self) -> Result<Backlog, JournalError> {
        self.0.call(self.0.journal.backlog()).await
    }
}

/// A log that a machine owns.
#[derive(Debug)]
struct FarLog {
    machine: Arc<MachineState>,
    lease: Arc<Lease>,
    head: Head,
    /// What is stored with the next append: the work, and whether the run has got further.
    work: (Option<Work>, bool),
    is_broken: bool,
}

#[async_trait]
impl Log for FarLog {
    fn head(&self) -> Head {
        self.head
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], _: Flush) -> Result<Head, JournalError> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(self.machine.fails());
        }
        let done = self
            .machine
            .call(
                self.machine
                    .server
                    .append(&self.lease, batch, self.work.clone()),
            )
            .await;
        self.is_broken = done
            .as_ref()
            .is_err_and(|error| error.kind == JournalErrorKind::Io);
        let head = done?;
        (self.head, self.work) = (
            Head {
                seq: head.seq,
                ..self.head
            },
            (None, false),
        );
        Ok(self.head)
    }

    fn mark(&mut self, work: Work) {
        self.work.0 = Some(work);
    }

    fn mark_progress(&mut self) {
        self.work.1 = true;
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        let heeded = async {
            let mut held = self.machine.server.held(&self.lease).await?;
            match &mut *held {
                Some(log) => log.mark_consumed(upto).await,
                None => Err(JournalError::for_log(
                    JournalErrorKind::Fenced,
                    &self.lease.log,
                )),
            }
        };
        self.machine.call(heeded).await
    }
}

impl Drop for FarLog {
    fn drop(&mut self) {
        lock(&self.machine.leases).remove(&key(&self.lease));
        if self.machine.is_dead.load(Ordering::Relaxed) {
            return;
        }
        let (machine, lease) = (Arc::clone(&self.machine), Arc::clone(&self.lease));
        tokio::spawn(async move {
            // What does not arrive is free when the lease ends.
            if machine.way().await.is_ok() {
                machine.server.leave(&lease).await;
            }
        });
    }
}
