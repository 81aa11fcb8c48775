//! The means with which the checks of a backend are played: a folder of their own, agents, and processes by their mark.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use adjutant_runtime::{Backend, Instance, Resolved, Status};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{LifeLab, host::DOES};
use crate::suite::{PATIENCE, Verdict, equal, ok};

/// The environment of one check. Remaining processes and files are removed with it.
pub(super) struct LifeStage<'a> {
    lab: &'a dyn LifeLab,
    /// A separate folder.
    pub(super) folder: PathBuf,
    /// The folder of agents in it.
    pub(super) home: PathBuf,
}

impl<'a> LifeStage<'a> {
    pub(super) fn new(lab: &'a (dyn LifeLab + 'static)) -> Self {
        let folder = std::env::temp_dir().join(format!("life-{}", Uuid::new_v4().simple()));
        let home = folder.join("home");
        Self { lab, folder, home }
    }

    /// A backend, as the next operator has it.
    pub(super) async fn open(&self) -> Result<Arc<dyn Backend>, String> {
        ok("making a folder", fs::create_dir_all(&self.folder))?;
        Ok(self.lab.open(&self.home).await)
    }

    /// A backend, and an agent of it that does this.
    pub(super) async fn agent(
        &self,
        does: &str,
    ) -> Result<(Arc<dyn Backend>, Arc<dyn Instance>), String> {
        let backend = self.open().await?;
        let agent = create(&*backend, "clerk", does).await?;
        Ok((backend, agent))
    }

    /// The only agent that the next operator finds, without a problem.
    pub(super) async fn only(&self) -> Result<(Arc<dyn Backend>, Arc<dyn Instance>), String> {
        let backend = self.open().await?;
        let mut loaded = ok("loading", backend.load().await)?;
        let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        equal("the problems", &problems, &Vec::new())?;
        equal("the number of agents", &loaded.instances.len(), &1)?;
        Ok((backend, loaded.instances.remove(0)))
    }
}

impl Drop for LifeStage<'_> {
    fn drop(&mut self) {
        let mark = format!("HOME={}/", self.home.display());
        carrying(|entry| entry.starts_with(mark.as_bytes()))
            .into_iter()
            .for_each(signal);
        // A folder of a test that failed may stay.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The resolved form of a manifest, in JSON.
pub(super) fn parse_resolved(manifest: Value, sources: &[PathBuf]) -> Result<Resolved, String> {
    ok(
        "reading a manifest",
        serde_json::from_value(json!({"manifest": manifest, "sources": sources})),
    )
}

pub(super) fn clerk(name: &str, does: &str) -> Result<Resolved, String> {
    let agents = [json!({"name": name, "model": "offline/planner"})];
    parse_resolved(
        json!({"name": name, "entry_agent": name, "agents": agents, "labels": {DOES: does}}),
        &[],
    )
}

/// A new agent of this name that does this.
pub(super) async fn create(
    backend: &dyn Backend,
    name: &str,
    does: &str,
) -> Result<Arc<dyn Instance>, String> {
    ok(
        "creating",
        backend.create(Uuid::new_v4(), clerk(name, does)?).await,
    )
}

pub(super) async fn start(agent: &dyn Instance) -> Verdict {
    let told = agent.start().await;
    // The host's output is the best explanation.
    let log = if told.is_err() {
        agent.logs().tail(5).unwrap_or_default()
    } else {
        Vec::new()
    };
    ok("starting", told).map_err(|why| format!("{why} {log:?}"))
}

/// Waits for a status, and returns the one that was reached.
pub(super) async fn becomes(
    agent: &dyn Instance,
    what: &str,
    is: fn(&Status) -> bool,
) -> Result<Status, String> {
    let mut watch = agent.watch();
    let waited = tokio::time::timeout(PATIENCE / 2, watch.wait_for(is)).await;
    let came =
        waited.map_err(|_| format!("the agent is {} and did not become {what}", agent.status()))?;
    ok("watching", came)
}

/// Checks the status of an agent in memory and on disk.
pub(super) fn stands(agent: &dyn Instance, status: &Status) -> Verdict {
    equal("the status", &agent.status(), status)?;
    let kept = ok("reading the status", agent.workspace().status())?.status;
    equal("the status on disk", &kept, status)
}

/// Waits for something that another process does.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Verdict {
    let waited = tokio::time::timeout(PATIENCE / 2, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.map_err(|_| format!("waited in vain: {what}"))
}

/// Processes that carry the mark of an agent.
pub(super) fn find_marked(id: Uuid) -> Vec<u32> {
    let mark = format!("ADJUTANT_AGENT={id}");
    carrying(|entry| entry == mark.as_bytes())
}

/// Nothing of an agent is left.
pub(super) fn is_gone(id: Uuid) -> Verdict {
    equal("the processes that are left", &find_marked(id), &Vec::new())
}

/// Kills the host of an agent with its launcher, but not its other child processes: those have a separate group, or
/// are found by name.
pub(super) fn kill_host(id: Uuid) {
    let is_started = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
    };
    find_marked(id)
        .into_iter()
        .filter(|pid| !is_started(pid))
        .for_each(signal);
}

/// Sends the termination signal to a process group, as a shell does.
pub(super) fn ask_to_end(group: u32) {
    if let Some(group) = rustix::process::Pid::from_raw(group.cast_signed()) {
        // A process that is gone is recognized by its status.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    }
}

/// Processes with such an entry in their environment.
fn carrying(fits: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(&fits)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(carries)
        .collect()
}

fn signal(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed());
    let killed = pid.map(|pid| {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).map_err(io::Error::from)
    });
    // The process may already be gone.
    drop(killed);
}
