//! An agent: shared configuration and one session.

mod child;
mod delegate;
mod factory;
mod log;
mod queue;
mod run_builder;
mod setters;
mod typed;
mod working;

use std::{fmt, sync::Arc};

use adjutant_core::{CancelBy, Journal, Limits, LogId, MemoryJournal, Owner};
use adjutant_llm::{Entry, Model, World};
use adjutant_tool::Identity;

use crate::{session::Session, setup::Setup, snapshot::Snapshot};

pub use delegate::agent_tool;
pub use factory::{AgentFactory, MemberRun, OpenedAgent};
pub use log::AgentLog;
pub use queue::AgentQueue;
pub use run_builder::RunBuilder;
pub use typed::{OutputRun, OutputStep, OutputStream, TypedResult};
pub use working::WorkingAgent;

/// An agent: shared configuration and one session; cheap to clone, and clones share the session.
///
/// A second run continues the conversation. Setters change this handle, not clones that were made before.
#[derive(Clone)]
pub struct Agent {
    setup: Arc<Setup>,
    limits: Limits,
    /// Without one, a session stays in memory as long as it has a handle.
    journal: Option<Arc<dyn Journal>>,
    session: Arc<Session>,
    /// True if the session was chosen explicitly, so that it has the same id in another journal.
    is_chosen: bool,
}

impl Agent {
    /// An agent with this model, without tools and instructions, in a new session that lives in memory.
    pub fn new(model: impl Model + 'static) -> Self {
        let mut setup = Setup::new(model);
        let (id, journal) = (new_id(&*setup.world), Arc::new(MemoryJournal::default()));
        Arc::make_mut(&mut setup.who).agent_id = Arc::clone(&id);
        Self {
            setup: Arc::new(setup),
            limits: Limits::default(),
            journal: None,
            session: Arc::new(Session::new(LogId(id), journal)),
            is_chosen: false,
        }
    }

    /// Sets clock, ids and chance; unless a session was chosen, a new one begins with an id of that world.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        let agent = self.with(|setup| setup.world(world));
        if agent.is_chosen {
            agent
        } else {
            agent.new_session()
        }
    }

    /// Sets the storage of sessions, in memory by default: a chosen session is the one with its id there, otherwise a
    /// new one begins.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal + 'static) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(journal);
        self.journal = Some(Arc::clone(&journal));
        if !self.is_chosen {
            return self.new_session();
        }
        Self {
            session: Arc::new(self.session.with_journal(journal)),
            ..self
        }
    }

    /// The same agent in a new, empty session.
    #[must_use]
    pub fn new_session(&self) -> Self {
        let id = new_id(&*self.setup.world);
        let mut setup = Setup::clone(&self.setup);
        Arc::make_mut(&mut setup.who).agent_id = Arc::clone(&id);
        let (limits, journal) = (self.limits.clone(), self.journal.clone());
        let session = Arc::new(Session::new(LogId(id), self.journal_of_session()));
        Self {
            setup: Arc::new(setup),
            limits,
            journal,
            session,
            is_chosen: false,
        }
    }

    /// The same agent in a new session that begins with these entries.
    ///
    /// An [`OpenTurn`](adjutant_llm::OpenTurn) becomes an entry with its open calls marked as not run.
    #[must_use]
    pub fn start_from(&self, entries: Vec<Entry>) -> Self {
        let agent = self.new_session();
        let (id, journal) = (
            agent.session.id().clone(),
            Arc::clone(agent.session.journal()),
        );
        Self {
            session: Arc::new(Session::new(id, journal).with_entries(entries)),
            is_chosen: true,
            ..agent
        }
    }

    /// The same agent in the session of that log; what its journal holds is read when the first run begins.
    #[must_use]
    pub fn session(&self, log: LogId) -> Self {
        let session = Arc::new(Session::new(log, self.journal_of_session()));
        Self {
            session,
            is_chosen: true,
            ..self.clone()
        }
    }

    /// Returns the same agent in the same session, with a takeover of its log from any other owner: another process,
    /// or another agent here.
    ///
    /// The previous owner is fenced: its writes are rejected from now on.
    #[must_use]
    pub fn take_over(&self) -> Self {
        self.with_owner(Owner {
            takes_over: true,
            ..Owner::default()
        })
    }

    /// Returns the same agent in the same session, with this owner of its log: a current owner with the same id is
    /// fenced.
    #[must_use]
    pub fn with_owner(&self, owner: Owner) -> Self {
        let session = Session::new(
            self.session.id().clone(),
            Arc::clone(self.session.journal()),
        )
        .with_owner(owner);
        Self {
            session: Arc::new(session),
            is_chosen: true,
            ..self.clone()
        }
    }

    /// The same agent in the session of another one, whose conversation it continues with its own configuration.
    ///
    /// Only one of them runs at a time, and each sees the messages of the other.
    #[must_use]
    pub fn in_session_of(&self, other: &Agent) -> Self {
        let (session, journal) = (Arc::clone(&other.session), other.journal.clone());
        Self {
            session,
            journal,
            is_chosen: other.is_chosen,
            ..self.clone()
        }
    }

    /// The log of the session.
    pub fn session_id(&self) -> &LogId {
        self.session.id()
    }

    /// Returns the identity of the agent.
    pub fn identity(&self) -> &Identity {
        &self.setup.who
    }

    /// Cancels the run of the session, even if other clients read its events. Returns true if a run existed.
    #[must_use]
    pub fn abort(&self) -> bool {
        let live = self.session.live();
        live.inspect(|stopper| stopper.stop(CancelBy::User))
            .is_some()
    }

    /// True if the session has a running run, or one whose turn is still being closed.
    pub fn is_running(&self) -> bool {
        self.session.live().is_some()
    }

    /// Returns the state of the agent at this moment, also while it runs on another task.
    ///
    /// A session of a journal without a started run is reported as empty: it is read when the first run begins.
    pub fn snapshot(&self) -> Snapshot {
        self.session.view().snapshot(&self.setup)
    }

    fn journal_of_session(&self) -> Arc<dyn Journal> {
        self.journal
            .clone()
            .unwrap_or_else(|| Arc::new(MemoryJournal::default()))
    }

    fn with(mut self, change: impl FnOnce(Setup) -> Setup) -> Self {
        self.setup = Arc::new(change(Arc::unwrap_or_clone(self.setup)));
        self
    }
}

/// An id that no session had before, as 32 hexadecimal digits.
fn new_id(world: &dyn World) -> Arc<str> {
    let id = world.id();
    let digit =
        |at: u32| char::from_digit((id >> (124 - 4 * at)) as u32 & 15, 16).unwrap_or('0') as u8;
    let digits: [u8; 32] = std::array::from_fn(|at| digit(at as u32));
    std::str::from_utf8(&digits).unwrap_or_default().into()
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("setup", &self.setup)
            .field("session", self.session.id())
            .finish_non_exhaustive()
    }
}
