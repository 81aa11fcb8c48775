//! The places of things on the disk, and the way to change a file as a whole.
//!
//! ```text
//! logs/<folder of the log>/  records.jsonl  head  meta.json  owner.json  held-<epoch>  posts.jsonl  fold
//! blobs/<digest>             large texts
//! locks/<two digits>         held for a moment by who changes a log; locks/blobs by who writes or sweeps blobs
//! trash/                     what is being deleted
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_core::{Digest, JournalError, JournalErrorKind, LogId};
use adjutant_llm::private;
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use super::name;

/// The folder of a journal.
#[derive(Debug, Clone)]
pub(super) struct JournalFolder {
    root: Arc<Path>,
}

/// The folder of one log.
#[derive(Debug, Clone)]
pub(super) struct LogFolder {
    pub(super) log: LogId,
    pub(super) folder: PathBuf,
    lock: PathBuf,
}

/// A lock that is held until it is dropped; the kernel frees it when the process dies.
#[derive(Debug)]
pub(super) struct Locked {
    _file: File,
}

impl JournalFolder {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// An unused name in the trash.
    pub(super) fn trash(&self) -> Result<PathBuf, JournalError> {
        let trash = self.root.join("trash");
        make_folder(&trash)?;
        Ok(trash.join(Uuid::new_v4().simple().to_string()))
    }

    /// Prevents the trash from being emptied while it is held: new folders are prepared there.
    pub(super) fn keep_trash(&self) -> Result<Locked, JournalError> {
        lock_file(&self.root.join("locks").join("trash"), File::lock_shared)
    }

    /// Removes what a crash left in the trash, unless a folder is being prepared there.
    pub(super) fn empty_trash(&self) {
        let alone = File::open(self.root.join("locks").join("trash"));
        let Ok(_locked) = alone.and_then(|file| file.try_lock().map(|()| file).map_err(Into::into))
        else {
            return;
        };
        let Ok(left) = fs::read_dir(self.root.join("trash")) else {
            return;
        };
        // An entry that cannot be removed does no harm.
        left.flatten()
            .for_each(|entry| drop(fs::remove_dir_all(entry.path())));
    }

    pub(super) fn log(&self, log: &LogId) -> LogFolder {
        let name = name::folder(log);
        // Several logs share a lock: a separate lock could not be removed together with its log.
        let lock = format!("{:02x}", Digest::compute(name.as_bytes()).0[0]);
        LogFolder {
            log: log.clone(),
            folder: self.logs().join(name),
            lock: self.root.join("locks").join(lock),
        }
    }

    /// Keeps blobs from being swept while it is held.
    pub(super) fn keep_blobs(&self) -> Result<Locked, JournalError> {
        lock_file(&self.root.join("locks").join("blobs"), File::lock_shared)
    }

    /// Keeps blobs from being written while it is held.
    pub(super) fn sweep_blobs(&self) -> Result<Locked, JournalError> {
        lock_file(&self.root.join("locks").join("blobs"), File::lock)
    }
}

impl LogFolder {
    /// The same log in another folder.
    pub(super) fn at(&self, folder: PathBuf) -> Self {
        Self {
            folder,
            ..self.clone()
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn records(&self) -> PathBuf {
        self.file("records.jsonl")
    }

    /// True if there is such a log.
    pub(super) fn exists(&self) -> Result<bool, JournalError> {
        self.folder
            .try_exists()
            .map_err(|error| io_error("look for", &self.folder, error))
    }

    /// Fails if the log does not exist.
    pub(super) fn ensure_exists(&self) -> Result<(), JournalError> {
        if self.exists()? {
            Ok(())
        } else {
            Err(JournalError::for_log(JournalErrorKind::Missing, &self.log))
        }
    }

    /// Waits for exclusive access to the log, for as long as the value lives.
    pub(super) fn lock(&self) -> Result<Locked, JournalError> {
        lock_file(&self.lock, File::lock)
    }

    /// Both logs at once; two may do so the other way round at the same time.
    pub(super) fn lock_both(&self, other: &Self) -> Result<[Option<Locked>; 2], JournalError> {
        let (first, second) = if self.lock <= other.lock {
            (self, other)
        } else {
            (other, self)
        };
        let one = first.lock()?;
        let two = if first.lock == second.lock {
            None
        } else {
            Some(second.lock()?)
        };
        Ok([Some(one), two])
    }
}

fn lock_file(
    path: &Path,
    lock: impl FnOnce(&File) -> io::Result<()>,
) -> Result<Locked, JournalError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let file =
        private::file(OpenOptions::new().create(true).truncate(false).write(true)).open(path);
    let file = file.map_err(|error| io_error("open", path, error))?;
    lock(&file).map_err(|error| io_error("lock", path, error))?;
    Ok(Locked { _file: file })
}

pub(super) fn make_folder(path: &Path) -> Result<(), JournalError> {
    if path.is_dir() {
        return Ok(());
    }
    private::folder(path).map_err(|error| io_error("make", path, error))?;
    // A name without a folder is in the current folder.
    let above = path.parent().map(|above| {
        if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        }
    });
    above.map_or(Ok(()), sync_folder)
}

/// Makes sure that the names in a folder survive a crash of the machine.
pub(super) fn sync_folder(path: &Path) -> Result<(), JournalError> {
    // Other systems do not open folders, and keep names by themselves.
    if cfg!(unix) {
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| io_error("flush", path, error))?;
    }
    Ok(())
}

/// Makes a file that only its owner can read; fails if there is one, or a link.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    private::file(OpenOptions::new().write(true).create_new(true)).open(path)
}

/// Puts a whole file in place of another, or none; after a crash there is the one or the other.
///
/// Which of them, is certain only when the folder has been flushed.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let temporary = path.with_file_name(format!(".{}", Uuid::new_v4().simple()));
    let written = new_file(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The file that is there is as good as before.
        let _ = fs::remove_file(&temporary);
        return Err(io_error("write", path, error));
    }
    Ok(())
}

pub(super) fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), JournalError> {
    let json = serde_json::to_vec(value).map_err(|error| io_error("write", path, error.into()))?;
    replace(path, &json)
}

/// A whole file; `None` if it does not exist.
pub(super) fn contents(path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path, error)),
    }
}

pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, JournalError> {
    let read = |bytes: Vec<u8>| {
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} is not what was written", path.display());
            JournalError::new(JournalErrorKind::Corrupt, message).with_source(error)
        })
    };
    contents(path)?.map(read).transpose()
}

pub(super) fn io_error(what: &str, path: &Path, error: io::Error) -> JournalError {
    if error.kind() == ErrorKind::ReadOnlyFilesystem {
        return JournalError::read_only(
            &format!("could not {what} {}", path.display()),
            "its file system",
        );
    }
    JournalError::new(
        JournalErrorKind::Io,
        format!("could not {what} {}", path.display()),
    )
    .with_source(error)
}
