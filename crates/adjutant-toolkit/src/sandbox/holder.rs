//! The network of a session: a process that waits in a namespace, which every command of the session joins.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// The usual places of the program that joins namespaces.
const PROGRAMS: [&str; 3] = ["/usr/bin/nsenter", "/bin/nsenter", "/usr/local/bin/nsenter"];
/// Prints the number of its process, and waits until this program closes its input or ends.
const SCRIPT: &str = "echo $$; read -r _";

/// The network of a session, created when the first command needs it.
#[derive(Debug, Default)]
pub(super) struct SessionNetwork(Mutex<Option<Holder>>);

/// A process that waits in a network namespace. Dropped, it ends.
#[derive(Debug)]
struct Holder {
    child: Child,
    /// The process id that owns the namespaces.
    id: u32,
}

impl SessionNetwork {
    /// Returns the words before a command that make it join the network. `None` if it has to get a network for itself.
    pub(super) fn join(&self, bwrap: &Path) -> Option<Vec<String>> {
        let nsenter = program()?;
        let mut holder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_alive = |holder: &mut Holder| matches!(holder.child.try_wait(), Ok(None));
        if !holder.as_mut().is_some_and(is_alive) {
            *holder = Holder::start(bwrap);
        }
        let id = holder.as_ref()?.id;
        let namespace = |kind: &str| format!("--{kind}=/proc/{id}/ns/{kind}");
        Some(vec![
            nsenter.display().to_string(),
            "--preserve-credentials".to_owned(),
            namespace("user"),
            namespace("net"),
            "--".to_owned(),
        ])
    }
}

impl Holder {
    fn start(bwrap: &Path) -> Option<Self> {
        let mut command = Command::new(bwrap);
        command
            .args(["--unshare-user", "--unshare-net", "--cap-drop", "ALL"])
            .args(["--dev-bind", "/", "/", "--", "/bin/sh", "-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut line = String::new();
        let read = child
            .stdout
            .take()
            .map(|output| BufReader::new(output).read_line(&mut line));
        let id = line
            .trim()
            .parse()
            .ok()
            .filter(|_| matches!(read, Some(Ok(_))));
        let mut holder = Self { child, id: 0 };
        holder.id = id?;
        Some(holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The process ends when its input does; bubblewrap ends with it.
        self.child.stdin = None;
        let _ = self.child.wait();
    }
}

/// Returns the program that joins namespaces.
pub(super) fn program() -> Option<PathBuf> {
    PROGRAMS
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}
