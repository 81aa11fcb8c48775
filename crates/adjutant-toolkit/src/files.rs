//! Read-only tools for the files below one directory. `root.rs` decides which paths are permitted.

pub(crate) mod copy;
pub(crate) mod encoding;
mod glob;
mod grep;
mod hits;
mod ignored;
mod lines;
mod list;
mod listing;
mod part;
pub(crate) mod read;
mod root;
mod search;
pub(crate) mod seen;
pub(crate) mod show;
mod sweep;
pub(crate) mod texts;
mod walk;
pub(crate) mod work;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::{Cancel, Tools};

use crate::{Error, ErrorKind, digest::Digest};
pub(crate) use copy::Copied;
use encoding::Encoding;
pub use encoding::decode_text;
use list::ListFiles;
use read::ReadFile;
pub(crate) use root::{Root, open_regular};
use search::SearchText;
use seen::Seen;
pub use texts::TextFiles;
use texts::Texts;

/// The maximum number of bytes of a file that may be changed.
pub(crate) const MAX_FILE: u64 = 8 * 1024 * 1024;

/// A directory whose files can be listed, read and searched, without access to anything outside. Cheap to clone.
///
/// Every path is opened relative to a handle of the directory: `..`, absolute paths and links that lead out are
/// refused, even if a link is created while a tool runs. Links that stay inside are followed when named, never while
/// walking. Paths that `.gitignore` and `.ignore` name, and hidden files, are omitted from lists and searches. `.git`
/// is always hidden, and so is `.adjutant/run`, which contains agents and their access tokens.
#[derive(Debug, Clone)]
pub struct Files {
    root: Root,
    /// The absolute path of the directory, without links.
    path: PathBuf,
    /// The states of the files that were read; shared by clones.
    seen: Seen,
    texts: Texts,
}

impl Files {
    /// The files below a directory.
    ///
    /// # Errors
    /// `Root` if it is no directory, or cannot be opened.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = root.into();
        let opened = path
            .canonicalize()
            .and_then(|path| Ok((Root::open(&path)?, path)));
        let (root, path) = opened.map_err(|error| {
            let message = format!("cannot open the folder for files: {}", path.display());
            Error::new(ErrorKind::Root, message).with_source(error)
        })?;
        Ok(Self {
            root,
            path,
            seen: Seen::default(),
            texts: Texts::default(),
        })
    }

    /// Hides this directory and everything below it; no effect if it is outside the root.
    ///
    /// # Errors
    /// `Root` if it cannot be found, or if it contains the root.
    pub fn without(self, folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let found = folder.canonicalize().map_err(|error| {
            let message = format!("cannot find the hidden folder: {}", folder.display());
            Error::new(ErrorKind::Root, message).with_source(error)
        })?;
        if self.path.starts_with(&found) {
            let message = format!(
                "the folder for files is in a hidden folder: {}",
                folder.display()
            );
            return Err(Error::new(ErrorKind::Root, message));
        }
        Ok(match found.strip_prefix(&self.path) {
            Ok(below) => Self {
                root: self.root.close(below.to_owned()),
                ..self
            },
            Err(_) => self,
        })
    }

    /// Reads and writes texts in the program that has them open, such as an editor. Its unsaved changes count as the
    /// content.
    #[must_use]
    pub fn lent_by(self, texts: Arc<dyn TextFiles>) -> Self {
        Self {
            texts: Texts::new(texts),
            ..self
        }
    }

    /// The toolbox `files`: `list_files`, `read_file` and `search_text`, all of them pure.
    pub fn toolbox(&self) -> Tools {
        Tools::new("files")
            .tool(ListFiles::new(self.root.clone()))
            .tool(ReadFile::new(
                self.root.clone(),
                self.seen.clone(),
                self.texts.clone(),
            ))
            .tool(SearchText::new(self.root.clone()))
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the absolute path of the directory, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the programs with open files.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Returns the files for a call that may be stopped.
    pub(crate) fn during(self, stop: &Cancel) -> Self {
        Self {
            texts: self.texts.during(stop),
            ..self
        }
    }

    /// Records the state of a file that was read or written; `None` if it was deleted.
    pub(crate) fn seen(&self, path: PathBuf, digest: Option<Digest>, encoding: Option<Encoding>) {
        self.seen.note(path, digest, encoding);
    }

    /// The encoding that a file was read in.
    pub(crate) fn encoding(&self, path: &Path) -> Option<Encoding> {
        self.seen.encoding(path)
    }

    /// Returns the last known state of a file.
    pub(crate) fn was_seen(&self, path: &Path) -> Option<Digest> {
        self.seen.digest(path)
    }
}
