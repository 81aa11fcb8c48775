//! Writes an agent into one file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{DIGEST, List, ListedFile, MAGIC, VERSION, list};
use crate::{
    error::{Error, ErrorKind},
    files::{open_regular, private, storage},
    home::Entry,
    workspace::Lock,
};

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The number of files of the agent that are in it.
    pub files: usize,
    /// The number of bytes that they have together.
    pub bytes: u64,
    /// Files that stayed: links, pipes, devices, and those whose names cannot be carried.
    pub skipped: Vec<String>,
}

/// Writes an agent into one file, which must not be there yet. The agent must be prepared and must not run.
///
/// # Errors
/// `Conflict` if it runs or is not prepared, `Exists` if there is such a file, `Storage` if something cannot be read or
/// written.
pub fn export(entry: &Entry, to: &Path) -> Result<Exported, Error> {
    let workspace = &entry.workspace;
    if !workspace.file("prepared.json").is_file() {
        return Err(Error::new(ErrorKind::Conflict, format!("the agent {} is not prepared", entry.name)));
    }
    // Nobody can run it meanwhile, so its database is in order.
    let lock = Lock::take(&workspace.file("host.lock")).map_err(|error| match error.kind() {
        ErrorKind::Busy => {
            Error::new(ErrorKind::Conflict, format!("the agent {} runs; hint: stop it first", entry.name))
        }
        _ => error,
    })?;
    if fs::symlink_metadata(to).is_ok() {
        return Err(Error::new(ErrorKind::Exists, format!("there is a file already: {}", to.display())));
    }
    let found = list::find(workspace)?;
    let exported = Exported {
        files: found.files.len(),
        bytes: found.files.iter().map(|file| file.size).sum(),
        skipped: found.skipped,
    };
    let list = List { agent: entry.name.clone(), id: entry.id, files: found.files };
    let beside = beside(to);
    let written = write(workspace.root(), &list, &beside).and_then(|()| {
        // Unlike a rename, a link does not replace what somebody else made meanwhile.
        fs::hard_link(&beside, to).or_else(|_| fs::rename(&beside, to)).map_err(|error| storage("write", to, error))
    });
    // It has its name, or is not wanted.
    let _ = fs::remove_file(&beside);
    drop(lock);
    written.map(|()| exported)
}

fn beside(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}.{}", Uuid::new_v4().simple()))
}

/// A writer that makes a digest of what it writes.
struct Hashed<W> {
    to: W,
    digest: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn write(root: &Path, list: &List, to: &Path) -> Result<(), Error> {
    let wrong = |error| storage("write", to, error);
    let file = private(OpenOptions::new().write(true).create_new(true)).open(to).map_err(wrong)?;
    let mut out = Hashed { to: BufWriter::new(file), digest: Sha256::new() };
    let text = serde_json::to_string(list).map_err(|error| wrong(error.into()))?;
    write!(out, "{MAGIC}{VERSION}\n{text}\n").map_err(wrong)?;
    for listed in &list.files {
        copy(root, listed, &mut out)?;
    }
    let digest = out.digest.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let ended = writeln!(out.to, "{DIGEST}{hex}").and_then(|()| out.to.into_inner().map_err(io::Error::from));
    ended.and_then(|file| file.sync_all()).map_err(wrong)
}

fn copy(root: &Path, listed: &ListedFile, out: &mut impl Write) -> Result<(), Error> {
    let path = root.join(&listed.path);
    let file: File = open_regular(&path)?;
    let copied = io::copy(&mut file.take(listed.size), out).map_err(|error| storage("copy", &path, error))?;
    if copied == listed.size {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Storage, format!("{} was changed while it was read", path.display())))
}
