//! Read-only tools for the files below one folder. What they may open is decided in `root.rs` alone.

mod glob;
mod hits;
mod ignored;
mod lines;
mod list;
mod listing;
mod part;
mod read;
mod root;
mod search;
mod show;
mod walk;
mod work;

use std::path::PathBuf;

use adjutant_tool::Tools;

use crate::{Error, ErrorKind};
use list::ListFiles;
use read::ReadFile;
use root::Root;
use search::SearchText;

/// A folder whose files may be listed, read and searched, and which nothing leads out of; cheap to clone.
///
/// Every path is opened beneath a handle of the folder: `..`, absolute paths and links that lead out are refused, also
/// when a link is swapped in while a tool works. Links that stay inside are followed when named, never while walking.
/// What `.gitignore` and `.ignore` name is left out of lists and searches, hidden files too; `.git` is never shown.
#[derive(Debug, Clone)]
pub struct Files {
    root: Root,
}

impl Files {
    /// The files below a folder.
    ///
    /// # Errors
    /// `Root` if it is no directory, or cannot be opened.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = root.into();
        let root = Root::open(&path).map_err(|error| {
            let message = format!("cannot open the folder for files: {}", path.display());
            Error::new(ErrorKind::Root, message).with_source(error)
        })?;
        Ok(Self { root })
    }

    /// The toolbox `files`: `list_files`, `read_file` and `search_text`, all of them pure.
    pub fn toolbox(&self) -> Tools {
        Tools::new("files")
            .tool(ListFiles::new(self.root.clone()))
            .tool(ReadFile::new(self.root.clone()))
            .tool(SearchText::new(self.root.clone()))
    }
}
