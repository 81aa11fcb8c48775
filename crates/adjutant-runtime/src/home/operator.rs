//! The operator of a directory of agents: holds a kernel lock while its process lives.

use std::{
    fs::{self, File, TryLockError},
    io::{Seek, Write},
    time::Duration,
};

use super::Home;
use crate::{
    error::{Error, ErrorKind},
    files::{make_folder, private, storage},
    workspace::Lock,
};

const FILE: &str = "operator.lock";
/// The number of attempts to acquire the lock, and the pause after each: a program that checks the lock holds it
/// briefly.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The exclusive right to operate a directory of agents, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Operator {
    home: Home,
    file: File,
}

impl Home {
    /// Acquires the exclusive right to operate the agents.
    ///
    /// # Errors
    /// `Busy` if another operator holds it; the message contains its process id. `Storage` if the directory cannot be
    /// used.
    pub fn operate(&self) -> Result<Operator, Error> {
        make_folder(self.root())?;
        let mut file = self.open_lock()?;
        for attempt in 1..=TRIES {
            match file.try_lock() {
                Ok(()) => {
                    let named = file.set_len(0).and_then(|()| file.rewind());
                    // The process id is only for messages: on a full disk, it must still be possible to stop and remove
                    // agents.
                    let _ = named.and_then(|()| write!(file, "{}", std::process::id()));
                    return Ok(Operator {
                        home: self.clone(),
                        file,
                    });
                }
                Err(TryLockError::WouldBlock) if attempt < TRIES => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => {
                    return Err(storage("lock", &self.root().join(FILE), error));
                }
            }
        }
        let who = self
            .holder()
            .map(|pid| format!(" (process {pid})"))
            .unwrap_or_default();
        let text = format!("another operator{who} works on {}", self.root().display());
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// True if an operator is running.
    ///
    /// # Errors
    /// `Storage` if that cannot be determined.
    pub fn is_operated(&self) -> Result<bool, Error> {
        Lock::is_held(&self.root().join(FILE))
    }

    /// Returns the process of the running operator, if it was stopped by a signal. Only known on Linux.
    pub fn frozen(&self) -> Option<u32> {
        let held = self.is_operated().unwrap_or(false);
        self.holder()
            .filter(|pid| held && crate::processes::is_stopped(*pid))
    }

    /// Returns the process of the operator, if it is known.
    pub fn holder(&self) -> Option<u32> {
        fs::read_to_string(self.root().join(FILE))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    fn open_lock(&self) -> Result<File, Error> {
        let path = self.root().join(FILE);
        let file = private(
            File::options()
                .create(true)
                .read(true)
                .write(true)
                .truncate(false),
        )
        .open(&path);
        file.map_err(|error| storage("open", &path, error))
    }
}

impl Operator {
    /// Returns the directory of agents.
    pub fn home(&self) -> &Home {
        &self.home
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Removes the id of a process that is no longer the operator.
        let _ = self.file.set_len(0);
    }
}
