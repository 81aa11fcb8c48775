//! The end of all processes of a call: a group, and what left it, by a mark that no process can take off.
//!
//! The marker is an otherwise unused resource limit with a unique value for each call. It is set before the command
//! starts, children inherit it, the system call filter prevents changes, and `/proc` shows it.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, kill_process_group, pidfd_open,
    pidfd_send_signal, prlimit, setpriority_process,
};

use super::limits::{CommandLimits, THREADS};

/// The largest number of scans for processes: killed ones may have started others in the meantime.
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
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        prlimit(Some(id), Resource::Rttime, limit)
            .ok()
            .map(|_| Self(value.to_string()))
    }

    /// The number that it is, as `/proc` shows it.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Kills all processes with this marker, until there are no more.
    pub(super) fn kill_all(&self, first: Pid, began: Instant) {
        let mut empty = 0;
        let mut killed = false;
        for _ in 0..ROUNDS {
            let found = candidates(first, began)
                .into_iter()
                .filter_map(|id| self.kill(id));
            let last = found.fold(None, |_, held| Some(held));
            killed |= last.is_some();
            empty = if last.is_none() { empty + 1 } else { 0 };
            // One look proves nothing: a process may have made another one, and gone, while its neighbours were looked at.
            if empty >= if killed { 3 } else { 2 } {
                return;
            }
            if let Some(last) = last {
                // A moment until they are gone, which it spares the next look.
                let _ = poll(
                    &mut [PollFd::new(&last, PollFlags::IN)],
                    Timespec::try_from(MOMENT).ok().as_ref(),
                );
            }
        }
    }

    /// Kills a process that has it. It is held before it is looked at: so its id cannot be another's by then.
    fn kill(&self, id: Pid) -> Option<OwnedFd> {
        if id == getpid() || !self.is_on(id) {
            return None;
        }
        let held = pidfd_open(id, PidfdFlags::empty()).ok()?;
        // An ended process keeps its limits until its parent waits for it.
        let has_ended = poll(
            &mut [PollFd::new(&held, PollFlags::IN)],
            Some(&Timespec::default()),
        )
        .is_ok_and(|ready| ready > 0);
        let is_killed =
            !has_ended && self.is_on(id) && pidfd_send_signal(&held, Signal::KILL).is_ok();
        is_killed.then_some(held)
    }

    pub(super) fn is_on(&self, id: Pid) -> bool {
        limit(&id.as_raw_nonzero().to_string()).is_some_and(|limit| limit == self.0)
    }
}

/// Sees when a call has too many processes.
#[derive(Debug)]
pub(super) struct Census {
    first: Pid,
    began: Instant,
    /// The machine's newest process, and the processes of the call, at the time of the count.
    newest: i32,
    count: usize,
    most: usize,
}

impl Census {
    pub(super) fn new(first: Pid, began: Instant, most: usize) -> Self {
        Self {
            most,
            first,
            began,
            newest: first.as_raw_nonzero().get(),
            count: 1,
        }
    }

    /// True if the call has more processes or threads than it may. They are counted when so many began on the whole machine
    /// that they may be too many: an ordinary command costs a look at one number.
    pub(super) fn is_over(&mut self, mark: &CallMark) -> bool {
        let newest = newest();
        // The numbers of processes begin again at some time: then they are counted.
        let begun = usize::try_from(newest - self.newest).unwrap_or(usize::MAX);
        if self.count.saturating_add(begun) <= self.most {
            return false;
        }
        // A fork bomb takes CPU time from the thread that ends it, which therefore raises its priority if permitted.
        // Otherwise a process limit applies.
        let _ = setpriority_process(None, -20);
        let marked = candidates(self.first, self.began)
            .into_iter()
            .filter(|id| *id != getpid() && mark.is_on(*id));
        let marked: Vec<Pid> = marked.take(self.most.saturating_add(1)).collect();
        (self.newest, self.count) = (newest, marked.len());
        // Source: a folder has a link for itself, one in the folder above, and one for each folder in it.
        let threads = |id: &Pid| {
            fs::metadata(format!("/proc/{}/task", id.as_raw_nonzero())).map_or(0, |it| it.nlink())
        };
        self.count > self.most
            || marked
                .iter()
                .map(|id| threads(id).saturating_sub(2))
                .sum::<u64>()
                > THREADS
    }
}

/// Limits a process that has not started yet: no core files, the size of files, and processes of this user.
pub(super) fn lower_limits(id: Pid, limits: &CommandLimits) {
    let file = limits.file.map(|most| (Resource::Fsize, most));
    let all = [(Resource::Core, 0), (Resource::Nproc, THREADS)];
    for (resource, most) in all.into_iter().chain(file) {
        // The limits of this process are those of its child.
        let most = Some(
            getrlimit(resource)
                .maximum
                .map_or(most, |now| now.min(most)),
        );
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        // It has at least the limits of this process.
        let _ = prlimit(Some(id), resource, limit);
    }
}

/// True if processes can be marked here, and the mark be read.
pub(super) fn is_marked() -> bool {
    let own = getrlimit(Resource::Rttime);
    own.maximum.is_none() && limit("self").is_some() && prlimit(None, Resource::Rttime, own).is_ok()
}

/// Kills every member of a group; an empty group is not an error.
pub(super) fn kill_group(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Source: proc_pid_limits(5): the name, the soft limit, the hard limit, the unit.
fn limit(process: &str) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_ascii_whitespace().nth(1).map(str::to_owned)
}

/// The processes that may have been started since the first of a call.
fn candidates(first: Pid, began: Instant) -> Vec<Pid> {
    let first = first.as_raw_nonzero().get();
    let last = newest();
    if last >= first && last - first <= FEW && began.elapsed() <= SHORT {
        return (first..=last).filter_map(Pid::from_raw).collect();
    }
    processes()
}

/// Returns all processes of the machine.
pub(super) fn processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// The process of the machine that was made last. Source: proc_loadavg(5): the last field.
pub(super) fn newest() -> i32 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_ascii_whitespace()
        .next_back()
        .and_then(|last| last.parse().ok())
        .unwrap_or_default()
}
