//! Finds the files of an agent for an export, and checks file names for an import.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path},
    time::SystemTime,
};

use super::{FOLDERS, ListedFile, MAX_FILES, OWN_FILES};
use crate::{Error, ErrorKind, Workspace, files::storage};

/// The maximum number of bytes of a path.
const MAX_PATH: usize = 1_024;
/// The maximum number of directories above a file.
const MAX_DEPTH: usize = 64;

/// The files that were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FoundFiles {
    /// The included files, sorted.
    pub(super) files: Vec<ListedFile>,
    /// Omitted entries: links, pipes, devices, and files whose names are not UTF-8.
    pub(super) skipped: Vec<String>,
    /// The modification time of each file, if the system provides it.
    changed: Vec<Option<SystemTime>>,
}

/// Finds the files of an agent in its directories, except for an omitted directory.
pub(super) fn find(workspace: &Workspace, stays: Option<&str>) -> Result<FoundFiles, Error> {
    let mut found = FoundFiles::default();
    for folder in FOLDERS.into_iter().filter(|folder| Some(*folder) != stays) {
        found.walk(workspace.root(), folder, 0)?;
    }
    Ok(found)
}

impl FoundFiles {
    fn walk(&mut self, root: &Path, folder: &str, depth: usize) -> Result<(), Error> {
        let path = root.join(folder);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() && depth < MAX_DEPTH => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            _ => {
                self.skipped.push(folder.to_owned());
                return Ok(());
            }
        }
        let entries =
            fs::read_dir(&path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut names: Vec<_> = entries
            .map_err(|error| storage("read", &path, error))?
            .iter()
            .map(fs::DirEntry::file_name)
            .collect();
        names.sort();
        for name in names {
            let Some(name) = name.to_str() else {
                self.skipped.push(format!("{folder}/{}", name.display()));
                continue;
            };
            let inner = format!("{folder}/{name}");
            if is_volatile(&inner) {
                continue;
            }
            match fs::symlink_metadata(root.join(&inner)) {
                Ok(meta) if meta.is_dir() => self.walk(root, &inner, depth + 1)?,
                _ => self.add(root, &inner)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, root: &Path, name: &str) -> Result<(), Error> {
        let path = root.join(name);
        let meta = fs::symlink_metadata(&path).map_err(|error| storage("read", &path, error))?;
        if !meta.is_file() || refuse(name).is_some() {
            self.skipped.push(name.to_owned());
            return Ok(());
        }
        if self.files.len() == MAX_FILES {
            return Err(Error::new(
                ErrorKind::Full,
                format!("an agent may have {MAX_FILES} files to be exported"),
            ));
        }
        self.changed.push(meta.modified().ok());
        self.files.push(ListedFile {
            path: name.to_owned(),
            size: meta.len(),
            executable: is_executable(&meta),
        });
        Ok(())
    }
}

/// True if a database recreates this file: the shared memory of its log, or locks.
fn is_volatile(path: &str) -> bool {
    path.starts_with("state/") && (path.ends_with("-shm") || path.ends_with("-owners"))
}

#[cfg(unix)]
fn is_executable(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

/// Checks the names in a list.
///
/// # Errors
/// `Invalid` with the first file that is not permitted.
pub(super) fn check(files: &[ListedFile]) -> Result<(), Error> {
    if files.len() > MAX_FILES {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("it names more than {MAX_FILES} files"),
        ));
    }
    let mut seen = BTreeSet::new();
    for file in files {
        let why = match refuse(&file.path) {
            // On some file systems, names are case-insensitive.
            None if !seen.insert(file.path.to_lowercase()) => "it is named twice",
            None => continue,
            Some(why) => why,
        };
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("a file may not be unpacked: {:?}: {why}", file.path),
        ));
    }
    let missing = OWN_FILES
        .into_iter()
        .find(|name| !files.iter().any(|file| file.path == *name));
    match missing {
        Some(name) => Err(Error::new(
            ErrorKind::Invalid,
            format!("it holds no {name}"),
        )),
        None => Ok(()),
    }
}

/// Returns the reason if a file with this name is refused.
fn refuse(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH {
        return Some("its name is too long");
    }
    if path.contains(|c: char| c.is_control() || c == '\\' || c == ':') {
        return Some("its name holds a character that names of files may not have everywhere");
    }
    let parts: Vec<&str> = path.split('/').collect();
    let is_plain = |part: &&str| !matches!(*part, "" | "." | "..");
    let components = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !parts.iter().all(is_plain) || !components || parts.len() > MAX_DEPTH + 1 {
        return Some("it would lie elsewhere");
    }
    let is_own = OWN_FILES.contains(&path);
    let is_within = parts.len() > 1 && FOLDERS.contains(&parts[0]);
    (!is_own && !is_within).then_some("an agent has no such file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(path: &str, expect: Option<&str>) {
        assert_eq!(refuse(path), expect, "{path:?}");
    }

    #[test]
    fn names_are_refused_when_they_would_lie_elsewhere_or_are_none_of_an_agent() {
        for path in [
            "agent.json",
            "prepared.json",
            "tools/a/b",
            "work/a",
            "work/.git/config",
            "state/agent.db-wal",
            "skills/a/b",
        ] {
            refused(path, None);
        }
        let elsewhere = [
            "/etc/passwd",
            "../x",
            "work/../../x",
            "work//x",
            "work/./x",
            "work/",
            "",
            ".",
            "work/..",
        ];
        for path in elsewhere {
            refused(path, Some("it would lie elsewhere"));
        }
        for path in [
            "host.json",
            "status.json",
            "desired.json",
            "work",
            "logs/output.log",
            "tmp/x",
            "AGENT.JSON",
            "x/y",
        ] {
            refused(path, Some("an agent has no such file"));
        }
        for path in [
            "work/a\0b",
            "work/a\nb",
            "work\\..\\x",
            "C:/x",
            "work/a:stream",
        ] {
            refused(
                path,
                Some("its name holds a character that names of files may not have everywhere"),
            );
        }
        refused(
            &format!("work/{}", "x".repeat(1_024)),
            Some("its name is too long"),
        );
        refused(
            &format!("work{}", "/x".repeat(100)),
            Some("it would lie elsewhere"),
        );
    }
}
