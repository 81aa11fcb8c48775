//! What a child of this program measured, and how: the time that a thread computes, the memory of a process.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// What a process reports.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) us: f64,
    pub(crate) kb: f64,
}

impl Report {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (us, kb) = line.split_once(' ')?;
        Some(Self {
            us: us.parse().ok()?,
            kb: kb.parse().ok()?,
        })
    }
}

/// How long this thread has computed, in microseconds: what else the machine does counts little.
pub(crate) fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Resident memory of this process.
pub(crate) fn rss_kb() -> f64 {
    status_kb("VmRSS:")
}

/// The most memory that was ever resident in this process.
pub(crate) fn peak_kb() -> f64 {
    status_kb("VmHWM:")
}

fn status_kb(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the memory is told");
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .expect("a number")
}
