//! Background tasks: agents that work while the agent that launched them continues, and that report to it when they
//! have ended.

mod ear;
mod follow;
mod gone;
mod hold;
mod kept;
mod launch;
mod revive;
mod snapshot;
mod task;
mod task_table;
mod tools;

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{Agent, Journal, points::AfterTurn};
use adjutant_tool::{ErasedTool, Toolbox};

pub use snapshot::{TaskSnapshot, TaskWatch};
use task_table::TaskTable;

use crate::{Error, child_run::TaskState};

/// The default number of tasks of one agent that run at a time.
const DEFAULT_MAX_RUNNING: usize = 8;
/// The default number of unread results of one agent.
const DEFAULT_MAX_UNREAD: usize = 32;
/// The default number of read results that are kept.
const DEFAULT_MAX_READ: usize = 32;

/// Lets an agent launch others that work in the background; cheap to clone, and clones know the same tasks.
///
/// Each session has its own tasks. They belong to the run that launched them and end with it; their results stay
/// until they are read. When a run is resumed in another program, its active tasks continue, and its agent is
/// notified of them before its next request. When a task has ended, its agent gets a message after the current turn,
/// unless it has read the result by then. Tasks have the events of subagents, plus `background.launched` and
/// `background.ended` of the application.
#[derive(Debug, Clone)]
pub struct Background {
    table: Arc<TaskTable>,
    agents: Arc<BTreeMap<Arc<str>, Launchable>>,
}

/// The options of tasks in the background.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackgroundOptions {
    /// The largest number of tasks of one agent that run at a time; 8 by default.
    pub max_running: usize,
    /// The largest number of results of one agent that wait to be read; 32 by default. With more, nothing is launched.
    pub max_unread: usize,
    /// The largest number of results that are kept after they were read, to be read again; 32 by default.
    pub max_read: usize,
    /// The fate of tasks when the run would end.
    pub at_end: AtEnd,
}

/// The fate of running tasks when the run of their agent would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AtEnd {
    /// They are cancelled with it, except for the kept ones.
    #[default]
    Cancel,
    /// The run waits for them, and the agent gets their results.
    ///
    /// A run that ends for another reason than an answer (a limit, a stop request, a tool that ends it) does not
    /// wait.
    Wait,
}

/// An agent that can be launched.
#[derive(Debug, Clone)]
struct Launchable {
    description: Arc<str>,
    agent: Agent,
}

impl Default for BackgroundOptions {
    fn default() -> Self {
        Self {
            max_running: DEFAULT_MAX_RUNNING,
            max_unread: DEFAULT_MAX_UNREAD,
            max_read: DEFAULT_MAX_READ,
            at_end: AtEnd::default(),
        }
    }
}

impl BackgroundOptions {
    /// Eight tasks at a time, which end with their run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many tasks of one agent may run at a time.
    #[must_use]
    pub fn max_running(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }

    /// Sets how many results of one agent may wait to be read.
    #[must_use]
    pub fn max_unread(mut self, results: usize) -> Self {
        self.max_unread = results;
        self
    }

    /// Sets how many results that were read are kept.
    #[must_use]
    pub fn max_read(mut self, results: usize) -> Self {
        self.max_read = results;
        self
    }

    /// Sets what becomes of tasks when the run would end.
    #[must_use]
    pub fn at_end(mut self, at_end: AtEnd) -> Self {
        self.at_end = at_end;
        self
    }
}

impl Background {
    /// Tasks in the background, without agents that could do them.
    pub fn new(options: BackgroundOptions) -> Self {
        Self {
            table: Arc::new(TaskTable::new(options)),
            agents: Arc::default(),
        }
    }

    /// Adds an agent that is called and can be launched by this name; the newest one of a name counts.
    ///
    /// Of the agent, only the configuration counts: every task is a new conversation.
    #[must_use]
    pub fn agent(
        mut self,
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        agent: Agent,
    ) -> Self {
        let name = name.into();
        let agent = agent.identify(|who| {
            who.path = name.as_ref().into();
            who.name = Arc::clone(&name);
        });
        let launchable = Launchable {
            description: description.into(),
            agent,
        };
        Arc::make_mut(&mut self.agents).insert(name, launchable);
        self
    }

    /// Sets the storage of tasks that outlive their run: separate logs, next to their session's.
    ///
    /// The journal must be the sessions' journal; the first one that is set stays. The model selects the kept tasks
    /// with `keep`, which is refused without a journal. A kept task is a first agent: it has its own budget, its
    /// events are not part of the run, and its end is reported to the next run if none is active.
    #[must_use]
    pub fn keep_in(self, journal: impl Journal + 'static) -> Self {
        self.table.keep_in(Arc::new(journal));
        self
    }

    /// Finds the kept tasks of a session that an earlier program launched, and returns the tasks of the session.
    ///
    /// Interrupted tasks continue, and the next run of the session gets their results; tasks with a read result are
    /// omitted. The session must not be active in another program.
    ///
    /// # Errors
    /// `Invalid` without a journal, `Agent` if the session or a task cannot be opened, `Store` if a log cannot be read.
    pub async fn resume_kept(&self, session: &Agent) -> Result<Vec<TaskSnapshot>, Error> {
        kept::resume(self, session).await
    }

    /// Gives an agent the tools `launch_task`, `get_task`, `list_tasks` and `stop_task`, and what belongs to them.
    ///
    /// They are found again when a run is resumed in another program, if the agent is known there by the same name.
    /// Without agents that can be launched, there is no `launch_task`; see [`tool`](Background::tool).
    #[must_use]
    pub fn install(&self, agent: Agent) -> Agent {
        let agent = agent
            .toolbox(self.toolbox())
            .effect(gone::Gone::new(&self.table));
        let agent = agent.middleware(revive::Revive(self.clone()));
        match self.table.options().at_end {
            AtEnd::Cancel => agent,
            AtEnd::Wait => agent.on::<AfterTurn>(hold::Hold::new(&self.table)),
        }
    }

    /// Only the tools: a run then does not wait for tasks, and tasks are lost with the program without notice.
    pub fn toolbox(&self) -> impl Toolbox + 'static + use<> {
        tools::toolbox(self)
    }

    /// An agent as a tool that the model can call in the background: it then returns the task's id instead of its
    /// answer.
    ///
    /// Otherwise it is like [`agent_tool`](adjutant_agent::agent_tool).
    pub fn tool<D: Into<Arc<str>>>(
        &self,
        name: &str,
        description: D,
        agent: Agent,
    ) -> impl ErasedTool + 'static + use<D> {
        tools::agent_tool(&self.table, name, description.into(), agent)
    }

    /// The agent that is launched by a name.
    fn launchable(&self, name: &str) -> Option<Agent> {
        self.agents
            .get(name)
            .map(|known| known.agent.clone())
            .or_else(|| self.table.find_agent(name))
    }

    /// The tasks that are known, of all sessions, each session's in the order of their launch.
    pub fn snapshot(&self) -> Vec<TaskSnapshot> {
        self.table.snapshot()
    }

    /// Shows the tasks whenever something about them changes.
    pub fn watch(&self) -> TaskWatch {
        TaskWatch::new(&self.table)
    }

    /// Requests a task to stop, and returns whether it was running; its agent is notified when it has ended.
    pub fn stop(&self, task: &TaskSnapshot) -> bool {
        self.table.stop(task)
    }

    /// Drops the tasks of a session that are not running, read or not: for a session that is no longer used.
    pub fn forget(&self, session: &adjutant_agent::LogId) {
        self.table.forget(session);
    }
}
