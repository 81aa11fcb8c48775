//! Kills started processes: a whole group, and on Linux also processes that left it, by a marker in their environment.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use uuid::Uuid;

/// The variable that marks the processes of an agent's start.
pub(crate) const START_VARIABLE: &str = "ADJUTANT_AGENT_START";
/// The maximum number of scans, because killed processes may have started others in the meantime.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 200;
/// The maximum number of bytes of an environment or a command line.
#[cfg(target_os = "linux")]
const ENVIRONMENT: u64 = 4 << 20;

/// A variable and its value that processes inherit, by which they are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    /// The mark of all processes of an agent's start, including its host.
    pub(crate) fn start(start: Uuid) -> Self {
        Self::new(START_VARIABLE, start)
    }

    /// The mark with this id in this variable.
    pub(crate) fn new(variable: &str, id: Uuid) -> Self {
        Self(format!("{variable}={id}"))
    }
}

/// True if a process was stopped by a signal, and continues only after another one. Unknown on systems other than
/// Linux.
#[cfg(target_os = "linux")]
pub(crate) fn is_stopped(id: u32) -> bool {
    pid(id).is_some_and(|id| linux::state(id).as_deref() == Some("T"))
}

/// True if a process was stopped by a signal. Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_stopped(_: u32) -> bool {
    false
}

/// Kills every member of a group immediately. An empty group is not an error.
pub(crate) fn kill_group_now(group: u32) {
    if let Some(group) = pid(group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// True if a process is the host of this directory: by its mark or, because a host hides its memory, by its command
/// line.
///
/// Its id is not sufficient: after a reboot it can belong to any process. On systems other than Linux this cannot be
/// checked, and returns true.
#[cfg(target_os = "linux")]
pub(crate) fn is_host(id: u32, mark: &Mark, folder: &Path) -> bool {
    pid(id).is_some_and(|id| linux::has(id, mark) || linux::serves(id, folder))
}

/// True if a process may be the host of this directory. Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_host(id: u32, _: &Mark, _: &Path) -> bool {
    pid(id).is_some()
}

/// Kills every process with the mark in its environment, until there are no more, and returns their number. It never
/// kills the calling process. On systems other than Linux it finds none.
///
/// Reads `/proc` and blocks for some milliseconds.
#[cfg(target_os = "linux")]
pub(crate) fn kill_marked(mark: &Mark) -> usize {
    let mut killed = std::collections::BTreeSet::new();
    let mut empty = 0;
    for _ in 0..ROUNDS {
        let found = linux::kill_once(mark);
        empty = if found.is_empty() { empty + 1 } else { 0 };
        // One scan is not sufficient: a process may have started another one and exited during the scan.
        if empty >= if killed.is_empty() { 2 } else { 4 } {
            break;
        }
        killed.extend(found.iter().map(|id| id.as_raw_nonzero()));
        // Killed processes need a moment to disappear.
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.len()
}

/// Kills every process with the mark in its environment. Not supported on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_marked(_: &Mark) -> usize {
    0
}

/// Returns the id as the kernel's type. 0 would mean our own group and 1 all processes, so both are refused.
fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id)
        .ok()
        .filter(|id| *id > 1)
        .and_then(Pid::from_raw)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, io::Read, path::Path};

    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    use super::{ENVIRONMENT, Mark};

    /// Kills the processes that have the mark now, and returns them.
    pub(super) fn kill_once(mark: &Mark) -> Vec<Pid> {
        all()
            .filter(|id| *id != getpid() && kill(*id, mark))
            .collect()
    }

    /// Returns the state letter of a process.
    ///
    /// Source: proc_pid_stat(5): it follows the name in parentheses.
    pub(super) fn state(id: Pid) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        stat.rsplit(')')
            .next()?
            .split_ascii_whitespace()
            .next()
            .map(str::to_owned)
    }

    /// Returns all processes.
    fn all() -> impl Iterator<Item = Pid> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Pid::from_raw)
    }

    /// Kills a process with the mark. A pidfd is opened before the check, so that the id cannot be reused in between.
    fn kill(id: Pid, mark: &Mark) -> bool {
        let Ok(held) = pidfd_open(id, PidfdFlags::empty()) else {
            return false;
        };
        has(id, mark) && pidfd_send_signal(held, Signal::KILL).is_ok()
    }

    /// True if its environment contains the mark.
    pub(super) fn has(id: Pid, mark: &Mark) -> bool {
        words(id, "environ")
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark.0.as_bytes())
    }

    /// True if its command line is the command of a directory's host, with any program.
    pub(super) fn serves(id: Pid, folder: &Path) -> bool {
        let line = words(id, "cmdline");
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.windows(2).any(|pair| {
            pair == [
                b"agent-host".as_slice(),
                folder.as_os_str().as_encoded_bytes(),
            ]
        })
    }

    /// Returns the content of a file of a process, up to the maximum size.
    fn words(id: Pid, file: &str) -> Vec<u8> {
        let mut words = Vec::new();
        if let Ok(file) = File::open(format!("/proc/{}/{file}", id.as_raw_nonzero())) {
            // The part before a read error is used.
            let _ = file.take(ENVIRONMENT).read_to_end(&mut words);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// Starts a shell in its own process group, and waits for its first line of output.
    fn shell(script: &str, mark: Uuid) -> (Child, String) {
        use std::io::BufRead;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .env(START_VARIABLE, mark.to_string());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a shell is there");
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().expect("it was asked for"))
            .read_line(&mut line)
            .expect("a line");
        (child, line.trim().to_owned())
    }

    /// True if a process exists and has not exited.
    fn lives(id: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        status
            .rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with(['Z', 'X']))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_that_left_its_group_is_found_by_its_mark() {
        let mark = Uuid::new_v4();
        let (mut child, straggler) = shell("setsid sh -c 'echo $$; exec sleep 600' & wait", mark);
        kill_group_now(child.id());
        child.wait().expect("it ends");
        assert!(lives(&straggler), "it left the group");
        assert_eq!(kill_marked(&Mark::start(Uuid::new_v4())), 0, "another mark");
        assert_eq!(kill_marked(&Mark::start(mark)), 1);
        assert!(!lives(&straggler));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn host_is_known_by_its_mark_or_its_command_line_and_never_by_its_number() {
        let (mark, folder) = (Uuid::new_v4(), Path::new("/agents/one"));
        let (mut marked, _) = shell("echo up; sleep 600; :", mark);
        let told = [mark, Uuid::nil()].map(|mark| is_host(marked.id(), &Mark::start(mark), folder));
        let mut host = Command::new("/bin/sh");
        host.args(["-c", "echo up; sleep 600; :", "agent-host", "/agents/one"])
            .process_group(0);
        let mut host = host
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell is there");
        // The command line becomes readable shortly after the start.
        let mut up = [0; 3];
        std::io::Read::read_exact(&mut host.stdout.take().expect("it is piped"), &mut up)
            .expect("it says so");
        let served = ["/agents/one", "/agents"]
            .map(|at| is_host(host.id(), &Mark::start(mark), Path::new(at)));
        for child in [&mut marked, &mut host] {
            kill_group_now(child.id());
            child.wait().expect("it ends");
        }
        assert_eq!((told, served), ([true, false], [true, false]));
    }

    #[test]
    fn own_group_and_everybody_are_never_a_group() {
        assert_eq!([0, 1, u32::MAX].map(pid), [None; 3]);
    }

    #[test]
    fn marks_are_whole_entries_of_an_environment() {
        assert_eq!(
            Mark::start(Uuid::nil()).0,
            "ADJUTANT_AGENT_START=00000000-0000-0000-0000-000000000000"
        );
    }
}
