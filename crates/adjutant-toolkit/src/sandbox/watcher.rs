//! One process beside this program, whose input ends when this program does, however that ends: then it ends the groups of all
//! commands that run, and what left them.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::Pid;

use super::end::CallMark;

/// Keeps a list of groups with the markers of their processes: `+ID:MARK` adds one, `-ID:MARK` removes it. At the end
/// the groups are killed, and then the processes that left them, repeatedly until there are no more: a process can
/// fork during a scan. Source: proc_pid_limits(5): the name, the soft limit.
const SCRIPT: &str = "trap '' HUP INT TERM; all=' '; while read -r line; do id=${line#?}; case \"$line$all\" in \
                      +*) all=\"$all$id \";; *\" $id \"*) all=\"${all%% $id *} ${all#* $id }\";; esac; done; \
                      for id in $all; do kill -9 \"-${id%:*}\"; done 2>/dev/null; \
                      for id in $all; do mark=${id#*:}; [ -n \"$mark\" ] || continue; \
                      for round in 1 2 3 4 5 6 7 8; do found=; for file in /proc/[0-9]*/limits; do \
                      while read -r a b c soft rest; do [ \"$a $b $c $soft\" = \"Max realtime timeout $mark\" ] || continue; \
                      of=${file%/limits}; kill -9 \"${of#/proc/}\" && found=1; done <\"$file\"; done; \
                      [ -n \"$found\" ] || break; done; done 2>/dev/null";

/// The watched groups and the process that watches them.
struct Watcher {
    input: Option<ChildStdin>,
    /// With the markers of their processes; empty without one.
    groups: BTreeMap<i32, String>,
}

static WATCHER: Mutex<Watcher> = Mutex::new(Watcher {
    input: None,
    groups: BTreeMap::new(),
});

/// A group that ends with this program; dropped, it is on its own.
#[derive(Debug)]
pub(super) struct WatchedGroup(i32);

impl WatchedGroup {
    /// Watches a group whose processes have not begun yet.
    ///
    /// # Errors
    /// If nothing can be started that watches.
    pub(super) fn new(group: Pid, mark: Option<&CallMark>) -> io::Result<Self> {
        let id = group.as_raw_nonzero().get();
        let mut watcher = lock();
        let mark = mark.map_or("", CallMark::value);
        watcher.groups.insert(id, mark.to_owned());
        let watched = Self(id);
        if watcher.tell(&format!("+{id}:{mark}\n")).is_ok() {
            return Ok(watched);
        }
        // It does not exist yet, or was killed.
        let begun = watcher.begin();
        drop(watcher);
        begun.map(|()| watched)
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        let mut watcher = lock();
        let mark = watcher.groups.remove(&self.0).unwrap_or_default();
        // A watcher that has exited is started again for the next group.
        let _ = watcher.tell(&format!("-{}:{mark}\n", self.0));
    }
}

impl Watcher {
    fn tell(&mut self, line: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        input.write_all(line.as_bytes())
    }

    /// Starts the process, and sends it all groups.
    fn begin(&mut self) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "adjutant-watcher"])
            .env_clear()
            .current_dir("/")
            .process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.input = child.stdin.take();
        let all: String = self
            .groups
            .iter()
            .map(|(id, mark)| format!("+{id}:{mark}\n"))
            .collect();
        self.tell(&all)
    }
}

fn lock() -> MutexGuard<'static, Watcher> {
    WATCHER.lock().unwrap_or_else(PoisonError::into_inner)
}
