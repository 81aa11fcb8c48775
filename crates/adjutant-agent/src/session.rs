//! One session: its log, the fold of it, and its current users.

mod after;
mod before;
mod child;
mod describe;
mod drive_setup;
mod end;
mod entries;
mod fold;
mod folded;
mod instruct;
mod live;
mod mail;
mod open;
mod perform;

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use adjutant_llm::{Entry, Transcript};
use adjutant_tool::{Cancel, Identity};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::coop::unconstrained,
};

pub(crate) use entries::append;
pub(crate) use open::look;
pub(crate) use perform::perform;

use fold::Fold;

use crate::{
    begin::Begin, inbox::Stopper, listener::Listeners, queue::Queues, scope::SessionWriter,
    setup::Setup, snapshot::SessionView,
};
use adjutant_core::{
    Error, Events, Journal, JournalErrorKind, LogId, Owner, Pause, PostNo, Run, Seq,
};

/// One session; shared by the clones of an agent.
#[derive(Debug)]
pub(crate) struct Session {
    id: LogId,
    journal: Arc<dyn Journal>,
    /// Made when the log is first owned: agents that never run are many.
    owner: OnceLock<Owner>,
    /// True if the owner was chosen explicitly.
    is_owner_chosen: bool,
    core: Arc<AsyncMutex<Core>>,
    leaving: AtomicBool,
    history: Mutex<Transcript>,
    pauses: Mutex<Vec<Arc<Pause>>>,
    queues: Arc<Queues>,
    /// The entries that the conversation begins with, if its log is empty.
    seed: Vec<Entry>,
    live: Mutex<Weak<Stopper>>,
    /// The error that prevented the last drive from saving its emitted records.
    lost: Mutex<Option<Error>>,
    listeners: Arc<Listeners>,
    seen: Arc<SessionView>,
}

/// The parts of a session that only one run at a time may hold.
#[derive(Debug, Default)]
pub(crate) struct Core {
    run: Run,
    log: Option<SessionWriter>,
    /// True if the log was read, and no drive has started since.
    is_reopened: bool,
    /// The facts of earlier drives that the events of a drive need.
    events: Option<Events>,
    /// The newest post that the journal need not keep.
    forgotten: PostNo,
    /// The newest record of the fold stored next to the log.
    kept: Seq,
}

/// The parts that a drive starts with.
pub(crate) struct Start {
    pub(crate) setup: Arc<Setup>,
    pub(crate) session: Arc<Session>,
    pub(crate) begin: Begin,
    pub(crate) cancel: Option<Cancel>,
}

/// The right to run in a session: at once, or when a run that was left behind has closed its turn.
pub(crate) enum Claim {
    Now(OwnedMutexGuard<Core>),
    Soon(Pin<Box<dyn Future<Output = OwnedMutexGuard<Core>> + Send>>),
}

impl Session {
    pub(crate) fn new(id: LogId, journal: Arc<dyn Journal>) -> Self {
        Self {
            id,
            journal,
            owner: OnceLock::new(),
            is_owner_chosen: false,
            core: Arc::default(),
            leaving: AtomicBool::new(false),
            history: Mutex::default(),
            pauses: Mutex::default(),
            queues: Arc::default(),
            seed: Vec::new(),
            live: Mutex::default(),
            lost: Mutex::default(),
            listeners: Arc::default(),
            seen: Arc::default(),
        }
    }

    pub(crate) fn id(&self) -> &LogId {
        &self.id
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The session, with this owner of its log.
    pub(crate) fn with_owner(mut self, owner: Owner) -> Self {
        (self.owner, self.is_owner_chosen) = (owner.into(), true);
        self
    }

    /// The session of the same id in another journal.
    pub(crate) fn with_journal(&self, journal: Arc<dyn Journal>) -> Self {
        let mut session = Self::new(self.id.clone(), journal);
        if self.is_owner_chosen {
            session = session.with_owner(self.owner().clone());
        }
        session.with_entries(self.seed.clone())
    }

    fn owner(&self) -> &Owner {
        self.owner.get_or_init(Owner::default)
    }

    /// Returns the listeners, which receive everything that happens in the session.
    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// Returns the view of the session that can be seen while it runs.
    pub(crate) fn view(&self) -> &Arc<SessionView> {
        &self.seen
    }

    /// Claims the session.
    ///
    /// # Errors
    /// `Busy` if a run has it that was not left behind.
    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        // The caller replaces the run that left; the next caller finds the session busy.
        let left = self.leaving.swap(false, Ordering::AcqRel);
        match Arc::clone(&self.core).try_lock_owned() {
            Ok(core) => Ok(Claim::Now(core)),
            Err(_) if left => Ok(Claim::queue(Arc::clone(&self.core))),
            Err(_) => Err(Error::Busy),
        }
    }

    /// The run that has the session was left behind: it only closes its turn.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Returns the complete conversation of the session, as of the last run that ended.
    pub(crate) fn history(&self) -> Transcript {
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the fold of the current log, also while a run is running; nothing is acquired or written.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold.
    pub(crate) async fn look(&self, who: &Arc<Identity>) -> Result<Run, Error> {
        if let Ok(core) = self.core.try_lock()
            && core.log.is_some()
        {
            return Ok(core.run.clone());
        }
        match Fold::load(self, who, Seq(u64::MAX), None).await {
            Ok(fold) => Ok(fold.run),
            // A session that never ran has no log yet.
            Err(error) if is_missing(&error) => Ok(Run::default()),
            Err(error) => Err(error),
        }
    }

    /// True if a run has not ended, in the part of the log that was read.
    pub(crate) fn has_open_run(&self) -> bool {
        self.core.try_lock().map_or(true, |core| core.run.is_open())
    }

    /// Returns the pauses that the session waits for, as of the newest drive that ended.
    pub(crate) fn pauses(&self) -> Vec<Arc<Pause>> {
        self.pauses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn show_pauses(&self, run: &Run) {
        *self.pauses.lock().unwrap_or_else(PoisonError::into_inner) =
            run.pauses().cloned().collect();
    }

    fn show(&self, history: &Transcript) {
        *self.history.lock().unwrap_or_else(PoisonError::into_inner) = history.clone();
    }
}

impl Claim {
    /// Takes a place in the queue immediately: before later callers.
    fn queue(core: Arc<AsyncMutex<Core>>) -> Self {
        // Also when its task has no time left now.
        let mut soon = Box::pin(unconstrained(core.lock_owned()));
        match soon.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(core) => Claim::Now(core),
            Poll::Pending => Claim::Soon(soon),
        }
    }

    async fn take(self) -> OwnedMutexGuard<Core> {
        match self {
            Claim::Now(core) => core,
            Claim::Soon(core) => core.await,
        }
    }
}

fn is_missing(error: &Error) -> bool {
    error
        .journal_error()
        .is_some_and(|error| error.kind == JournalErrorKind::Missing)
}

impl Drop for Session {
    fn drop(&mut self) {
        self.listeners.close();
    }
}
