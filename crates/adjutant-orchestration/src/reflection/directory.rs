//! Reflections in a directory: one markdown file each, private, written whole or not at all, by any number of processes.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind as IoErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use adjutant_llm::private;
use async_trait::async_trait;

use super::{
    Listing, Reflection, ReflectionChange, ReflectionId, ReflectionStore, markdown, name,
    on_kv::{full, no_name},
};
use crate::{Error, ErrorKind, text};

/// The largest number of bytes in a file; larger files are passed over.
pub const MAX_FILE_BYTES: u64 = 64 * 1024;
/// The largest number of files that are read, the newest first; older ones are passed over.
pub const MAX_LISTED: usize = 2_000;
/// The largest number of entries of a directory that are read.
const MAX_ENTRIES: usize = 20_000;
/// The largest number of warnings in a listing.
const MAX_SKIPPED: usize = 20;
/// The longest wait until the directory may be changed.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before the lock is tried again.
const PAUSE: Duration = Duration::from_millis(5);
/// The lock file for changes.
const LOCK: &str = ".lock";
const SUFFIX: &str = ".md";

/// Reflections in a directory. The names of files are made of plain letters: none leads out of it.
///
/// Only files are read, no links. Counts are made under a lock on `.lock`, which a dying process releases.
#[derive(Debug, Clone)]
pub struct Directory {
    path: Arc<Path>,
}

impl Directory {
    /// The reflections in this directory, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
        }
    }

    /// Runs a file operation on a thread that may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let directory = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&directory)).await;
        done.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Store, "reflections could not be used").with_source(error))
        })
    }
}

#[async_trait]
impl ReflectionStore for Directory {
    async fn all(&self) -> Result<Listing, Error> {
        self.on_disk(Directory::read_all).await
    }

    async fn add(&self, reflection: &Reflection) -> Result<ReflectionId, Error> {
        let reflection = reflection.clone();
        self.on_disk(move |directory| directory.write_new(reflection))
            .await
    }

    async fn change(&self, id: &ReflectionId, change: ReflectionChange) -> Result<bool, Error> {
        let id = id.clone();
        self.on_disk(move |directory| directory.change_one(&id, change))
            .await
    }
}

/// The names of reflections behind the times in them, oldest first, and what else lies there.
type Names = (BTreeSet<(Arc<str>, ReflectionId)>, Vec<String>);

impl Directory {
    fn read_all(&self) -> Result<Listing, Error> {
        let (names, mut skipped) = self.names()?;
        let (mut reflections, mut read) = (Vec::new(), 0_usize);
        for (_, id) in names.into_iter().rev() {
            if read == MAX_LISTED {
                skipped.push(format!(
                    "there are more than {MAX_LISTED} files; the oldest are not read"
                ));
                break;
            }
            read += 1;
            match self.read_one(&id) {
                Ok(reflection) => reflections.extend(reflection),
                Err(error) => skipped.push(error.message().to_owned()),
            }
        }
        skipped.truncate(MAX_SKIPPED);
        Ok(Listing::new(
            reflections,
            skipped.into_iter().map(Arc::from).collect(),
        ))
    }

    fn names(&self) -> Result<Names, Error> {
        let (mut names, mut skipped) = (BTreeSet::new(), Vec::new());
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok((names, skipped)),
            other => other.map_err(|error| self.io_error("read", error))?,
        };
        for entry in entries.take(MAX_ENTRIES) {
            let name = entry
                .map_err(|error| self.io_error("read", error))?
                .file_name();
            let name = name.to_string_lossy();
            let stem = name.strip_suffix(SUFFIX);
            match stem.and_then(|stem| Some((name::stamp(stem)?, ReflectionId(stem.into())))) {
                Some(named) => drop(names.insert(named)),
                // A file whose name begins with a dot is ours, or hidden intentionally.
                None if name.starts_with('.') => {}
                None => skipped.push(format!(
                    "this is no reflection: {:?}",
                    text::cut(&name, 200)
                )),
            }
        }
        Ok((names, skipped))
    }

    /// The reflection of a name; `None` if its file is gone.
    fn read_one(&self, id: &ReflectionId) -> Result<Option<Reflection>, Error> {
        let why = |why: &str| {
            Error::new(
                ErrorKind::Store,
                format!("{id}{SUFFIX} is passed over: {why}"),
            )
        };
        let path = self.file(id);
        let about = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| why("it cannot be looked at").with_source(error))?,
        };
        if !about.is_file() {
            return Err(why("it is no file"));
        }
        let mut bytes = Vec::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| why("it cannot be read").with_source(error))?,
        };
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(why(&format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        let file =
            String::from_utf8(bytes).map_err(|error| why("it is no text").with_source(error))?;
        markdown::read(id.clone(), &file)
            .map(Some)
            .ok_or_else(|| why("it has not the parts of a reflection"))
    }

    fn write_new(&self, mut reflection: Reflection) -> Result<ReflectionId, Error> {
        name::stamp(&reflection.id.0).ok_or_else(|| no_name(&reflection.id))?;
        let _locked = self.lock()?;
        for id in name::candidates(&reflection.id) {
            match fs::symlink_metadata(self.file(&id)) {
                Ok(_) => {}
                Err(error) if error.kind() == IoErrorKind::NotFound => {
                    reflection.id = id;
                    self.write(&reflection)?;
                    return Ok(reflection.id);
                }
                Err(error) => return Err(self.io_error("write to", error)),
            }
        }
        Err(full(&reflection.id))
    }

    fn change_one(&self, id: &ReflectionId, change: ReflectionChange) -> Result<bool, Error> {
        if name::stamp(&id.0).is_none() || !self.file(id).exists() {
            return Ok(false);
        }
        let _locked = self.lock()?;
        if change == ReflectionChange::Remove {
            return match fs::remove_file(self.file(id)) {
                Err(error) if error.kind() == IoErrorKind::NotFound => Ok(false),
                other => other
                    .map(|()| true)
                    .map_err(|error| self.io_error("write to", error)),
            };
        }
        let Some(mut reflection) = self.read_one(id)? else {
            return Ok(false);
        };
        if let ReflectionChange::Count(outcome) = change {
            reflection.tally.count(outcome);
        }
        self.write(&reflection)?;
        Ok(true)
    }

    /// Writes a file under the lock: to a temporary file first, so that readers never see a part of it.
    fn write(&self, reflection: &Reflection) -> Result<(), Error> {
        let beside = self.path.join(format!(".{}.tmp", reflection.id));
        let written = write_beside(&beside, &markdown::write(reflection))
            .and_then(|()| fs::rename(&beside, self.file(&reflection.id)));
        written.map_err(|error| {
            // Best effort: a remainder is hidden, and overwritten by the next attempt.
            let _ = fs::remove_file(&beside);
            self.io_error("write to", error)
        })
    }

    /// Waits for exclusive access. The file system releases the lock when the file is closed.
    fn lock(&self) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        let options = private::file(options.write(true).create(true).truncate(false));
        let file = private::folder(&self.path).and_then(|()| options.open(self.path.join(LOCK)));
        let file = file.map_err(|error| self.io_error("write to", error))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(self.io_error("lock", error)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let message = format!(
                        "someone else keeps reflections locked for {PATIENCE:?}: {}",
                        self.path.display()
                    );
                    return Err(Error::new(ErrorKind::TimedOut, message));
                }
            }
        }
    }

    fn file(&self, id: &ReflectionId) -> PathBuf {
        self.path.join(format!("{id}{SUFFIX}"))
    }

    fn io_error(&self, what: &str, error: io::Error) -> Error {
        let message = format!(
            "cannot {what} the directory of reflections: {}",
            self.path.display()
        );
        Error::new(ErrorKind::Store, message).with_source(error)
    }
}

fn write_beside(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != IoErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private::file(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
