//! The resources that the processes of a call use, compared with its limits while it runs.

use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::statvfs,
    param::{clock_ticks_per_second, page_size},
    process::Pid,
};

use super::{
    end::{CallMark, newest, processes},
    limits::{CommandLimits, Limit},
};

/// The time between two measurements.
const TICK: Duration = Duration::from_millis(100);
/// An exact measurement takes at most this part of the time.
const PART: u32 = 10;
/// The number of new processes of the machine that are looked at one by one.
const FEW: i32 = 4_096;

/// The resources of one call.
#[derive(Debug)]
pub(super) struct Usage {
    limits: CommandLimits,
    known: HashSet<Pid>,
    /// The machine's newest process at the last two measurements. A process that started at that moment may not have been
    /// visible yet.
    newest: [i32; 2],
    next: Instant,
    next_memory: Instant,
    cpu: Duration,
    disk: Disk,
}

/// The places that a call writes.
#[derive(Debug)]
struct Disk {
    places: Vec<PathBuf>,
    /// The used bytes of their file systems at the start.
    used: u64,
    /// The time of the start, in seconds.
    began: i64,
    next: Instant,
}

impl Usage {
    pub(super) fn new(first: Pid, limits: CommandLimits, places: Vec<PathBuf>) -> Self {
        let now = Instant::now();
        let began = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = began.map_or(0, |since| since.as_secs());
        Self {
            limits,
            known: HashSet::from([first]),
            newest: [first.as_raw_nonzero().get(); 2],
            next: now + TICK,
            next_memory: now,
            cpu: Duration::ZERO,
            disk: Disk {
                used: used(&places),
                places,
                began: i64::try_from(began).unwrap_or(i64::MAX),
                next: now,
            },
        }
    }

    /// Returns a limit that the call has exceeded. A call of a moment is never measured.
    pub(super) fn exceeded(&mut self, mark: &CallMark) -> Option<Limit> {
        if Instant::now() < self.next {
            return None;
        }
        self.find(mark);
        let found = [
            (Limit::Memory, self.is_memory_over()),
            (Limit::Cpu, self.is_cpu_over()),
            (Limit::Disk, self.is_disk_over()),
        ];
        self.next = Instant::now() + TICK;
        let reached = found.into_iter().find(|(_, is_over)| *is_over);
        reached.map(|(limit, _)| limit)
    }

    /// Adds the processes of the call that started since the last measurement.
    fn find(&mut self, mark: &CallMark) {
        let last = newest();
        let [first, _] = self.newest;
        let started = if last >= first && last - first <= FEW {
            (first..=last).filter_map(Pid::from_raw).collect()
        } else {
            processes()
        };
        self.newest = [self.newest[1], last];
        self.known
            .extend(started.into_iter().filter(|id| mark.is_on(*id)));
    }

    /// Pages that processes share are counted exactly only if the simple sum exceeds the limit.
    fn is_memory_over(&mut self) -> bool {
        // Source: proc_pid_statm(5): size, resident, shared, in pages.
        let mut pages = 0_u64;
        self.known.retain(|id| {
            let resident = read(*id, "statm").and_then(|statm| column(&statm, 1));
            pages = pages.saturating_add(resident.unwrap_or_default());
            resident.is_some()
        });
        let began = Instant::now();
        let is_within = |limit: &u64| pages.saturating_mul(page_size() as u64) <= *limit;
        let Some(limit) = self.limits.memory.filter(|limit| !is_within(limit)) else {
            return false;
        };
        if began < self.next_memory {
            return false;
        }
        let exact: u64 = self.known.iter().filter_map(|id| exact_memory(*id)).sum();
        self.next_memory = Instant::now() + began.elapsed() * PART;
        exact > limit
    }

    /// The time of processes that have ended is part of their parent's. Source: proc_pid_stat(5), fields 14 to 17.
    fn is_cpu_over(&mut self) -> bool {
        let Some(limit) = self.limits.cpu else {
            return false;
        };
        let ticks = |id: &Pid| {
            let stat = read(*id, "stat")?;
            let (_, fields) = stat.rsplit_once(')')?;
            Some(
                (11..15)
                    .filter_map(|field| column(fields, field))
                    .sum::<u64>(),
            )
        };
        let ticks: u64 = self.known.iter().filter_map(ticks).sum();
        let now =
            Duration::from_millis(ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1));
        self.cpu = self.cpu.max(now);
        self.cpu > limit
    }

    /// Files are counted only if so much was written that they may exceed the limit.
    fn is_disk_over(&mut self) -> bool {
        let Some(limit) = self.limits.disk else {
            return false;
        };
        let began = Instant::now();
        if began < self.disk.next {
            return false;
        }
        // Source: proc_pid_io(5). The numbers of processes that have ended are part of their parent's.
        let written = |id: &Pid| {
            let text = read(*id, "io")?;
            let value = |name: &str| {
                text.lines()
                    .find_map(|line| column(line.strip_prefix(name)?, 0))
            };
            Some(value("write_bytes:")?.saturating_sub(value("cancelled_write_bytes:")?))
        };
        let written: u64 = self.known.iter().filter_map(written).sum();
        let grown = used(&self.disk.places).saturating_sub(self.disk.used);
        if written <= limit && grown <= limit {
            return false;
        }
        let files = self.disk.size(&self.known, limit);
        self.disk.next = Instant::now() + began.elapsed() * PART;
        files > limit
    }
}

impl Disk {
    /// Returns the bytes of the files that changed since the start, at least if they are within the limit. Files that
    /// processes hold open without a name belong to them.
    fn size(&self, processes: &HashSet<Pid>, limit: u64) -> u64 {
        let mut open = self.places.clone();
        let mut seen = BTreeSet::new();
        let mut size = 0_u64;
        let mut add = |file: &Metadata| {
            let is_new = file.nlink() == 1 || seen.insert((file.dev(), file.ino()));
            if file.is_file() && file.ctime() >= self.began && is_new {
                // Source: stat(2): blocks of 512 bytes.
                size = size.saturating_add(file.blocks().saturating_mul(512));
            }
            size > limit
        };
        for id in processes {
            let descriptors = entries(&process(*id).join("fd"));
            let files = descriptors.filter_map(|path| path.metadata().ok());
            if files
                .filter(|file| file.nlink() == 0)
                .any(|file| add(&file))
            {
                return size;
            }
        }
        while let Some(path) = open.pop() {
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {
                    open.extend(entries(&path).filter(|inner| !self.places.contains(inner)));
                }
                Ok(found) if add(&found) => return size,
                _ => {}
            }
        }
        size
    }
}

fn entries(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the used bytes of the file systems of these places.
fn used(places: &[PathBuf]) -> u64 {
    let mut seen = BTreeSet::new();
    let used = |path: &PathBuf| {
        let found = seen
            .insert(path.metadata().ok()?.dev())
            .then(|| statvfs(path))?
            .ok()?;
        Some(
            found
                .f_blocks
                .saturating_sub(found.f_bfree)
                .saturating_mul(found.f_frsize),
        )
    };
    places.iter().filter_map(used).sum()
}

/// Returns the memory of a process, with its part of shared pages and without files. Source: proc_pid_smaps_rollup(5), Linux 6.18.
fn exact_memory(id: Pid) -> Option<u64> {
    if let Some(text) = read(id, "smaps_rollup") {
        let names = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];
        let kib = names.iter().filter_map(|name| {
            text.lines()
                .find_map(|line| column(line.strip_prefix(name)?, 0))
        });
        return Some(kib.sum::<u64>().saturating_mul(1 << 10));
    }
    let statm = read(id, "statm")?;
    let pages = column(&statm, 1)?.saturating_sub(column(&statm, 2)?);
    Some(pages.saturating_mul(page_size() as u64))
}

fn process(id: Pid) -> PathBuf {
    Path::new("/proc").join(id.as_raw_nonzero().to_string())
}

fn read(id: Pid, name: &str) -> Option<String> {
    fs::read_to_string(process(id).join(name)).ok()
}

fn column(line: &str, number: usize) -> Option<u64> {
    line.split_ascii_whitespace().nth(number)?.parse().ok()
}
