//! What tests of the lifecycle stand on: manifests, backends of both kinds, hosts that behave as they are told.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use adjutant_runtime::{
    Backend, Instance, Resolved, Workspace,
    backend::{InProcess, InProcessOptions, Process, ProcessOptions},
};
use adjutant_testing::lifecycle_suite;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

/// The longest that a test waits for something of another process.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// What is resolved of a manifest, in JSON.
pub(super) fn resolved(manifest: Value, sources: &[&Path]) -> Resolved {
    serde_json::from_value(json!({"manifest": manifest, "sources": sources}))
        .expect("it is a manifest")
}

/// The simplest agent.
pub(super) fn clerk(name: &str) -> Resolved {
    let agent = json!({"name": name, "model": "offline/planner"});
    resolved(
        json!({"name": name, "entry_agent": name, "agents": [agent]}),
        &[],
    )
}

pub(super) fn in_process(home: &Path) -> InProcess {
    InProcess::new(home, InProcessOptions::new().build(lifecycle_suite::build))
}

/// How a host behaves.
pub(super) struct Manner {
    /// What the shell does before it becomes the host.
    pub(super) before: &'static str,
    /// What the host does, as `host.rs` knows it.
    pub(super) does: &'static str,
}

pub(super) const GOOD: Manner = Manner {
    before: "",
    does: "serve",
};

/// A folder of a test. What it started is killed with it, also when it failed.
pub(super) struct Place(TempDir);

impl Place {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mark = format!("LIFE_HOST_WORKSPACE={}/", self.path().display());
        carrying(|entry| entry.starts_with(mark.as_bytes()))
            .into_iter()
            .for_each(kill_if_there);
    }
}

/// A folder with a host program of this manner, and a folder for agents beside it.
pub(super) fn place(manner: &Manner) -> (Place, PathBuf, PathBuf) {
    let folder = Place::new();
    let (host, home) = (folder.path().join("host"), folder.path().join("home"));
    write_host(&host, manner);
    (folder, host, home)
}

/// Writes a host program: a script that becomes this very program, which then acts as a host.
pub(super) fn write_host(host: &Path, manner: &Manner) {
    let program = std::env::current_exe().expect("this program");
    let Manner { before, does } = manner;
    let script = format!(
        "#!/bin/sh\nexport LIFE_HOST_DOES='{does}' LIFE_HOST_WORKSPACE=\"$2\"\n{before}\n\
         exec '{}' --exact host::acts_as_a_host_when_started_as_one --nocapture\n",
        program.display()
    );
    // Written aside and moved: a script that another thread's child still holds open for writing cannot be executed.
    let beside = host.with_extension("new");
    fs::write(&beside, script).expect("it can be written");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o700)).expect("it can be changed");
    fs::rename(&beside, host).expect("it can be moved");
}

pub(super) fn options() -> ProcessOptions {
    ProcessOptions::new()
        .readiness(LONG)
        .grace(Duration::from_secs(10))
        .credentials(|_| None)
}

pub(super) fn process(home: &Path, host: &Path) -> Process {
    process_with(home, host, options())
}

pub(super) fn process_with(home: &Path, host: &Path, options: ProcessOptions) -> Process {
    Process::new(home, Some(host.to_owned()), options).expect("the host is named")
}

/// A backend of each kind, each with a folder of its own.
pub(super) fn both() -> Vec<(Place, PathBuf, Arc<dyn Backend>)> {
    let (folder, host, home) = place(&GOOD);
    let own = Place::new();
    let own_home = own.path().join("home");
    vec![
        (own, own_home.clone(), Arc::new(in_process(&own_home))),
        (folder, home.clone(), Arc::new(process(&home, &host))),
    ]
}

/// An agent of this name.
pub(super) async fn created(backend: &dyn Backend, name: &str) -> Arc<dyn Instance> {
    backend
        .create(Uuid::new_v4(), clerk(name))
        .await
        .expect("it is created")
}

/// Processes that carry the mark of an agent.
pub(super) fn marked(id: Uuid) -> Vec<u32> {
    let mark = format!("ADJUTANT_AGENT={id}");
    carrying(|entry| entry == mark.as_bytes())
}

/// Processes with such an entry in their environment.
fn carrying(fits: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(&fits)
    };
    let entries = fs::read_dir("/proc").expect("it is there").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(carries)
        .collect()
}

/// The process of an agent.
pub(super) fn pid(workspace: &Workspace) -> u32 {
    let host: Value =
        serde_json::from_slice(&fs::read(workspace.file("host.json")).expect("there is one"))
            .expect("JSON");
    u32::try_from(host["pid"].as_u64().expect("a number")).expect("an id")
}

pub(super) fn kill(pid: u32) {
    signal(pid).expect("it is there");
}

fn kill_if_there(pid: u32) {
    let _gone = signal(pid);
}

fn signal(pid: u32) -> rustix::io::Result<()> {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)
}

/// Waits for something that another process does.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"));
}
