//! Undo: what agents changed is kept as it was, and put back: those files and nothing else.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::ToolError;
use cap_std::{ambient_authority, fs::Dir};

use crate::{
    Error, ErrorKind, Files,
    change::{Change, FileChange, place, present, put, remove},
    digest::Digest,
};

/// The largest number of bytes that one folder keeps.
const MAX_KEPT: u64 = 4 * 1024 * 1024 * 1024;

/// Keeps files as they were before an agent changed them, each under its digest, in a folder of its own.
///
/// What was changed is in the log of the run, as notes that [`FileChange::of_note`] reads. Clones share the folder.
#[derive(Debug, Clone)]
pub struct Undo {
    folder: Arc<PathBuf>,
}

/// What putting a file back means.
enum Restore {
    Put(Vec<u8>, Option<u32>),
    Delete(u32),
    Nothing,
}

impl Undo {
    /// Keeps files in this folder, which is made when the first is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Arc::new(folder.into()) }
    }

    /// Keeps what these changes are about to replace.
    pub(crate) fn keep(&self, changes: &[Change]) -> Result<(), ToolError> {
        let kept = changes.iter().filter_map(|change| change.before.as_ref()).try_for_each(|before| {
            let Some(name) = before.digest.name() else { return Ok(()) };
            self.put(name, &before.bytes)
        });
        kept.map_err(|error| {
            let message = format!("no file was changed, because what is there cannot be kept for an undo: {error}");
            ToolError::failed(message)
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let dir = self.open(true)?;
        if dir.symlink_metadata(name).is_ok() {
            return Ok(());
        }
        let used: u64 = dir.entries()?.filter_map(|it| it.ok()?.metadata().ok()).map(|it| it.len()).sum();
        if used + bytes.len() as u64 > MAX_KEPT {
            let message = format!("{} is full: it keeps {MAX_KEPT} bytes at most", self.folder.display());
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        put(&dir, Path::new(name), bytes, None)
    }

    /// Opens the folder, which is for its owner alone.
    fn open(&self, make: bool) -> io::Result<Dir> {
        if make {
            fs::create_dir_all(&*self.folder)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&*self.folder, fs::Permissions::from_mode(0o700))?;
            }
        }
        Dir::open_ambient_dir(&*self.folder, ambient_authority())
    }

    /// Puts files back as they were before these changes, which stand in the order of the log: the newest last. Returns
    /// the files that are now other than before the call.
    ///
    /// A file that the agent created is deleted, with the folders that were made for it if nothing else is in them. All
    /// is looked at before anything is written. It blocks its thread.
    ///
    /// # Errors
    /// `Undo` if a file was changed since by somebody else, if what was there is not kept, or if a file cannot be
    /// written: those that were put back by then are named.
    pub fn restore(&self, files: &Files, changes: &[FileChange]) -> Result<Vec<PathBuf>, Error> {
        let mut by_path: BTreeMap<&str, Vec<&FileChange>> = BTreeMap::new();
        changes.iter().for_each(|change| by_path.entry(&change.path).or_default().push(change));
        let (mut plan, mut problems) = (Vec::new(), Vec::new());
        for (path, changes) in by_path {
            match self.plan(files, path, &changes) {
                Ok(restore) => plan.push((PathBuf::from(path), restore)),
                Err(why) => problems.push(format!("{path}: {why}")),
            }
        }
        if !problems.is_empty() {
            return Err(Error::new(ErrorKind::Undo, format!("nothing was put back: {}", problems.join("; "))));
        }
        let mut done = Vec::new();
        for (path, restore) in plan {
            let dir = files.root().dir();
            let restored = match restore {
                Restore::Nothing => continue,
                Restore::Put(bytes, mode) => put(dir, &path, &bytes, permissions(mode)),
                Restore::Delete(folders) => remove(dir, &path).map(|()| {
                    let made = path.ancestors().skip(1).take(folders as usize);
                    // A folder that holds something else stays.
                    made.take_while(|folder| dir.remove_dir(folder).is_ok()).for_each(drop);
                }),
            };
            if let Err(error) = restored {
                let message = format!("{} cannot be put back: {error}; put back before it: {done:?}", path.display());
                return Err(Error::new(ErrorKind::Undo, message).with_source(error));
            }
            done.push(path);
        }
        Ok(done)
    }

    fn plan(&self, files: &Files, path: &str, changes: &[&FileChange]) -> Result<Restore, String> {
        let Some(first) = changes.first() else { return Ok(Restore::Nothing) };
        let place = place(files.root(), path).map_err(|error| error.message.to_string())?;
        if place != Path::new(path) {
            return Err("a link leads elsewhere now".to_owned());
        }
        let now = present(files.root(), &place).map_err(|error| error.message.to_string())?;
        let found = now.as_ref().map(|it| &it.digest);
        if found == first.before.as_ref() {
            return Ok(Restore::Nothing);
        }
        // An earlier undo, or a crash between a note and its change, may have left it in any state that the log knows.
        if changes.iter().all(|change| found != change.after.as_ref() && found != change.before.as_ref()) {
            return Err("somebody else changed it since".to_owned());
        }
        let Some(wanted) = &first.before else {
            let made: u32 = changes.iter().map(|change| change.folders).max().unwrap_or_default();
            return Ok(Restore::Delete(made));
        };
        let name = wanted.name().ok_or("the log names no digest")?;
        let kept = self.open(false).and_then(|dir| dir.read(name));
        let bytes = kept.map_err(|error| format!("what was there is not kept: {error}"))?;
        if Digest::of(&bytes) != *wanted {
            return Err("what was kept is damaged".to_owned());
        }
        Ok(Restore::Put(bytes, first.mode))
    }
}

#[cfg(unix)]
fn permissions(mode: Option<u32>) -> Option<cap_std::fs::Permissions> {
    use cap_std::fs::PermissionsExt;
    mode.map(|mode| cap_std::fs::Permissions::from_mode(mode & 0o7777))
}

#[cfg(not(unix))]
fn permissions(_: Option<u32>) -> Option<cap_std::fs::Permissions> {
    None
}
