//! Rotates large logs: `output.log` becomes `output.log.1`, that one `output.log.2`, and so on.

use std::{fs, io, path::Path};

use crate::files::private;

/// The log of an agent's process.
const LOG: &str = "output.log";

/// Rotates the log of a directory, if it is larger than the limit.
///
/// Its process keeps the file open for appending, so the file is copied and truncated, not renamed. Output in between
/// is lost.
pub(super) fn rotate(folder: &Path, max: u64, kept: usize) -> io::Result<()> {
    let log = folder.join(LOG);
    match fs::symlink_metadata(&log) {
        Ok(meta) if meta.is_file() && meta.len() > max => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let aside = |number: usize| folder.join(format!("{LOG}.{number}"));
    for number in (1..kept).rev() {
        match fs::rename(aside(number), aside(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // On a full disk the copy fails, and the log is truncated anyway, because it fills the disk.
    let copied = if kept > 0 { fs::copy(&log, aside(1)).map(drop) } else { Ok(()) };
    private(fs::OpenOptions::new().write(true)).open(&log)?.set_len(0)?;
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_put_aside_when_it_has_grown_and_the_oldest_is_dropped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join(LOG);
        let mut process = fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        for line in ["one", "two", "three", "four"] {
            io::Write::write_all(&mut process, line.as_bytes()).expect("it is written");
            rotate(folder.path(), 2, 2).expect("it is put aside");
        }
        io::Write::write_all(&mut process, b"5").expect("it is written");
        rotate(folder.path(), 2, 2).expect("it is short enough");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        let found = [read(LOG), read("output.log.1"), read("output.log.2"), read("output.log.3")];
        assert_eq!(found, [Some("5".into()), Some("four".into()), Some("three".into()), None]);
    }

    #[test]
    fn rotate_does_nothing_when_there_is_no_log() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        rotate(&folder.path().join("none"), 0, 3).expect("nothing is to be done");
    }
}
