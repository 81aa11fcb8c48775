//! A folder that need not survive the machine: in memory where there is room, so that no test waits for a disk.

use std::{fs, path::Path};

use tempfile::TempDir;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
/// How many KiB must fit there: several tests of large texts run at once.
const ROOM: u64 = 1024 * 1024;

/// A folder of one's own, which goes when the value does.
pub(crate) fn folder() -> TempDir {
    let in_memory = is_roomy()
        .then(|| tempfile::tempdir_in(Path::new(MEMORY)).ok())
        .flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a folder"))
}

/// Whether there is such a place; what a container gives may hold 64 MiB.
fn is_roomy() -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut options = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        words
            .next()
            .filter(|place| *place == MEMORY)
            .and(words.nth(1))
    });
    let size = |options: &str| {
        let size = options.split(',').find_map(|option| {
            option
                .strip_prefix("size=")?
                .strip_suffix('k')?
                .parse()
                .ok()
        });
        // By itself, it is half of the machine's memory.
        size.is_none_or(|size: u64| size >= ROOM)
    };
    options.next_back().is_some_and(size)
}
