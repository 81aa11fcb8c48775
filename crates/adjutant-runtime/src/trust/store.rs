//! The contents that the user has trusted: one file each, in the user's own directory, which no project can provide.

use std::{
    collections::BTreeSet,
    env, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    error::Error,
    files::{Sync, make_folder, storage, write_bytes},
    wants::Wants,
};

/// The contents that the user has trusted.
///
/// | path | what it is |
/// |---|---|
/// | `<digest>` | what was wanted when that content was trusted, for people; deleting it takes the trust back |
///
/// The directory and its files are private to their owner. Clones share the trust of this process.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    folder: Option<PathBuf>,
    held: Arc<Mutex<BTreeSet<String>>>,
}

impl TrustStore {
    /// Uses this directory, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
            held: Arc::default(),
        }
    }

    /// Uses the user's own directory: `adjutant/trust` in `XDG_STATE_HOME`, else in `~/.local/state`.
    ///
    /// Without either variable, trust is lost when the process exits.
    pub fn for_user() -> Self {
        let of = |variable: &str| {
            env::var_os(variable)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state =
            of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")));
        Self {
            folder: state.map(|state| state.join("adjutant/trust")),
            held: Arc::default(),
        }
    }

    /// Returns the directory, if trust outlives the process.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// True if a content with this digest was trusted.
    ///
    /// # Errors
    /// `Storage` if that cannot be determined.
    pub fn holds(&self, digest: &str) -> Result<bool, Error> {
        if self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(digest)
        {
            return Ok(true);
        }
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(digest)) else {
            return Ok(false);
        };
        match path.symlink_metadata() {
            Ok(found) => Ok(found.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(storage("read", &path, error)),
        }
    }

    /// Trusts this content.
    ///
    /// # Errors
    /// `Storage` if the file cannot be written; the trust still applies in this process.
    pub fn trust(&self, wants: &Wants) -> Result<(), Error> {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(wants.digest().to_owned());
        let Some(folder) = self
            .folder
            .as_ref()
            .filter(|folder| !folder.join(wants.digest()).is_file())
        else {
            return Ok(());
        };
        make_folder(folder)?;
        let lines: String = wants.iter().map(|want| format!("{want}\n")).collect();
        let text = format!("{}\n{lines}", wants.name().escape_debug());
        write_bytes(&folder.join(wants.digest()), text.as_bytes(), Sync::Disk)
    }
}
