//! The storage of a simulation: the journal in memory behind a server, where an ownership is a lease as on PostgreSQL.
//! Everything here happens in no time; what takes time, and what fails, is the way there.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    DueLog, DueWork, Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, LogInfo,
    MemoryJournal, Owner, PostNo, Stamped, Work,
};
use tokio::{
    sync::{Mutex as Turn, Notify},
    time::Instant,
};

use super::place::{Clock, Place, lock};

/// How many of those who wait for news hear of it.
const HEAR: usize = 2;

/// The storage.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) place: Arc<Place>,
    pub(crate) journal: MemoryJournal,
    pub(crate) news: Notify,
    lease: Duration,
    leases: Mutex<BTreeMap<LogId, Arc<Lease>>>,
    /// No lease ends before.
    next_end: Mutex<Instant>,
    /// Until when nothing is due, by any clock, unless something changes; 0 if something did.
    quiet_until_ms: Mutex<u64>,
    pub(crate) fenced: AtomicU64,
    /// Who wrote what, batch by batch.
    pub(crate) written: Mutex<BTreeMap<LogId, Vec<Written>>>,
}

/// A batch: its newest record, the ownership, and the machine.
pub(crate) type Written = (u64, u64, u64);

/// An ownership of a log.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) log: LogId,
    owner: Owner,
    machine: u64,
    until: Mutex<Instant>,
    /// The log; none once the lease has ended.
    held: Turn<Option<Box<dyn Log>>>,
    is_over: AtomicBool,
}

/// An ownership, and the end of the log when it began.
pub(crate) type Taken = (Arc<Lease>, Head);

impl Server {
    pub(crate) fn new(place: &Arc<Place>, lease: Duration) -> Arc<Self> {
        let clock = Clock {
            place: Arc::clone(place),
            wrong_by_ms: 0,
        };
        Arc::new(Self {
            place: Arc::clone(place),
            journal: MemoryJournal::default().world(clock),
            news: Notify::new(),
            lease,
            leases: Mutex::default(),
            next_end: Mutex::new(Instant::now()),
            quiet_until_ms: Mutex::new(0),
            fenced: AtomicU64::new(0),
            written: Mutex::default(),
        })
    }

    /// Frees the logs whose leases have ended.
    async fn end_leases(&self) {
        let now = Instant::now();
        if now < *lock(&self.next_end) {
            return;
        }
        let leases: Vec<_> = lock(&self.leases).values().cloned().collect();
        let mut next = now + self.lease;
        for lease in leases {
            let until = *lock(&lease.until);
            if until > now {
                next = next.min(until);
            } else if lease.held.lock().await.take().is_some() {
                self.changed();
            }
        }
        *lock(&self.next_end) = next;
    }

    /// All owners of now die.
    pub(crate) async fn end_all(&self) {
        let leases = std::mem::take(&mut *lock(&self.leases));
        for lease in leases.into_values() {
            lease.is_over.store(true, Ordering::Relaxed);
            lease.held.lock().await.take();
        }
        self.changed();
    }

    /// Something may be due that was not.
    fn changed(&self) {
        *lock(&self.quiet_until_ms) = 0;
    }

    /// The same, and some of those who wait hear of it.
    pub(crate) fn tell(&self) {
        self.changed();
        (0..HEAR).for_each(|_| self.news.notify_one());
    }

    fn lease(&self, log: &LogId, owner: &Owner, machine: u64, held: Box<dyn Log>) -> Taken {
        let (head, until) = (held.head(), Instant::now() + self.lease);
        let lease = Arc::new(Lease {
            log: log.clone(),
            owner: Owner {
                takes_over: false,
                ..owner.clone()
            },
            machine,
            until: Mutex::new(until),
            held: Turn::new(Some(held)),
            is_over: AtomicBool::new(false),
        });
        if let Some(before) = lock(&self.leases).insert(log.clone(), Arc::clone(&lease)) {
            before.is_over.store(true, Ordering::Relaxed);
        }
        let mut next = lock(&self.next_end);
        *next = until.min(*next);
        (lease, head)
    }

    pub(crate) async fn own(
        &self,
        log: &LogId,
        owner: &Owner,
        machine: u64,
    ) -> Result<Taken, JournalError> {
        self.end_leases().await;
        let held = self.journal.own(log, owner).await?;
        Ok(self.lease(log, owner, machine, held))
    }

    pub(crate) async fn due(
        &self,
        clock: &MemoryJournal,
        now_ms: u64,
        (owner, machine): (&Owner, u64),
        most: usize,
    ) -> Result<Vec<(LogInfo, PostNo, u16, Taken)>, JournalError> {
        self.end_leases().await;
        if now_ms <= *lock(&self.quiet_until_ms) {
            return Ok(Vec::new());
        }
        let found = clock.due(owner, most).await?;
        if found.len() < most {
            *lock(&self.quiet_until_ms) = now_ms;
        }
        let due = |DueLog {
                       info,
                       newest_post,
                       lost,
                       log,
                   }: DueLog| {
            let taken = self.lease(&info.log, owner, machine, log);
            (info, newest_post, lost, taken)
        };
        Ok(found.into_iter().map(due).collect())
    }

    /// Appends, if nobody else has taken the log since; a lease that has ended goes on if it was not.
    pub(crate) async fn append(
        &self,
        lease: &Lease,
        batch: &[Arc<Stamped>],
        (work, has_progressed): (Option<Work>, bool),
    ) -> Result<Head, JournalError> {
        self.end_leases().await;
        let append = async {
            let mut held = self.held(lease).await?;
            let log = held.as_mut().ok_or_else(|| fenced(&lease.log))?;
            work.into_iter().for_each(|work| log.mark(work));
            if has_progressed {
                log.mark_progress();
            }
            log.append(batch, Flush::Now).await
        };
        let head = append.await.inspect_err(|error| {
            self.fenced.fetch_add(
                u64::from(error.kind == JournalErrorKind::Fenced),
                Ordering::Relaxed,
            );
        })?;
        *lock(&lease.until) = Instant::now() + self.lease;
        self.changed();
        let written = (head.seq.0, head.epoch.0, lease.machine);
        lock(&self.written)
            .entry(lease.log.clone())
            .or_default()
            .push(written);
        Ok(head)
    }

    pub(crate) async fn held<'a>(
        &self,
        lease: &'a Lease,
    ) -> Result<tokio::sync::MutexGuard<'a, Option<Box<dyn Log>>>, JournalError> {
        let mut held = lease.held.lock().await;
        if held.is_none() && !lease.is_over.load(Ordering::Relaxed) {
            *held = Some(
                self.journal
                    .own(&lease.log, &lease.owner)
                    .await
                    .map_err(|_| fenced(&lease.log))?,
            );
        }
        Ok(held)
    }

    pub(crate) async fn renew(&self, lease: &Lease) {
        if !lease.is_over.load(Ordering::Relaxed) && self.held(lease).await.is_ok() {
            *lock(&lease.until) = Instant::now() + self.lease;
        }
    }

    /// The owner gives the log up.
    pub(crate) async fn leave(&self, lease: &Lease) {
        if !lease.is_over.swap(true, Ordering::Relaxed) {
            lock(&self.leases).remove(&lease.log);
            lease.held.lock().await.take();
            self.tell();
        }
    }
}

fn fenced(log: &LogId) -> JournalError {
    JournalError::for_log(JournalErrorKind::Fenced, log)
}
