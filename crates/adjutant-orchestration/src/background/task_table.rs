//! The tasks of all agents in the background, bounded: nothing that was not read is ever dropped.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use adjutant_agent::{Agent, Journal, LogId};
use adjutant_llm::ThreadId;
use tokio::sync::watch;

use super::{
    BackgroundOptions, TaskSnapshot, TaskState,
    task::{BackgroundTask, NewTask, Stopper},
};
use crate::{Error, ErrorKind};

/// The largest number of ids that an error names.
const MAX_NAMED: usize = 10;

/// The tasks of all agents.
pub(super) struct TaskTable {
    options: BackgroundOptions,
    tasks: Mutex<ByAgent>,
    changed: watch::Sender<u64>,
    journal: OnceLock<Arc<dyn Journal>>,
    /// Agents that tools launch, by name.
    tools: Mutex<BTreeMap<Arc<str>, Agent>>,
}

/// By session and thread of the agent that launched them, in the order of their launch.
type ByAgent = BTreeMap<(LogId, ThreadId), Vec<Arc<BackgroundTask>>>;

impl TaskTable {
    pub(super) fn new(options: BackgroundOptions) -> Self {
        let (tasks, tools) = (Mutex::default(), Mutex::default());
        Self {
            options,
            tasks,
            changed: watch::Sender::new(0),
            journal: OnceLock::new(),
            tools,
        }
    }

    pub(super) fn options(&self) -> &BackgroundOptions {
        &self.options
    }

    /// Sets the journal in which kept tasks are kept; the first one stays.
    pub(super) fn keep_in(&self, journal: Arc<dyn Journal>) {
        // The first journal is documented to stay.
        let _ = self.journal.set(journal);
    }

    pub(super) fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.journal.get().cloned()
    }

    /// Knows an agent that a tool launches.
    pub(super) fn know(&self, name: &Arc<str>, agent: &Agent) {
        self.tools().insert(Arc::clone(name), agent.clone());
    }

    /// An agent that a tool launches.
    pub(super) fn find_agent(&self, name: &str) -> Option<Agent> {
        self.tools().get(name).cloned()
    }

    fn tools(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Agent>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a task of an earlier program; `None` if it is known by now.
    pub(super) fn adopt(&self, new: NewTask) -> Option<Arc<BackgroundTask>> {
        let task = Arc::new(BackgroundTask::new(new));
        let mut all = self.all();
        let tasks = all
            .entry((task.session.clone(), task.by.clone()))
            .or_default();
        if tasks.iter().any(|known| known.thread == task.thread) {
            return None;
        }
        insert(tasks, &task);
        drop(all);
        self.tell();
        Some(task)
    }

    /// The task of this thread, if it is known.
    pub(super) fn find(
        &self,
        session: &LogId,
        by: &ThreadId,
        thread: &ThreadId,
    ) -> Option<Arc<BackgroundTask>> {
        self.tasks_for(session, by)
            .into_iter()
            .find(|task| task.thread == *thread)
    }

    /// Lists a new task as running, if there is room for one more.
    pub(super) fn list(&self, new: NewTask) -> Result<Arc<BackgroundTask>, Error> {
        let mut all = self.all();
        let tasks = all
            .entry((new.session.clone(), new.by.clone()))
            .or_default();
        // The same call was entered again.
        tasks.retain(|task| task.thread != new.thread);
        let running = tasks.iter().filter(|task| !task.state().is_ended()).count();
        if running >= self.options.max_running {
            let message =
                format!("{running} tasks run already: wait for one with get_task, or stop one");
            return Err(Error::new(ErrorKind::Full, message));
        }
        let unread: Vec<_> = tasks
            .iter()
            .filter(|task| is_unread(task))
            .map(|task| &*task.id)
            .collect();
        if unread.len() >= self.options.max_unread {
            let named = unread
                .iter()
                .take(MAX_NAMED)
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            let message = format!(
                "{} results wait to be read: read them with get_task first, {named} for example",
                unread.len()
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        let task = Arc::new(BackgroundTask::new(new));
        insert(tasks, &task);
        prune(tasks, self.options.max_read);
        drop(all);
        self.tell();
        Ok(task)
    }

    /// Takes a task off the list that was not launched after all.
    pub(super) fn unlist(&self, task: &BackgroundTask) {
        let mut all = self.all();
        let key = (task.session.clone(), task.by.clone());
        if let Some(tasks) = all.get_mut(&key) {
            tasks.retain(|other| other.thread != task.thread);
            if tasks.is_empty() {
                all.remove(&key);
            }
        }
        drop(all);
        self.tell();
    }

    /// The tasks of one agent, in the order of their launch.
    pub(super) fn tasks_for(&self, session: &LogId, by: &ThreadId) -> Vec<Arc<BackgroundTask>> {
        self.all()
            .get(&(session.clone(), by.clone()))
            .cloned()
            .unwrap_or_default()
    }

    /// The task of one agent by its id.
    pub(super) fn get(
        &self,
        session: &LogId,
        by: &ThreadId,
        id: &str,
    ) -> Result<Arc<BackgroundTask>, Error> {
        let tasks = self.tasks_for(session, by);
        tasks
            .into_iter()
            .find(|task| &*task.id == id)
            .ok_or_else(|| {
                let id = crate::text::cut_with_ellipsis(id, 100);
                Error::new(
                    ErrorKind::Missing,
                    format!("no task {id:?}: list_tasks tells which there are"),
                )
            })
    }

    pub(super) fn snapshot(&self) -> Vec<TaskSnapshot> {
        self.all()
            .values()
            .flatten()
            .map(|task| task.snapshot())
            .collect()
    }

    pub(super) fn stop(&self, task: &TaskSnapshot) -> bool {
        self.get(&task.session, &task.by, &task.id)
            .is_ok_and(|task| task.stop(Stopper::Application))
    }

    pub(super) fn forget(&self, session: &LogId) {
        self.all().retain(|(log, _), tasks| {
            if log == session {
                tasks.retain(|task| !task.state().is_ended());
            }
            !tasks.is_empty()
        });
        self.tell();
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Something about a task has changed.
    pub(super) fn tell(&self) {
        self.changed
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    fn all(&self) -> MutexGuard<'_, ByAgent> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a task has a result that the agent which launched it does not know.
fn is_unread(task: &Arc<BackgroundTask>) -> bool {
    task.state().is_ended() && !task.is_read()
}

/// Puts a task where it belongs in the order of launches.
fn insert(tasks: &mut Vec<Arc<BackgroundTask>>, task: &Arc<BackgroundTask>) {
    let at = tasks.partition_point(|other| other.number < task.number);
    tasks.insert(at, Arc::clone(task));
}

/// Drops the oldest read tasks beyond the limit.
fn prune(tasks: &mut Vec<Arc<BackgroundTask>>, max_read: usize) {
    let is_over = |task: &Arc<BackgroundTask>| task.state() != TaskState::Running && task.is_read();
    let mut over = tasks
        .iter()
        .filter(|task| is_over(task))
        .count()
        .saturating_sub(max_read);
    tasks.retain(|task| {
        let goes = over > 0 && is_over(task);
        over -= usize::from(goes);
        !goes
    });
}

impl fmt::Debug for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: usize = self.all().values().map(Vec::len).sum();
        f.debug_struct("TaskTable")
            .field("options", &self.options)
            .field("tasks", &known)
            .finish_non_exhaustive()
    }
}
