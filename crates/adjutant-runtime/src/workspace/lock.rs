//! Kernel locks: a dying process releases them, so they are always accurate.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
    time::Duration,
};

use crate::{
    error::{Error, ErrorKind},
    files::{private, storage},
};

/// The number of tries to take a lock, and the pause after each.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// A lock, held until it is dropped or its process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes a lock. Blocks for some milliseconds if it is held.
    ///
    /// # Errors
    /// `Busy` if another process holds it, `Storage` if the file cannot be created.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                // A process that looks whether the lock is held holds it for a moment.
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(storage("lock", path, error)),
            }
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("another process holds {}", path.display()),
        ))
    }

    /// Takes a lock, and waits for it as long as it takes. Blocks.
    pub(crate) fn wait(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        file.lock().map_err(|error| storage("lock", path, error))?;
        Ok(Self { file })
    }

    /// True if it is held.
    ///
    /// # Errors
    /// `Storage` if that cannot be found out.
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
    /// Lets go in so many words: a child that another thread has just forked holds the same open file until it becomes
    /// its program, and closing ours alone would leave it locked until then.
    fn drop(&mut self) {
        // A lock that cannot be let go of goes with its file.
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
