//! The folder of a drill: its manifests, its agents, and the operator that is killed.

use std::{
    fs::{self, OpenOptions},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use adjutant::runtime::{Entry, Home, host::HostFile};
use rustix::process::{Pid, Signal, kill_process};

/// How long an operator that was asked to end may take.
const END_WITHIN: Duration = Duration::from_secs(60);

/// The folder of a drill.
#[derive(Debug)]
pub(super) struct Field {
    program: PathBuf,
    directory: PathBuf,
    pub(super) home: Home,
}

/// An operator; it is killed when it is dropped.
#[derive(Debug)]
pub(super) struct Operator(Child);

impl Field {
    /// Lays a manifest down for each agent.
    pub(super) fn new(program: &Path, directory: &Path, agents: usize) -> Result<Self, String> {
        fs::create_dir_all(directory).map_err(told)?;
        for number in 0..agents {
            let text =
                format!("name: agent-{number}\nmodel: offline/planner\ninstructions: You are number {number}.\n");
            fs::write(directory.join(format!("{number:03}.agent.yaml")), text).map_err(told)?;
        }
        let home = Home::at(directory.join(".adjutant/run"));
        Ok(Self { program: program.to_owned(), directory: directory.to_owned(), home })
    }

    /// Begins an operator.
    pub(super) fn operate(&self) -> Result<Operator, String> {
        let log = OpenOptions::new().create(true).append(true).open(self.log()).map_err(told)?;
        let process = Command::new(&self.program)
            .arg("up")
            .arg(&self.directory)
            .arg("--json")
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .process_group(0)
            .spawn();
        process.map(Operator).map_err(told)
    }

    /// What the operators wrote.
    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("up.log")
    }

    /// The last lines that the operators wrote.
    pub(super) fn last_lines(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// The agents.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, String> {
        self.home.entries().map(|entries| entries.all).map_err(|error| error.to_string())
    }
}

/// What the process of an agent told of itself, if there is one.
pub(super) fn host(entry: &Entry) -> Option<HostFile> {
    serde_json::from_slice(&fs::read(entry.workspace.file("host.json")).ok()?).ok()
}

impl Operator {
    /// Kills it.
    pub(super) fn kill(mut self) -> Result<(), String> {
        self.0.kill().map_err(told)?;
        let status = self.0.wait().map_err(told)?;
        match status.signal() {
            Some(9) => Ok(()),
            _ => Err(format!("the operator had ended by itself: {status}")),
        }
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn end(mut self) -> Result<(), String> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).ok_or("the operator has no process")?;
        kill_process(pid, Signal::TERM).map_err(|error| error.to_string())?;
        let until = Instant::now() + END_WITHIN;
        loop {
            match self.0.try_wait().map_err(told)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the operator did not end well: {status}")),
                None if Instant::now() > until => return Err("the operator did not end".to_owned()),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn told(error: std::io::Error) -> String {
    format!("the drill cannot go on: {error}")
}
