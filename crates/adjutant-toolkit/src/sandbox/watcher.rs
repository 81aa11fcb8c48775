//! One process beside this program, whose input ends when this program does, however that ends: then it ends the groups of all
//! commands that run.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::Pid;

/// Keeps a list of groups: `+ID` adds one, `-ID` takes it off.
const SCRIPT: &str = "trap '' HUP INT TERM; all=' '; while read -r line; do id=${line#?}; case \"$line$all\" in \
                      +*) all=\"$all$id \";; *\" $id \"*) all=\"${all%% $id *} ${all#* $id }\";; esac; done; \
                      for id in $all; do kill -9 \"-$id\"; done 2>/dev/null";

/// What is watched, and by whom.
struct Watcher {
    input: Option<ChildStdin>,
    groups: BTreeSet<i32>,
}

static WATCHER: Mutex<Watcher> = Mutex::new(Watcher { input: None, groups: BTreeSet::new() });

/// A group that ends with this program; dropped, it is on its own.
#[derive(Debug)]
pub(super) struct WatchedGroup(i32);

impl WatchedGroup {
    /// Watches a group whose processes have not begun yet.
    ///
    /// # Errors
    /// If nothing can be started that watches.
    pub(super) fn new(group: Pid) -> io::Result<Self> {
        let id = group.as_raw_nonzero().get();
        let mut watcher = lock();
        watcher.groups.insert(id);
        let watched = Self(id);
        if watcher.tell(&format!("+{id}\n")).is_ok() {
            return Ok(watched);
        }
        // There is none yet, or somebody has ended it.
        let begun = watcher.begin();
        drop(watcher);
        begun.map(|()| watched)
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        let mut watcher = lock();
        watcher.groups.remove(&self.0);
        // One that has ended is begun again for the next group.
        let _ = watcher.tell(&format!("-{}\n", self.0));
    }
}

impl Watcher {
    fn tell(&mut self, line: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        input.write_all(line.as_bytes())
    }

    /// Begins the process, and tells it of all groups.
    fn begin(&mut self) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "adjutant-watcher"]).env_clear().current_dir("/").process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.input = child.stdin.take();
        let all: String = self.groups.iter().map(|id| format!("+{id}\n")).collect();
        self.tell(&all)
    }
}

fn lock() -> MutexGuard<'static, Watcher> {
    WATCHER.lock().unwrap_or_else(PoisonError::into_inner)
}
