//! The directory of an engine, and its content if it was not prepared.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

use super::store::place;
use crate::{Error, ErrorKind, Manifest, Overrides, Resolved, Workspace, manifest::DataSpec};

/// A directory. A temporary one is removed on drop.
#[derive(Debug)]
pub(super) struct Folder {
    own: Option<PathBuf>,
}

impl Folder {
    /// Returns the given directory or a temporary one, with its subdirectories if it is used.
    ///
    /// # Errors
    /// `Storage` if it cannot be created.
    pub(super) fn open(
        given: Option<Workspace>,
        is_used: bool,
    ) -> Result<(Self, Workspace), Error> {
        let (folder, workspace) = match given {
            Some(workspace) => (Self { own: None }, workspace),
            None => {
                let path = std::env::temp_dir().join(format!("adjutant-{}", Uuid::new_v4()));
                (
                    Self {
                        own: Some(path.clone()),
                    },
                    Workspace::at(path),
                )
            }
        };
        if !is_used {
            return Ok((Self { own: None }, workspace));
        }
        for path in [
            workspace.work(),
            workspace.state(),
            workspace.tmp(),
            workspace.file("home"),
        ] {
            make(&path)?;
        }
        Ok((folder, workspace))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(path) = &self.own {
            // If the removal fails, the system cleans its temporary directories later.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Resolves a manifest.
///
/// Reads files.
///
/// # Errors
/// `Manifest` if it is invalid.
pub(super) async fn resolve(path: &Path, overrides: Overrides) -> Result<Resolved, Error> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let loaded = Manifest::load(path, |name| std::env::var(name).ok())?;
        loaded.resolve(overrides)
    });
    let read = read.await.map_err(|error| {
        Error::new(ErrorKind::Init, "the manifest could not be read to its end").with_source(error)
    })?;
    Ok(read?)
}

/// Copies the data files of a manifest into the working directory, unless they exist already.
///
/// # Errors
/// `Storage` if a file cannot be copied, `Config` if its destination is outside the directory.
pub(super) fn lay(data: &[DataSpec], workspace: &Workspace) -> Result<(), Error> {
    for one in data {
        let name = one
            .file
            .file_name()
            .map(Path::new)
            .unwrap_or(Path::new("data"));
        let to = place(&workspace.work(), one.to.as_deref().unwrap_or(name))?;
        make(to.parent().unwrap_or(workspace.root()))?;
        if to.exists() {
            // The agents may have changed it.
            continue;
        }
        fs::copy(&one.file, &to)
            .map_err(|error| cannot("a data file cannot be laid there", &to, error))?;
    }
    Ok(())
}

/// Creates a private directory.
fn make(folder: &Path) -> Result<(), Error> {
    adjutant_llm::private::folder(folder)
        .map_err(|error| cannot("a folder of the workspace cannot be made", folder, error))
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Storage, format!("{what}: {}", path.display())).with_source(error)
}
