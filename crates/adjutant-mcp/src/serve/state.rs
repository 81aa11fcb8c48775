//! The state that a client returns with an answer: signed, so that it cannot be forged, and bound to the question.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{ErrorKind as IoKind, Read, Write},
    path::Path,
};

use adjutant_agent::{Digest, LogId, PauseId};
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, ErrorKind};

/// The longest accepted state, in bytes.
const MAX_STATE: usize = 256 * 1024;

/// The key of a host.
#[derive(Clone)]
pub(super) struct Seal(RequestStateCodec);

/// A run that waits for answers of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Parked {
    pub(super) session: LogId,
    /// The number of entries that were there before its run.
    pub(super) from: usize,
    /// The questions, by the names of their answers.
    pub(super) asked: BTreeMap<String, ShownPause>,
    /// The time after which no answer counts, in milliseconds since 1970-01-01 UTC.
    pub(super) until_ms: u64,
}

/// A pause as it was sent to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownPause {
    pub(super) pause: PauseId,
    pub(super) digest: Digest,
}

impl Seal {
    /// A random key, lost with the process.
    pub(super) fn random() -> Self {
        Self::new(&new_key())
    }

    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(RequestStateCodec::new_unchecked(key.to_vec()))
    }

    /// Signs the state of a request for `what`.
    pub(super) fn close(&self, what: &str, parked: &Parked) -> String {
        // A struct of strings and numbers is always JSON.
        let body = serde_json::to_vec(parked).unwrap_or_default();
        self.0
            .seal_with(&body, &SealOptions::new().associated_data(what.as_bytes()))
    }

    /// The state, if this key signed it for `what` and its time is not over; else the reason why not.
    pub(super) fn open(
        &self,
        what: &str,
        state: &str,
        now_ms: u64,
    ) -> Result<Parked, &'static str> {
        const FOREIGN: &str = "this request state was not given out here for this request";
        let state = Some(state)
            .filter(|state| state.len() <= MAX_STATE)
            .ok_or(FOREIGN)?;
        let body = self
            .0
            .open_with(state, what.as_bytes())
            .map_err(|_| FOREIGN)?;
        let parked: Parked = serde_json::from_slice(&body).map_err(|_| FOREIGN)?;
        if parked.until_ms <= now_ms {
            return Err("the time for an answer is over: call again");
        }
        Ok(parked)
    }
}

/// Reads a key of 32 bytes; creates one that is private to this user if it does not exist.
pub(super) fn read_key(path: &Path) -> Result<[u8; 32], Error> {
    let unavailable = |error: std::io::Error| {
        let message = format!(
            "the key of the server cannot be read or made: {}",
            path.display()
        );
        Error::new(ErrorKind::Unavailable, message).with_source(error)
    };
    match open_key(path, OpenOptions::new().write(true).create_new(true)) {
        Ok(mut file) => {
            let key = new_key();
            file.write_all(&key)
                .and_then(|()| file.sync_all())
                .map_err(unavailable)?;
            return Ok(key);
        }
        Err(error) if error.kind() == IoKind::AlreadyExists => {}
        Err(error) => return Err(unavailable(error)),
    }
    let invalid = |why: &str| {
        Err(Error::new(
            ErrorKind::Invalid,
            format!("{why}: {}", path.display()),
        ))
    };
    let mut file = open_key(path, OpenOptions::new().read(true)).map_err(unavailable)?;
    if is_shared(&file.metadata().map_err(unavailable)?) {
        return invalid("others may read the key of the server, hint: give it mode 0600");
    }
    let mut key = [0; 32];
    match file.read_exact(&mut key).and_then(|()| file.read(&mut [0])) {
        Ok(0) => Ok(key),
        Ok(_) => invalid("a key has 32 bytes, and this file has more"),
        Err(_) => invalid("a key has 32 bytes, and this file has fewer"),
    }
}

#[cfg(unix)]
fn open_key(path: &Path, options: &mut OpenOptions) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600).open(path)
}

#[cfg(not(unix))]
fn open_key(path: &Path, options: &mut OpenOptions) -> std::io::Result<fs::File> {
    options.open(path)
}

#[cfg(unix)]
fn is_shared(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_shared(_: &fs::Metadata) -> bool {
    false
}

/// 244 random bits.
fn new_key() -> [u8; 32] {
    let mut key = [0; 32];
    let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
    key[..16].copy_from_slice(one.as_bytes());
    key[16..].copy_from_slice(other.as_bytes());
    key
}
