//! The folder of a drill: its manifests, its agents, and the operator that is killed.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use adjutant::{
    agent::Pause,
    runtime::{Entry, Goal, Home, host::HostFile, http::Client},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use uuid::Uuid;

/// How long an operator that was asked to end may take.
const END_WITHIN: Duration = Duration::from_secs(60);
/// How long a command may take: it waits for 90 s for an operator.
const COMMAND_WITHIN: Duration = Duration::from_secs(120);
/// What the tool of an agent does: a line for each call, with the folder it runs in and the revision of its manifest.
const SCRIPT: &str = "echo \"$PWD $0 $1\" >> MARKS; sleep 0.05; echo \"did $1\"";

/// The folder of a drill.
#[derive(Debug)]
pub(super) struct Field {
    program: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) home: Home,
}

/// An operator; it is killed when it is dropped.
#[derive(Debug)]
pub(super) struct Operator(Child);

/// What a command came to.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) is_done: bool,
    pub(super) text: String,
}

/// A line that a call wrote.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) id: Uuid,
    pub(super) revision: String,
    pub(super) text: String,
}

impl Field {
    /// Lays a manifest down for each agent.
    pub(super) fn new(program: &Path, directory: &Path, agents: usize) -> Result<Self, String> {
        fs::create_dir_all(directory).map_err(told)?;
        let home = Home::at(directory.join(".adjutant/run"));
        let field = Self {
            program: program.to_owned(),
            directory: directory.to_owned(),
            home,
        };
        (0..agents)
            .try_for_each(|number| field.lay(number, 0))
            .map(|()| field)
    }

    /// Lays a revision of the manifest of an agent down, at once: somebody may read it meanwhile.
    pub(super) fn lay(&self, number: usize, revision: u32) -> Result<(), String> {
        let script =
            Value::from(SCRIPT.replace("MARKS", &self.directory.join("marks").to_string_lossy()));
        let on_restart = ["resume", "cancel", "ask"][number % 3];
        let text = format!(
            "name: agent-{number}\nmodel: offline/planner\ninstructions: You are number {number}, revised {revision} times.\n\
             on_restart: {on_restart}\ntools: [run]\nprocess_tools:\n  - name: run\n    description: Runs a command.\n    \
             binary: /bin/sh\n    args: [\"-c\", {script}, r{revision}, \"{{command}}\"]\n    approval: true\n    \
             parameters: {{type: object, properties: {{command: {{type: string}}}}, required: [command]}}\n    \
             sandbox: {{danger_without_any: true}}\n"
        );
        let (file, beside) = (
            self.directory.join(format!("{number:03}.agent.yaml")),
            self.directory.join("new"),
        );
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, file))
            .map_err(told)
    }

    /// Begins an operator, which has taken the folder when this returns. Where a command works by itself, it is refused, and
    /// begun again.
    pub(super) fn operate(&self) -> Result<Operator, String> {
        let until = Instant::now() + COMMAND_WITHIN;
        loop {
            let mut operator = self.begin()?;
            while self.home.holder() != Some(operator.0.id()) {
                match operator.0.try_wait().map_err(told)? {
                    None => std::thread::sleep(Duration::from_millis(5)),
                    Some(_)
                        if self.last_lines().contains("error: another operator")
                            && Instant::now() < until =>
                    {
                        break;
                    }
                    Some(status) => {
                        return Err(format!("the operator had ended by itself: {status}"));
                    }
                }
            }
            if self.home.holder() == Some(operator.0.id()) {
                return Ok(operator);
            }
        }
    }

    fn begin(&self) -> Result<Operator, String> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())
            .map_err(told)?;
        let process = self
            .program([
                OsStr::new("up"),
                self.directory.as_os_str(),
                OsStr::new("--trust"),
                OsStr::new("--json"),
            ])
            .stdout(log.try_clone().map_err(told)?)
            .stderr(log)
            .process_group(0)
            .spawn();
        process.map(Operator).map_err(told)
    }

    fn program(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .env("XDG_STATE_HOME", self.directory.join("state"))
            .stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }

    /// A command about the agents of the folder.
    ///
    /// # Errors
    /// If it does not end.
    pub(super) async fn command(&self, args: &[&str]) -> Result<Told, String> {
        self.command_in(&self.home, args).await
    }

    /// The same about those of another one.
    pub(super) async fn command_in(&self, home: &Home, args: &[&str]) -> Result<Told, String> {
        let home = ["--home".as_ref(), home.root().as_os_str()];
        let command = self.program(args.iter().map(OsStr::new).chain(home));
        let output = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(COMMAND_WITHIN, output).await;
        let output = output
            .map_err(|_| format!("a command does not end: {args:?}"))?
            .map_err(told)?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Told {
            is_done: output.status.success(),
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    /// What calls did, in any of the agents.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let text = fs::read_to_string(self.directory.join("marks")).unwrap_or_default();
        let mark = |line: &str| {
            let [folder, revision, text] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
            let id = Path::new(folder)
                .parent()?
                .file_name()?
                .to_str()?
                .parse()
                .ok()?;
            Some(Mark {
                id,
                revision: revision.to_owned(),
                text: text.to_owned(),
            })
        };
        text.lines().filter_map(mark).collect()
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
        self.home
            .entries()
            .map(|entries| entries.all)
            .map_err(|error| error.to_string())
    }

    /// Says where an agent should stand.
    pub(super) fn desire(&self, id: Uuid, goal: Goal) -> Result<(), String> {
        self.home
            .desire(id, goal)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// What the process of an agent told of itself, if there is one.
pub(super) fn host(entry: &Entry) -> Option<HostFile> {
    serde_json::from_slice(&fs::read(entry.workspace.file("host.json")).ok()?).ok()
}

/// Somebody who asks an agent, if it has a process.
pub(super) fn client(entry: &Entry) -> Option<Client> {
    let host = host(entry)?;
    Client::new(host.address, host.token).ok()
}

/// The revision of the manifest of an agent, `r7`.
pub(super) fn revision(entry: &Entry) -> Option<&str> {
    entry
        .resolved
        .manifest
        .process_tools
        .first()?
        .args
        .get(2)
        .map(AsRef::as_ref)
}

/// What the call of a pause would write.
pub(super) fn mark(pause: &Pause) -> Option<String> {
    let args: Value = serde_json::from_str(&pause.call.as_ref()?.args).ok()?;
    args["command"].as_str().map(str::to_owned)
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
        let pid = i32::try_from(self.0.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or("the operator has no process")?;
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
