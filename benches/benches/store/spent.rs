//! What some work took besides time: what all threads computed, and how many bytes the program wrote.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What some work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spent {
    pub(crate) time: Duration,
    /// Of all threads of this program together.
    pub(crate) computed: Duration,
}

impl Spent {
    /// The median of what this takes, over an odd number of times.
    pub(crate) fn median(times: usize, mut work: impl FnMut()) -> Self {
        let mut all: Vec<Self> = (0..times).map(|_| Self::by(&mut work)).collect();
        all.sort();
        let time = all[times / 2].time;
        all.sort_by_key(|spent| spent.computed);
        Self {
            time,
            computed: all[times / 2].computed,
        }
    }

    /// The least that this takes, over some times: what others do at the same time counts least in it.
    pub(crate) fn best(times: usize, mut work: impl FnMut()) -> Self {
        let all: Vec<Self> = (0..times).map(|_| Self::by(&mut work)).collect();
        let least = |of: fn(&Self) -> Duration| all.iter().map(of).min().unwrap_or_default();
        Self {
            time: least(|spent| spent.time),
            computed: least(|spent| spent.computed),
        }
    }

    fn by(work: &mut impl FnMut()) -> Self {
        let (began, computed) = (Instant::now(), computed());
        work();
        Self {
            time: began.elapsed(),
            computed: self::computed() - computed,
        }
    }
}

/// What all threads of this program have computed.
pub(crate) fn computed() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// How many bytes this program has given the system to write, to files and sockets; `None` where that is not told.
pub(crate) fn written() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: ")?.parse().ok())
}
