//! What a process used: CPU of all its threads, wall time, resident memory.

use std::{fs, time::Instant};

use tokio::runtime::Runtime;

/// What a child reports.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) cpu_us: f64,
    pub(crate) wall_us: f64,
    pub(crate) rss_kb: f64,
}

/// A stopwatch for CPU and wall time.
pub(crate) struct Watch {
    cpu_us: f64,
    wall: Instant,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            cpu_us: cpu_us(),
            wall: Instant::now(),
        }
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            cpu_us: cpu_us() - self.cpu_us,
            wall_us: self.wall.elapsed().as_secs_f64() * 1e6,
            rss_kb: 0.0,
        }
    }
}

impl Report {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut figures = line.split(' ').map(|figure| figure.parse().ok());
        Some(Self {
            cpu_us: figures.next()??,
            wall_us: figures.next()??,
            rss_kb: figures.next()??,
        })
    }

    pub(crate) fn print(&self) {
        println!("{} {} {}", self.cpu_us, self.wall_us, self.rss_kb);
    }
}

fn cpu_us() -> f64 {
    let threads = fs::read_dir("/proc/self/task")
        .expect("a Linux machine")
        .flatten();
    let of_thread = |path: std::path::PathBuf| -> Option<f64> {
        fs::read_to_string(path.join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse()
            .ok()
    };
    threads
        .filter_map(|thread| of_thread(thread.path()))
        .sum::<f64>()
        / 1e3
}

/// Resident memory of this process.
pub(crate) fn rss_kb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("the resident memory is told");
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .expect("a number")
}

pub(crate) fn minimum(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

/// What some work takes. Its instructions are counted by the name of this function: those before and after do not count.
#[inline(never)]
pub(crate) fn measured(runtime: &Runtime, work: impl Future<Output = ()>) -> Report {
    let watch = Watch::start();
    runtime.block_on(work);
    watch.report()
}
