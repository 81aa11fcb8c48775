//! The live owners. Each open database is an instance with a locked file; the lock is released with its program.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use adjutant_llm::private;
use rusqlite::Connection;
use uuid::Uuid;

use super::{fault::Fault, schema};

/// An ownership of a log: the key of the log, and the epoch.
pub(super) type Tenure = (i64, i64);

/// The ownerships with live values.
type LiveTenures = Mutex<HashSet<Tenure>>;

/// The instances of this program: of them it is known at once which logs they have.
static HERE: LazyLock<Mutex<HashMap<String, Weak<LiveTenures>>>> = LazyLock::new(Mutex::default);

/// The logs that one open database owns, and the other owners that are alive.
#[derive(Debug)]
pub(super) struct Owners {
    instance: String,
    /// None in memory, where there are no others.
    folder: Option<PathBuf>,
    live: Arc<LiveTenures>,
    /// Locked as long as the instance lives; `None` before it owns a log.
    file: Mutex<Option<File>>,
}

impl Owners {
    /// A new instance of the database in this file.
    pub(super) fn beside(path: Option<&Path>) -> Self {
        let folder = path.map(|path| schema::beside(path, "-owners"));
        let (instance, live) = (
            Uuid::new_v4().as_simple().to_string(),
            Arc::<LiveTenures>::default(),
        );
        lock(&HERE).insert(instance.clone(), Arc::downgrade(&live));
        Self {
            instance,
            folder,
            live,
            file: Mutex::default(),
        }
    }

    /// The name of the instance.
    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    /// From now on the ownership counts as alive.
    pub(super) fn hold(&self, tenure: Tenure) {
        lock(&self.live).insert(tenure);
    }

    /// The ownership is over.
    pub(super) fn let_go(&self, tenure: Tenure) {
        lock(&self.live).remove(&tenure);
    }

    /// True if an instance is there and has the log.
    pub(super) fn is_alive(&self, instance: &str, tenure: Tenure) -> Result<bool, Fault> {
        if let Some(live) = lock(&HERE).get(instance) {
            return Ok(live
                .upgrade()
                .is_some_and(|live| lock(&live).contains(&tenure)));
        }
        match &self.folder {
            Some(folder) => Ok(is_locked(&file_of(folder, instance))?),
            None => Ok(false),
        }
    }

    /// For how long an instance has owned logs, if it has a file.
    pub(super) fn since(&self, instance: &str) -> Option<Duration> {
        let made = fs::metadata(file_of(self.folder.as_deref()?, instance))
            .and_then(|file| file.modified());
        made.ok()?.elapsed().ok()
    }

    /// Makes and locks the file of this instance, and clears away what dead ones left behind.
    ///
    /// Must be called in a write transaction: it excludes others, so that no file counts as dead before it is locked.
    pub(super) fn enroll(&self, db: &Connection) -> Result<(), Fault> {
        let mut file = lock(&self.file);
        let Some(folder) = self.folder.as_deref().filter(|_| file.is_none()) else {
            return Ok(());
        };
        private::folder(folder)?;
        // Behind a link, the cleanup could remove foreign files.
        if fs::symlink_metadata(folder)?.is_symlink() {
            let why = format!(
                "{} is a link, not the folder of the owners; hint: remove it",
                folder.display()
            );
            return Err(Fault::Invalid(why));
        }
        bury(folder, db)?;
        let own = private::file(OpenOptions::new().write(true).create_new(true))
            .open(file_of(folder, &self.instance))?;
        own.lock()?;
        *file = Some(own);
        Ok(())
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        lock(&HERE).remove(&self.instance);
        if let (Some(folder), Some(file)) = (&self.folder, lock(&self.file).take()) {
            // A file that cannot be removed now is found dead by the next instance.
            let _ = fs::remove_file(file_of(folder, &self.instance));
            drop(file);
        }
    }
}

fn file_of(folder: &Path, instance: &str) -> PathBuf {
    folder.join(format!("{instance}.lock"))
}

/// Frees the logs of dead instances and removes their files.
fn bury(folder: &Path, db: &Connection) -> Result<(), Fault> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_lock = path
            .extension()
            .is_some_and(|extension| extension == "lock");
        let instance = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|_| is_lock);
        let Some(instance) = instance else { continue };
        if is_locked(&path)? {
            continue;
        }
        let free = "UPDATE logs SET owner = NULL, instance = NULL, lost = lost + (work = 1), rest_ms = 0 WHERE instance = ?1";
        db.execute(free, [instance])?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// True if a running program has the file. Concurrent checks share their lock, so they do not mistake each other for
/// the owner.
fn is_locked(path: &Path) -> std::io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
