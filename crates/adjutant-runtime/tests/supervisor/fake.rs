//! Agents that do as a test says, in a folder of their own.

use std::{
    collections::VecDeque,
    fs,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_llm::World;
use adjutant_runtime::{
    Backend, Changes, Error, ErrorKind, Goal, Home, Instance, Loaded, Lock, Logs, Prompter, Reason,
    Resolved, Status, StatusTracker, StatusWatch, Workspace,
    backend::LogLimits,
    supervisor::{Notice, Notices, Settings, Supervisor, SupervisorReport, Table},
};
use adjutant_tool::Cancel;
use async_trait::async_trait;
use serde_json::json;
use tokio::{sync::Notify, task::JoinHandle, time::Instant};
use uuid::Uuid;

/// What a start comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begin {
    Ready,
    Fails(Reason),
    /// It never becomes ready, until it is stopped.
    Hangs,
    /// The backend breaks.
    Panics,
}

/// What an end comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Stops,
    Fails,
    Hangs,
}

/// An agent that does as it is told.
pub(crate) struct Fake {
    id: Uuid,
    name: Arc<str>,
    workspace: Workspace,
    tracker: StatusTracker,
    begins: Mutex<VecDeque<Begin>>,
    pub(crate) end: Mutex<End>,
    /// When it was started, since the test began.
    pub(crate) starts: Mutex<Vec<Duration>>,
    pub(crate) stops: AtomicUsize,
    pub(crate) mute: AtomicUsize,
    stopped: Notify,
    began: Instant,
}

/// Some of them.
#[derive(Default)]
pub(crate) struct Fakes {
    all: Mutex<Vec<Arc<Fake>>>,
}

/// A folder of agents, and a supervisor of it.
pub(crate) struct Place {
    _folder: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) fakes: Arc<Fakes>,
    began: Instant,
}

/// A supervisor that works.
pub(crate) struct Working {
    pub(crate) notices: Notices,
    pub(crate) table: Table,
    pub(crate) end: Cancel,
    pub(crate) at_once: Cancel,
    done: JoinHandle<Result<SupervisorReport, Error>>,
}

/// Time that stands still with that of the test; chance that is always in the middle.
#[derive(Debug)]
pub(crate) struct TestWorld(Instant);

impl World for TestWorld {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000 + u64::try_from(self.0.elapsed().as_millis()).expect("tests are short")
    }

    fn id(&self) -> u128 {
        Uuid::now_v7().as_u128()
    }

    fn unit(&self) -> f64 {
        0.5
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("nobody panics while it is locked")
}

/// A manifest's resolved form, as small as it can be.
pub(crate) fn resolved(name: &str) -> Resolved {
    let agents = json!([{"name": name, "model": "offline/planner"}]);
    let manifest = json!({"name": name, "entry_agent": name, "agents": agents});
    serde_json::from_value(json!({"manifest": manifest, "sources": []}))
        .expect("it is a resolved manifest")
}

/// Writes an agent down as a backend does.
pub(crate) fn write_agent(home: &Home, id: Uuid, name: &str) {
    let workspace = home.workspace(id);
    fs::create_dir_all(workspace.root()).expect("the folder is made");
    let text = json!({"id": id, "created_ms": 1, "resolved": resolved(name)}).to_string();
    fs::write(workspace.file("agent.json"), text).expect("it is written");
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = Home::at(folder.path().join("run"));
        Self {
            _folder: folder,
            home,
            fakes: Arc::default(),
            began: Instant::now(),
        }
    }

    /// An agent whose starts come to this, one after the other; after them, it becomes ready.
    pub(crate) fn agent(&self, name: &str, begins: impl IntoIterator<Item = Begin>) -> Arc<Fake> {
        let id = Uuid::now_v7();
        write_agent(&self.home, id, name);
        let fake = Arc::new(Fake {
            id,
            name: name.into(),
            workspace: self.home.workspace(id),
            tracker: StatusTracker::new(Status::Created),
            begins: Mutex::new(begins.into_iter().collect()),
            end: Mutex::new(End::Stops),
            starts: Mutex::default(),
            stops: AtomicUsize::new(0),
            mute: AtomicUsize::new(0),
            stopped: Notify::new(),
            began: self.began,
        });
        lock(&self.fakes.all).push(Arc::clone(&fake));
        fake
    }

    /// The same, and it should run.
    pub(crate) fn running(&self, name: &str, begins: impl IntoIterator<Item = Begin>) -> Arc<Fake> {
        let fake = self.agent(name, begins);
        self.home
            .desire(fake.id, Goal::Running)
            .expect("it is written");
        fake
    }

    /// A supervisor begins.
    pub(crate) fn supervise(&self, settings: Settings) -> Working {
        let operator = self.home.operate().expect("nobody else works on it");
        let backend = Arc::clone(&self.fakes) as Arc<dyn Backend>;
        let supervisor = Supervisor::new(backend, operator, settings).world(TestWorld(self.began));
        let (end, at_once) = (Cancel::new(), Cancel::new());
        let (notices, table) = (supervisor.notices(), supervisor.table());
        let done = tokio::spawn(supervisor.run(end.clone(), at_once.clone()));
        Working {
            notices,
            table,
            end,
            at_once,
            done,
        }
    }
}

impl Working {
    /// Waits for a notice.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Notice) -> bool) -> Notice {
        loop {
            let notice = self.notices.next().await.expect("the supervisor works");
            if fits(&notice) {
                return notice;
            }
        }
    }

    /// Waits until an agent stands so.
    pub(crate) async fn until_status(&mut self, name: &str, status: &Status) {
        self.until(
            |notice| matches!(notice, Notice::Status { agent, status: it, .. } if **agent == *name && it == status),
        )
        .await;
    }

    pub(crate) async fn report(self) -> SupervisorReport {
        self.end.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(self) -> SupervisorReport {
        self.done
            .await
            .expect("it does not panic")
            .expect("it works")
    }
}

impl Fake {
    /// Its process ends, and nobody had asked it to.
    pub(crate) fn crash(&self) {
        self.tracker
            .set(Status::failed(Reason::Crashed, "killed"))
            .expect("it runs");
    }

    pub(crate) fn seconds(&self) -> Vec<u64> {
        lock(&self.starts).iter().map(Duration::as_secs).collect()
    }

    pub(crate) fn force(&self, status: Status) {
        self.tracker.set(status).expect("it may become so");
    }

    fn error(kind: ErrorKind) -> Error {
        // Errors are made by the crate alone: one of the right kind is provoked.
        let home = Home::at(std::env::temp_dir().join(Uuid::now_v7().to_string()));
        let missing = home
            .desire(Uuid::nil(), Goal::Running)
            .expect_err("there is none");
        assert_eq!(missing.kind(), ErrorKind::Missing, "{kind:?}");
        missing
    }
}

#[async_trait]
impl Instance for Fake {
    fn id(&self) -> Uuid {
        self.id
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn resolved(&self) -> Arc<Resolved> {
        Arc::new(resolved(&self.name))
    }

    fn workspace(&self) -> Workspace {
        self.workspace.clone()
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }

    fn logs(&self) -> Logs {
        Logs::new(&self.workspace, LogLimits::default())
    }

    fn status(&self) -> Status {
        self.tracker.get()
    }

    fn watch(&self) -> StatusWatch {
        self.tracker.subscribe()
    }

    async fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn update(&self, _: Resolved) -> Result<Changes, Error> {
        Err(Self::error(ErrorKind::Invalid))
    }

    async fn run(&self) -> Result<(), Error> {
        self.start().await
    }

    async fn start(&self) -> Result<(), Error> {
        lock(&self.starts).push(self.began.elapsed());
        if self.status() == Status::Created {
            self.force(Status::Preparing);
        }
        self.force(Status::Starting);
        let begin = lock(&self.begins).pop_front().unwrap_or(Begin::Ready);
        match begin {
            Begin::Ready => {
                self.force(Status::Ready);
                Ok(())
            }
            Begin::Fails(reason) => {
                self.force(Status::failed(reason, "it broke"));
                Err(Self::error(reason.kind()))
            }
            Begin::Hangs => {
                self.stopped.notified().await;
                Err(Self::error(ErrorKind::Closed))
            }
            Begin::Panics => unreachable!("the backend breaks"),
        }
    }

    async fn stop(&self) -> Result<(), Error> {
        self.stops.fetch_add(1, Ordering::SeqCst);
        let end = *lock(&self.end);
        match end {
            End::Stops => {
                if self.status().is_active() {
                    self.force(Status::Stopped);
                }
                self.stopped.notify_waiters();
                Ok(())
            }
            End::Fails => Err(Self::error(ErrorKind::Storage)),
            End::Hangs => std::future::pending().await,
        }
    }

    async fn remove(&self) -> Result<(), Error> {
        if self.status() != Status::Removing {
            self.stop().await?;
            self.force(Status::Removing);
        }
        fs::remove_dir_all(self.workspace.root()).expect("it is deleted");
        self.force(Status::Removed);
        Ok(())
    }

    async fn prompter(&self) -> Result<Arc<dyn Prompter>, Error> {
        if self.mute.load(Ordering::SeqCst) > 0 {
            std::future::pending::<()>().await;
        }
        Err(Self::error(ErrorKind::Conflict))
    }
}

#[async_trait]
impl Backend for Fakes {
    async fn create(&self, _: Uuid, _: Resolved) -> Result<Arc<dyn Instance>, Error> {
        Err(Fake::error(ErrorKind::Invalid))
    }

    async fn load(&self) -> Result<Loaded, Error> {
        let mut loaded = Loaded::default();
        let all = lock(&self.all).clone();
        for fake in all.into_iter().filter(|it| it.status() != Status::Removed) {
            match Lock::take(&fake.workspace.file("life.lock")) {
                Ok(_) => loaded.instances.push(fake),
                Err(held) => loaded.problems.push(held),
            }
        }
        Ok(loaded)
    }

    async fn destroy(&self) -> Result<(), Error> {
        Ok(())
    }
}
