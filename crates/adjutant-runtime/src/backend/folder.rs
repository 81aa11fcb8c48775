//! The directory of all agents of a backend: creating, finding and deleting them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::World;
use dashmap::DashMap;
use uuid::Uuid;

use super::{
    Instance, Loaded,
    life::{Begin, Life, Starter, blocking},
    member::InstanceHandle,
};
use crate::{
    error::{Error, ErrorKind},
    files::{self, Sync, storage},
    home::Home,
    manifest::Resolved,
    status::{Reason, Status},
    workspace::{self, AgentFile, Lock, StatusFile, Workspace},
};

/// The prefix of a directory's name while its agent is being created.
const CREATING: &str = ".creating-";
/// The prefix of a directory's name once its agent was removed.
const REMOVED: &str = ".removed-";
/// The maximum length of an agent's name.
const MAX_NAME: usize = 64;

/// The agents of one directory.
pub(super) struct Folder {
    root: PathBuf,
    starter: Arc<dyn Starter>,
    world: Arc<dyn World>,
    members: DashMap<Uuid, Arc<InstanceHandle>>,
}

/// An agent that was found.
struct FoundAgent {
    workspace: Workspace,
    agent: AgentFile,
    status: StatusFile,
    is_hosted: bool,
}

impl Folder {
    pub(super) fn new(root: PathBuf, starter: Arc<dyn Starter>, world: Arc<dyn World>) -> Self {
        // A host has another working directory, in which a relative path would have a different meaning.
        let root = std::path::absolute(&root).unwrap_or(root);
        Self {
            root,
            starter,
            world,
            members: DashMap::new(),
        }
    }

    pub(super) async fn create(
        &self,
        id: Uuid,
        resolved: Resolved,
    ) -> Result<Arc<dyn Instance>, Error> {
        let name = Arc::clone(&resolved.manifest.name);
        check_name(&name)?;
        let agent = AgentFile {
            id,
            created_ms: self.world.now_ms(),
            resolved: Arc::new(resolved),
        };
        let status = written(Status::Created, agent.created_ms);
        let workspace = Workspace::at(self.root.join(id.to_string()));
        let (root, at, file, first) = (
            self.root.clone(),
            workspace.clone(),
            agent.clone(),
            status.clone(),
        );
        blocking(move || write_down(&root, &at, &file, &first)).await?;
        let member = self.member(workspace, &agent, status);
        Ok(member)
    }

    pub(super) async fn load(&self) -> Result<Loaded, Error> {
        let known: Vec<Uuid> = self.members.iter().map(|member| *member.key()).collect();
        let (root, starter) = (self.root.clone(), Arc::clone(&self.starter));
        let (found, problems) = blocking(move || find(&root, &known, &*starter)).await?;
        let mut begun = Vec::new();
        for FoundAgent {
            workspace,
            agent,
            status,
            is_hosted,
        } in found
        {
            let member = self.member(workspace, &agent, status);
            if is_hosted {
                begun.push(
                    member
                        .0
                        .begin(Begin::Adopt)
                        .map(|current| (Arc::clone(&member), current)),
                );
            }
        }
        let mut loaded = Loaded {
            problems,
            ..Loaded::default()
        };
        for begun in begun {
            match begun {
                Err(error) => loaded.problems.push(error),
                Ok((member, mut current)) => {
                    let mut watch = member.0.tracker.subscribe();
                    tokio::select! {
                        biased;
                        _ready = watch.wait_for(Status::is_up) => {}
                        ended = current.ended() => loaded.problems.extend(ended.err()),
                    }
                }
            }
        }
        loaded.instances = self.instances();
        Ok(loaded)
    }

    pub(super) async fn destroy(&self) -> Result<(), Error> {
        let loaded = self.load().await?;
        let mut problems = loaded.problems;
        let removals = loaded
            .instances
            .into_iter()
            .map(|instance| tokio::spawn(async move { instance.remove().await }));
        for removal in removals.collect::<Vec<_>>() {
            match removal.await {
                Ok(removed) => problems.extend(removed.err()),
                Err(error) => problems.push(Error::new(
                    ErrorKind::Crashed,
                    format!("a removal broke off: {error}"),
                )),
            }
        }
        problems.into_iter().next().map_or(Ok(()), Err)
    }

    fn member(
        &self,
        workspace: Workspace,
        agent: &AgentFile,
        status: StatusFile,
    ) -> Arc<InstanceHandle> {
        let agent = (agent.id, Arc::clone(&agent.resolved));
        let with = (Arc::clone(&self.starter), Arc::clone(&self.world));
        let make = || {
            Arc::new(InstanceHandle(Life::new(
                workspace,
                agent.clone(),
                with,
                status,
            )))
        };
        Arc::clone(&self.members.entry(agent.0).or_insert_with(make))
    }

    /// Returns the known agents without removed ones, sorted by name.
    fn instances(&self) -> Vec<Arc<dyn Instance>> {
        self.members
            .retain(|_, member| member.0.tracker.get() != Status::Removed);
        let mut found: Vec<Arc<InstanceHandle>> = self
            .members
            .iter()
            .map(|member| Arc::clone(&member))
            .collect();
        found.sort_by_key(|member| (Arc::clone(member.0.name()), member.0.id));
        found
            .into_iter()
            .map(|member| member as Arc<dyn Instance>)
            .collect()
    }
}

/// Deletes the directory of an agent. It is renamed first, so that it is either complete or gone. Blocks.
pub(super) fn bury(workspace: &Workspace) -> Result<(), Error> {
    let root = workspace.root();
    let (Some(folder), Some(name)) = (root.parent(), root.file_name()) else {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("{} is no folder of an agent", root.display()),
        ));
    };
    let tombstone = folder.join(format!("{REMOVED}{}", name.display()));
    if fs::symlink_metadata(root).is_ok() {
        // A directory with the same id that could not be deleted before.
        files::remove_folder(&tombstone)?;
        fs::rename(root, &tombstone).map_err(|error| storage("delete", root, error))?;
        files::sync_folder(folder)?;
    }
    files::remove_folder(&tombstone)
}

fn written(status: Status, at_ms: u64) -> StatusFile {
    StatusFile {
        status,
        at_ms,
        address: None,
        former_address: None,
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!(
        "expected a name of letters, digits, _ and -, at most {MAX_NAME}, found: {}",
        name.escape_debug()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Creates an agent in a temporary directory, and renames that; names are checked under a lock.
fn write_down(
    root: &Path,
    workspace: &Workspace,
    agent: &AgentFile,
    status: &StatusFile,
) -> Result<(), Error> {
    Home::at(root).make()?;
    let _names = Lock::wait(&root.join("names.lock"))?;
    let exists = |what: String| Err(Error::new(ErrorKind::Exists, what));
    if fs::symlink_metadata(workspace.root()).is_ok() {
        return exists(format!("there is an agent {} already", agent.id));
    }
    let name = &agent.resolved.manifest.name;
    for (_, other) in folders(root)? {
        let Ok(other) = other.agent() else { continue };
        if other.resolved.manifest.name == *name {
            return exists(format!(
                "there is an agent called {name} already: {}",
                other.id
            ));
        }
    }
    let creating = Workspace::at(root.join(format!("{CREATING}{}", agent.id)));
    files::remove_folder(creating.root())?;
    let write = || {
        files::make_folder(creating.root())?;
        files::write_json(&creating.file("agent.json"), agent, Sync::Disk)?;
        files::write_json(&creating.file("status.json"), status, Sync::Disk)?;
        fs::rename(creating.root(), workspace.root())
            .map_err(|error| storage("make", workspace.root(), error))?;
        files::sync_folder(root)
    };
    write().inspect_err(|_| drop(files::remove_folder(creating.root())))
}

/// Returns the directories of agents.
fn folders(root: &Path) -> Result<Vec<(Uuid, Workspace)>, Error> {
    let entries = fs::read_dir(root).map_err(|error| storage("read", root, error))?;
    let folder = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let id = Uuid::try_parse(&name)
            .ok()
            .filter(|id| id.to_string() == name)?;
        entry
            .file_type()
            .ok()?
            .is_dir()
            .then(|| (id, Workspace::at(entry.path())))
    };
    let mut found: Vec<_> = entries.flatten().filter_map(folder).collect();
    found.sort_by_key(|(id, _)| *id);
    Ok(found)
}

/// Finds unknown agents, and cleans up interrupted operations.
fn find(
    root: &Path,
    known: &[Uuid],
    starter: &dyn Starter,
) -> Result<(Vec<FoundAgent>, Vec<Error>), Error> {
    if !root.exists() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    {
        // No agent is created in the meantime.
        let _names = Lock::wait(&root.join("names.lock"))?;
        for entry in fs::read_dir(root)
            .map_err(|error| storage("read", root, error))?
            .flatten()
        {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(CREATING) || name.starts_with(REMOVED) {
                problems.extend(files::remove_folder(&entry.path()).err());
            }
        }
    }
    for (id, workspace) in folders(root)? {
        if known.contains(&id) {
            continue;
        }
        match look_at(id, workspace, starter) {
            Ok(Some(one)) => found.push(one),
            Ok(None) => {}
            Err(error) => {
                let message = format!("the agent {id}: {error}");
                problems.push(Error::new(error.kind(), message).with_source(error));
            }
        }
    }
    Ok((found, problems))
}

/// Returns the state of an agent that no process followed; `None` if its removal was finished.
fn look_at(
    id: Uuid,
    workspace: Workspace,
    starter: &dyn Starter,
) -> Result<Option<FoundAgent>, Error> {
    let agent = workspace.agent()?;
    if agent.id != id {
        return Err(Error::new(
            ErrorKind::Storage,
            format!("its agent.json tells of another one: {}", agent.id),
        ));
    }
    // This lock is held while another process prepares, starts or removes the agent; its holder will record the
    // outcome.
    let _life = Lock::take(&workspace.file("life.lock"))?;
    let fresh = if workspace.is_prepared() {
        Status::Stopped
    } else {
        Status::Created
    };
    let status = match workspace.status() {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::Missing => {
            written(fresh.clone(), agent.created_ms)
        }
        Err(error) => return Err(error),
    };
    if status.status == Status::Removing {
        starter.clean_up(&workspace);
        return bury(&workspace).map(|()| None);
    }
    let was_up = matches!(
        status.status,
        Status::Starting | Status::Ready | Status::Working
    );
    // On a full disk, the stored status may be older than the last start.
    let is_untold =
        || matches!(workspace.last_start(), Ok(Some(_))) && workspace.last_end().is_none();
    if (was_up || is_untold()) && !workspace.is_hosted()? {
        starter.clean_up(&workspace);
    }
    // An agent that has just started is still running, because it holds its lock.
    if workspace.is_hosted()? {
        let status = StatusFile {
            status: Status::Starting,
            ..status
        };
        return Ok(Some(FoundAgent {
            workspace,
            agent,
            status,
            is_hosted: true,
        }));
    }
    let now = match &status.status {
        Status::Starting | Status::Ready | Status::Working => ended_alone(&workspace),
        Status::Preparing => fresh,
        other => other.clone(),
    };
    workspace::clear(&workspace)?;
    let changed = now != status.status;
    let status = StatusFile {
        status: now,
        ..status
    };
    if changed
        && let Err(error) = files::write_json(&workspace.file("status.json"), &status, Sync::Disk)
    {
        // The next call has the same result. On a full disk, it must be possible to remove an agent.
        tracing::warn!(agent = %id, %error, "the status of the agent was not written");
    }
    Ok(Some(FoundAgent {
        workspace,
        agent,
        status,
        is_hosted: false,
    }))
}

/// Returns the final status of an agent that no process followed: the recorded one, or a crash.
fn ended_alone(workspace: &Workspace) -> Status {
    let told = workspace.last_end();
    told.unwrap_or_else(|| {
        Status::failed(
            Reason::Crashed,
            "its process ended while nobody followed it",
        )
    })
}
