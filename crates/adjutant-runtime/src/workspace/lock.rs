//! Kernel locks: they are released when a process dies, so they are always accurate.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
    time::Duration,
};

use crate::{
    error::{Error, ErrorKind},
    files::{private, storage},
};

/// The number of attempts to acquire a lock, and the pause after each.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// A lock, held until it is dropped or its process exits.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Acquires a lock. Blocks for some milliseconds if it is held.
    ///
    /// # Errors
    /// `Busy` if another process holds it, `Storage` if the file cannot be created.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                // A process that checks the lock holds it briefly.
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(storage("lock", path, error)),
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("another process holds {}", path.display()),
        ))
    }

    /// Acquires a lock, and waits for it without a timeout. Blocks.
    pub(crate) fn wait(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        file.lock().map_err(|error| storage("lock", path, error))?;
        Ok(Self { file })
    }

    /// True if the lock is held.
    ///
    /// # Errors
    /// `Storage` if that cannot be determined.
    pub fn is_held(path: &Path) -> Result<bool, Error> {
        // The check creates no file: a shared lock is tried on the existing one.
        let file = match private(OpenOptions::new().read(true)).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(storage("open", path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => {
                drop(Self { file });
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(storage("lock", path, error)),
        }
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a child that another thread has just forked shares the open file until it executes its
    /// program, and closing only ours would keep the lock until then.
    fn drop(&mut self) {
        // If it fails, the lock is released when the file is closed.
        let _gone = self.file.unlock();
    }
}

fn open(path: &Path) -> Result<File, Error> {
    private(
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false),
    )
    .open(path)
    .map_err(|error| storage("open", path, error))
}
