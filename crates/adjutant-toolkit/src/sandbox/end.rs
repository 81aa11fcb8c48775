//! The end of all processes of a call: a group, and what left it, by a mark that no process can take off.
//!
//! The mark is a limit of a kind that nobody uses, with a value of its own for each call. It is set before the command begins,
//! children inherit it, the filter of system calls refuses to change it, and everyone may read it in `/proc`.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, kill_process_group, pidfd_open, pidfd_send_signal,
    prlimit,
};

/// The most rounds in which processes are looked for: those that were killed may have started others meanwhile.
const ROUNDS: usize = 500;
/// The time in which a process that was killed is gone, mostly.
const MOMENT: Duration = Duration::from_millis(5);
/// The number of processes that are looked at one by one; beyond that, or after this time, all of the machine are looked at:
/// their numbers may have begun again.
const FEW: i32 = 4_096;
const SHORT: Duration = Duration::from_millis(500);
/// The values of marks: beyond any real limit, below infinity.
const FIRST: u64 = 1 << 60;

/// The mark of one call.
#[derive(Debug)]
pub(super) struct CallMark(String);

impl CallMark {
    /// Marks a process that has not begun yet; none where that is not possible.
    pub(super) fn set(id: Pid) -> Option<Self> {
        let value = FIRST | (RandomState::new().build_hasher().finish() & (FIRST - 1));
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        prlimit(Some(id), Resource::Rttime, limit).ok().map(|_| Self(value.to_string()))
    }

    /// Kills every process that has it, until there is none.
    pub(super) fn kill_all(&self, first: Pid, began: Instant) {
        let mut empty = 0;
        let mut killed = false;
        for _ in 0..ROUNDS {
            let found = candidates(first, began).into_iter().filter(|id| self.kill(*id)).count();
            killed |= found > 0;
            empty = if found == 0 { empty + 1 } else { 0 };
            // One look proves nothing: a process may have made another one, and gone, while its neighbours were looked at.
            if empty >= if killed { 3 } else { 2 } {
                return;
            }
        }
    }

    /// Kills a process that has it. It is held before it is looked at: so its id cannot be another's by then.
    fn kill(&self, id: Pid) -> bool {
        if id == getpid() || !self.is_on(id) {
            return false;
        }
        let Ok(held) = pidfd_open(id, PidfdFlags::empty()) else { return false };
        // One that has ended keeps its limits until somebody takes notice of its end.
        let mut ended = [PollFd::new(&held, PollFlags::IN)];
        let has_ended = poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let is_killed = !has_ended && self.is_on(id) && pidfd_send_signal(&held, Signal::KILL).is_ok();
        if is_killed {
            // A moment until it is gone, which it spares the next look.
            let _ = poll(&mut ended, Timespec::try_from(MOMENT).ok().as_ref());
        }
        is_killed
    }

    fn is_on(&self, id: Pid) -> bool {
        limit(&id.as_raw_nonzero().to_string()).is_some_and(|limit| limit == self.0)
    }
}

/// True if processes can be marked here, and the mark be read.
pub(super) fn is_marked() -> bool {
    let own = getrlimit(Resource::Rttime);
    own.maximum.is_none() && limit("self").is_some() && prlimit(None, Resource::Rttime, own).is_ok()
}

/// Kills every member of a group; that nobody is left is no error.
pub(super) fn kill_group(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Source: proc_pid_limits(5): the name, the soft limit, the hard limit, the unit.
fn limit(process: &str) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_ascii_whitespace().nth(1).map(str::to_owned)
}

/// The processes that may have been started since the first of a call.
fn candidates(first: Pid, began: Instant) -> Vec<Pid> {
    let first = first.as_raw_nonzero().get();
    // Source: proc_loadavg(5): the last field is the process that was made last.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last: i32 = load.split_ascii_whitespace().next_back().and_then(|last| last.parse().ok()).unwrap_or_default();
    if last >= first && last - first <= FEW && began.elapsed() <= SHORT {
        return (first..=last).filter_map(Pid::from_raw).collect();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw).collect()
}
