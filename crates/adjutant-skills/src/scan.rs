//! Finds the skills of one root: through handles only, sorted and bounded.

use std::{
    io, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};

use crate::{
    Error, ErrorKind, FindingKind, Location, Root, Skill, SkillFile, Status,
    findings::{Findings, Strictness},
    folder::{Folder, Refused, bytes},
    limits::{
        MAX_DEPTH, MAX_ENTRIES, MAX_FILE_BYTES, MAX_FOLDERS, MAX_LISTED_DEPTH, MAX_LISTED_FILES,
        MAX_SKILLS, MAX_TOTAL_BYTES,
    },
    manifest::SkillReader,
    name,
    root::RootForm,
    skill::SkillListing,
};

/// The files that make a folder a skill; the first one takes precedence.
///
/// Source: `find_skill_md` of skills-ref 0.1.1, the reference validator of agentskills.io, November 2026.
pub(crate) const FILES: [&str; 2] = ["SKILL.md", "skill.md"];
/// Folders that are never searched for skills.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

/// The skills of one root.
///
/// # Errors
/// For a root that must exist: `Missing` and `Invalid` if it does not, or is not a folder; `Io` if it cannot be
/// opened.
pub(crate) fn scan(root: &Root, findings: &mut Findings) -> Result<Vec<Skill>, Error> {
    let dir = match open(root, Path::new("")) {
        Ok(dir) => Arc::new(dir),
        // Noticed by the sandbox, not by the system, so there is no code of the system.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && error.raw_os_error().is_none() =>
        {
            let message =
                "a link leads out of the directory, so the skills of this folder are not read";
            findings.warn(
                FindingKind::Link,
                Location::whole(root.path().display().to_string()),
                message,
            );
            return Ok(Vec::new());
        }
        Err(error) if root.is_required() => return Err(unopened(root.path(), error)),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                let message = format!("the folder of skills cannot be opened: {}", error.kind());
                findings.warn(
                    FindingKind::Unreadable,
                    Location::whole(root.path().display().to_string()),
                    message,
                );
            }
            return Ok(Vec::new());
        }
    };
    let mut scan = Scan {
        root,
        dir,
        base: PathBuf::new(),
        findings,
        skills: Vec::new(),
        folders: MAX_FOLDERS,
        left: EntryBudget(MAX_ENTRIES),
        bytes: MAX_TOTAL_BYTES,
    };
    let dir = scan
        .dir
        .try_clone()
        .map_err(|error| unopened(root.path(), error))?;
    if root.form() == RootForm::Plugin {
        let rules = scan.findings.replace_rules(Strictness::Strict);
        scan.children(&dir, Path::new(""), 0);
        scan.findings.replace_rules(rules);
    } else {
        scan.folder(&dir, Path::new(""), 0);
    }
    Ok(scan.skills)
}

/// Opens a directory below a root; links are followed, inside the directory around the root if there is one.
fn open(root: &Root, below: &Path) -> io::Result<Dir> {
    match root.place_within() {
        Some((directory, path)) => {
            let (around, path) = (
                Dir::open_ambient_dir(directory, ambient_authority())?,
                path.join(below),
            );
            if path.as_os_str().is_empty() {
                return Ok(around);
            }
            // An absolute link is refused even if it leads inside.
            around.open_dir(&path).or_else(|error| {
                let real = directory.join(&path).canonicalize()?;
                match real.strip_prefix(directory.canonicalize()?) {
                    Ok(inner) => around.open_dir(inner),
                    Err(_) => Err(error),
                }
            })
        }
        None => Dir::open_ambient_dir(root.path().join(below), ambient_authority()),
    }
}

fn unopened(path: &Path, error: io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(
            ErrorKind::Missing,
            format!("there is no folder of skills: {path}"),
        ),
        io::ErrorKind::NotADirectory => Error::new(
            ErrorKind::Invalid,
            format!("not a folder of skills: {path}"),
        ),
        _ => Error::new(
            ErrorKind::Io,
            format!("cannot open the folder of skills: {path}"),
        )
        .with_source(error),
    }
}

struct Scan<'a> {
    root: &'a Root,
    /// The root, or the directory that a followed link leads to.
    dir: Arc<Dir>,
    /// The path of `dir` below the root.
    base: PathBuf,
    findings: &'a mut Findings,
    skills: Vec<Skill>,
    /// The number of folders that may still be read.
    folders: usize,
    left: EntryBudget,
    /// The number of bytes of bodies that may still be kept.
    bytes: usize,
}

impl Scan<'_> {
    /// Takes a folder as a skill, or looks for skills in it.
    fn folder(&mut self, dir: &Dir, at: &Path, depth: usize) {
        if let Some(file) = self.skill_file(dir) {
            self.skill(at, file);
        } else if self.root.form() == RootForm::Free {
            self.children(dir, at, depth);
        }
    }

    /// Returns the file that makes a directory a skill.
    fn skill_file(&self, dir: &Dir) -> Option<&'static str> {
        let files = match self.root.form() {
            RootForm::Free => &FILES[..],
            RootForm::Plugin => &FILES[..1],
        };
        files
            .iter()
            .copied()
            .find(|file| dir.symlink_metadata(file).is_ok())
    }

    /// Looks for skills in the directories of a directory.
    fn children(&mut self, dir: &Dir, at: &Path, depth: usize) {
        let entries = match entries(dir, &mut self.left) {
            Ok((entries, is_cut)) => {
                if is_cut {
                    let message =
                        format!("more than {MAX_ENTRIES} entries; the rest is not looked at");
                    self.findings
                        .warn(FindingKind::TooMany, self.place(at), message);
                }
                entries
            }
            Err(error) => {
                let message = format!("the folder cannot be read: {}", error.kind());
                return self
                    .findings
                    .warn(FindingKind::Unreadable, self.place(at), message);
            }
        };
        for entry in entries
            .iter()
            .filter(|entry| !SKIPPED.contains(&entry.as_str()))
        {
            let inner = at.join(entry);
            let Ok(metadata) = dir.symlink_metadata(entry) else {
                continue;
            };
            if metadata.is_symlink() {
                self.link(dir, entry, &inner, depth);
            } else if metadata.is_dir() && !self.enter(dir, entry, &inner, depth) {
                return;
            }
        }
    }

    /// Enters a folder; false if no more are read.
    fn enter(&mut self, dir: &Dir, entry: &str, inner: &Path, depth: usize) -> bool {
        if depth == MAX_DEPTH {
            let message =
                format!("folders deeper than {MAX_DEPTH} below the root are not looked at");
            self.findings
                .warn(FindingKind::TooMany, self.place(inner), message);
            return false;
        }
        if self.folders == 0 {
            let message = format!("more than {MAX_FOLDERS} folders; the rest is not looked at");
            self.findings
                .warn(FindingKind::TooMany, self.place(inner), message);
            return false;
        }
        self.folders -= 1;
        match dir.open_dir_nofollow(entry) {
            Ok(dir) => self.folder(&dir, inner, depth + 1),
            Err(error) => {
                let message = format!("the folder cannot be opened: {}", error.kind());
                self.findings
                    .warn(FindingKind::Unreadable, self.place(inner), message);
            }
        }
        true
    }

    /// Follows a link to a directory if the root permits it, otherwise reports it. A link to a file within the root is
    /// ignored.
    fn link(&mut self, dir: &Dir, entry: &str, inner: &Path, depth: usize) {
        if dir.metadata(entry).is_ok_and(|metadata| !metadata.is_dir()) {
            return;
        }
        let message = if !self.root.follows_links() {
            "a link is not followed to skills; name the folder that it leads to as a root of its own"
        } else if depth == MAX_DEPTH || self.folders == 0 || self.is_loop(inner) {
            "a link is not followed: it leads back, or too many directories were read before it"
        } else {
            match open(self.root, inner).and_then(|dir| Ok((dir.try_clone()?, dir))) {
                Ok((handle, dir)) => {
                    self.folders -= 1;
                    let dir = mem::replace(&mut self.dir, Arc::new(dir));
                    let base = mem::replace(&mut self.base, inner.to_owned());
                    self.folder(&handle, inner, depth + 1);
                    (self.dir, self.base) = (dir, base);
                    return;
                }
                // A link to a file outside.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => return,
                Err(_) => "a link to skills leads nowhere, or out of the project",
            }
        };
        self.findings
            .warn(FindingKind::Link, self.place(inner), message);
    }

    /// True if a link leads to a directory that contains it.
    fn is_loop(&self, inner: &Path) -> bool {
        let path = self.root.path().join(inner);
        let around = path.parent().and_then(|parent| parent.canonicalize().ok());
        match (path.canonicalize(), around) {
            (Ok(target), Some(around)) => around.starts_with(target),
            _ => false,
        }
    }

    /// Reads the skill of a folder.
    fn skill(&mut self, at: &Path, file: &str) {
        let place = self.place(&at.join(file));
        if self.skills.len() == MAX_SKILLS {
            let message = format!("there are more than {MAX_SKILLS} skills; this one is not read");
            return self.findings.refuse(FindingKind::TooMany, place, message);
        }
        let below = at.strip_prefix(&self.base).unwrap_or(at);
        let folder = Folder::new(Arc::clone(&self.dir), below);
        let before = self.findings.violations();
        let Some(bytes) = self.bytes(&folder, file, &place) else {
            return;
        };
        let called = self.called(at);
        let manifest = SkillReader {
            file: &place,
            folder: &called,
            findings: self.findings,
        }
        .read(&bytes);
        let is_refused =
            self.root.form() == RootForm::Plugin && self.findings.violations() > before;
        let Some(manifest) = manifest.filter(|_| !is_refused) else {
            return;
        };
        let Some(left) = self.bytes.checked_sub(manifest.body.len()) else {
            let message = format!(
                "all skills together are larger than {MAX_TOTAL_BYTES} bytes; this one is not read"
            );
            return self.findings.refuse(FindingKind::TooMany, place, message);
        };
        self.bytes = left;
        let path = match shown(at) {
            path if path.is_empty() => called,
            path => path,
        };
        self.skills.push(Skill {
            manifest: Arc::new(manifest),
            scope: self.root.scope(),
            status: Status::Used,
            place,
            path: path.into(),
            files: Arc::new(listed(&folder, file, &mut self.left)),
            folder,
        });
    }

    fn bytes(&mut self, folder: &Folder, file: &str, place: &Location) -> Option<Vec<u8>> {
        let (kind, message) = match folder.file(file) {
            Ok((_, size)) if size > MAX_FILE_BYTES => (
                FindingKind::TooLarge,
                format!("the file is larger than {MAX_FILE_BYTES} bytes"),
            ),
            Ok((file, _)) => match bytes(file, MAX_FILE_BYTES + 1) {
                Ok(bytes) if bytes.len() as u64 <= MAX_FILE_BYTES => return Some(bytes),
                Ok(_) => (
                    FindingKind::TooLarge,
                    format!("the file is larger than {MAX_FILE_BYTES} bytes"),
                ),
                Err(error) => (
                    FindingKind::Unreadable,
                    format!("the file cannot be read: {}", error.kind()),
                ),
            },
            Err(Refused::NotAFile | Refused::IsFolder) => {
                (FindingKind::NotAFile, "it is not a regular file".to_owned())
            }
            Err(Refused::Outside) => (
                FindingKind::Link,
                "a link leads out of the skill's folder".to_owned(),
            ),
            Err(Refused::Missing) => (FindingKind::Link, "a link leads nowhere".to_owned()),
            Err(Refused::Io(error)) => (
                FindingKind::Unreadable,
                format!("the file cannot be opened: {}", error.kind()),
            ),
        };
        self.findings.refuse(kind, place.clone(), message);
        None
    }

    /// Returns the name of the folder of a skill.
    fn called(&self, at: &Path) -> String {
        let name = |path: &Path| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let root = || {
            self.root
                .path()
                .canonicalize()
                .ok()
                .and_then(|path| name(&path))
        };
        name(at).or_else(root).unwrap_or_default()
    }

    fn place(&self, at: &Path) -> Location {
        Location::whole(self.root.path().join(at).display().to_string())
    }
}

/// The number of entries that may still be read.
struct EntryBudget(usize);

/// The names in a folder, sorted, without hidden ones, and whether some were left out.
fn entries(dir: &Dir, left: &mut EntryBudget) -> io::Result<(Vec<String>, bool)> {
    let (mut names, mut is_cut) = (Vec::new(), false);
    for entry in dir.entries()? {
        let Some(fewer) = left.0.checked_sub(1) else {
            is_cut = true;
            break;
        };
        left.0 = fewer;
        // A name that is not UTF-8 cannot be a skill's name, and cannot be requested.
        if let Ok(name) = entry?.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok((names, is_cut))
}

/// The readable regular files next to a `SKILL.md`.
fn listed(folder: &Folder, skill: &str, left: &mut EntryBudget) -> SkillListing {
    let mut listed = SkillListing::default();
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        // One handle at a time, however many folders there are.
        let Ok(dir) = folder.inner(&at) else { continue };
        let Ok((names, is_cut)) = entries(&dir, left) else {
            continue;
        };
        listed.is_cut |= is_cut;
        for name in names {
            let Ok(metadata) = dir.symlink_metadata(&name) else {
                continue;
            };
            let path = at.join(&name);
            if metadata.is_dir() && path.components().count() <= MAX_LISTED_DEPTH {
                open.push(path);
            } else if metadata.is_dir() {
                listed.is_cut = true;
            } else if metadata.is_file() && path != Path::new(skill) {
                listed.files.push(SkillFile {
                    path: shown(&path).into(),
                    size: metadata.len(),
                });
            }
        }
    }
    listed.files.sort_by(|one, other| one.path.cmp(&other.path));
    listed.is_cut |= listed.files.len() > MAX_LISTED_FILES;
    listed.files.truncate(MAX_LISTED_FILES);
    listed
}

/// A relative path with slashes, on one line.
fn shown(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .map(|part| name::line(&part.as_os_str().to_string_lossy()))
        .collect();
    parts.join("/")
}
