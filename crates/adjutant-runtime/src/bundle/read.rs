//! Reads an agent from one file that nobody vouches for: nothing of it is unpacked before all of it was checked.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{DIGEST, DIGEST_LINE, FOLDERS, List, ListedFile, MAGIC, MAX_LIST, VERSION, list};
use crate::{
    error::{Error, ErrorKind},
    files::{Sync, make_folder, open_regular, private, read_json, remove_folder, storage, sync_folder, write_json},
    home::Home,
    manifest::needs,
    trust::{Reach, Trust, reach},
    wants::Wants,
    workspace::{AgentFile, Lock, Prepared, Workspace},
};

/// The greatest file that is read: 16 GiB.
const MAX_BYTES: u64 = 16 << 30;
/// Folders that every agent has, beside those that go along.
const MADE: [&str; 2] = ["logs", "tmp"];
/// The prefix of the names of folders that are not whole yet.
const PART: &str = ".import-";

/// An agent that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// Its new id.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// The wants of the agent.
    pub wants: Wants,
}

/// Reads an agent from a file into a folder of agents, under a new id, and under another name if one is given.
///
/// Nobody vouches for the file: an agent that wants anything is only let in if `trust` says so.
///
/// # Errors
/// `Untrusted`, with all that it wants, if that is not trusted; `Invalid` if the file is damaged, of a newer version, or holds what no agent has; `Exists` if there is an agent of the
/// name; `Busy` if another import is under way; `Storage` if it cannot be read or unpacked.
pub fn import(home: &Home, from: &Path, name: Option<&str>, trust: &Trust) -> Result<Import, Error> {
    let mut bundle = Bundle::open(from)?;
    list::check(&bundle.list.files).map_err(|error| within(from, &error))?;
    home.make()?;
    let lock = Lock::take(&home.root().join("import.lock"))?;
    clean(home)?;
    let name: Arc<str> = name.map_or_else(|| Arc::clone(&bundle.list.agent), Arc::from);
    if home.entries()?.all.iter().any(|entry| entry.name == name) {
        let text = format!("there is an agent of this name already: {name}; hint: --name gives it another one");
        return Err(Error::new(ErrorKind::Exists, text));
    }
    let id = Uuid::now_v7();
    let part = home.root().join(format!("{PART}{id}"));
    let done = bundle.unpack(&part).and_then(|()| settle(&part, id, &name).map_err(|error| within(from, &error)));
    let done = done.and_then(|()| {
        let wants = Wants::of_agent(&Workspace::at(&part))?;
        trust.admit(&wants.clone().with_content(&bundle.digest))?;
        let folder = home.workspace(id);
        fs::rename(&part, folder.root()).map_err(|error| storage("make", folder.root(), error))?;
        sync_folder(home.root())?;
        Ok(wants)
    });
    let wants = done.inspect_err(|_| {
        // The rest of it is deleted by the next import at the latest.
        let _ = remove_folder(&part);
    })?;
    drop(lock);
    home.touch()?;
    Ok(Import { id, name, wants })
}

/// Returns the wants of an agent in a file, as an import would find them; nothing of it is kept.
///
/// # Errors
/// As [`import`].
pub fn inspect(from: &Path) -> Result<Wants, Error> {
    let mut bundle = Bundle::open(from)?;
    list::check(&bundle.list.files).map_err(|error| within(from, &error))?;
    let (id, name) = (Uuid::now_v7(), Arc::clone(&bundle.list.agent));
    let part = std::env::temp_dir().join(format!("adjutant{PART}{id}"));
    let settled = bundle.unpack(&part).and_then(|()| settle(&part, id, &name).map_err(|error| within(from, &error)));
    let wants = settled.and_then(|()| Wants::of_agent(&Workspace::at(&part)));
    let wants = wants.map(|wants| wants.with_content(&bundle.digest));
    remove_folder(&part)?;
    wants
}

/// Deletes what imports left that were interrupted.
fn clean(home: &Home) -> Result<(), Error> {
    let entries = fs::read_dir(home.root()).map_err(|error| storage("read", home.root(), error))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PART) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

/// A file whose digest is right.
struct Bundle {
    path: PathBuf,
    file: BufReader<File>,
    list: List,
    /// Of all of it.
    digest: String,
}

impl Bundle {
    fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |error| storage("read", path, error);
        let mut file = BufReader::new(open_regular(path)?);
        let length = file.get_ref().metadata().map_err(wrong)?.len();
        let (first, version) = first_line(&mut file).map_err(wrong)?;
        match version {
            Some(version) if version > VERSION => {
                let text = format!("{} is of version {version}, and this program reads {VERSION}", path.display());
                return Err(Error::new(ErrorKind::Invalid, format!("{text}; hint: a newer program reads it")));
            }
            Some(VERSION) => {}
            _ => return Err(Error::new(ErrorKind::Invalid, format!("{} is no exported agent", path.display()))),
        }
        if length > MAX_BYTES {
            return Err(Error::new(ErrorKind::Invalid, format!("{} is longer than 16 GiB", path.display())));
        }
        let Some(digest) = digest(&mut file, length).map_err(wrong)? else {
            let text = format!("{} is damaged: its digest is not that of its bytes", path.display());
            return Err(Error::new(ErrorKind::Invalid, text));
        };
        file.seek(SeekFrom::Start(first)).map_err(wrong)?;
        let (second, list) = second_line(&mut file, path)?;
        let files = list.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.size));
        if files.and_then(|sum| sum.checked_add(first + second + DIGEST_LINE)) != Some(length) {
            let text = format!("{} is damaged: its files are not as long as they should be", path.display());
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        Ok(Self { path: path.to_owned(), file, list, digest })
    }

    /// Unpacks all files into a new folder.
    fn unpack(&mut self, folder: &Path) -> Result<(), Error> {
        make_folder(folder)?;
        // Folders without files are not in the list, and an agent works in them all the same.
        for name in FOLDERS.iter().chain(&MADE) {
            make_folder(&folder.join(name))?;
        }
        for listed in &self.list.files {
            let to = folder.join(&listed.path);
            make_folder(to.parent().unwrap_or(folder))?;
            let mut file = create(&to, listed).map_err(|error| storage("make", &to, error))?;
            let copied = io::copy(&mut (&mut self.file).take(listed.size), &mut file);
            let copied = copied.and_then(|count| file.sync_all().map(|()| count));
            if copied.map_err(|error| storage("write", &to, error))? != listed.size {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("{} was changed while it was read", self.path.display()),
                ));
            }
        }
        Ok(())
    }
}

fn create(path: &Path, listed: &ListedFile) -> io::Result<File> {
    let mut options = OpenOptions::new();
    private(options.write(true).create_new(true));
    #[cfg(unix)]
    if listed.executable {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o700);
    }
    #[cfg(not(unix))]
    let _ = listed.executable;
    options.open(path)
}

/// The length of the first line, and the version that it names.
fn first_line(file: &mut BufReader<File>) -> io::Result<(u64, Option<u32>)> {
    let mut line = Vec::new();
    let length = file.take(64).read_until(b'\n', &mut line)?;
    let line = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix('\n'));
    Ok((length as u64, line.and_then(|line| line.strip_prefix(MAGIC)?.parse().ok())))
}

/// The length of the second line, and what it says.
fn second_line(file: &mut BufReader<File>, path: &Path) -> Result<(u64, List), Error> {
    let mut line = Vec::new();
    let read = file.take(MAX_LIST).read_until(b'\n', &mut line).map_err(|error| storage("read", path, error))?;
    match serde_json::from_slice(&line) {
        Ok(list) if line.ends_with(b"\n") => Ok((read as u64, list)),
        Ok(_) => {
            Err(Error::new(ErrorKind::Invalid, format!("{} has a list of files that does not end", path.display())))
        }
        Err(error) => {
            let text = format!("{} has a list of files that cannot be read", path.display());
            Err(Error::new(ErrorKind::Invalid, text).with_source(error))
        }
    }
}

/// The digest at the end, if it is that of all that is before it.
fn digest(file: &mut BufReader<File>, length: u64) -> io::Result<Option<String>> {
    let Some(end) = length.checked_sub(DIGEST_LINE) else { return Ok(None) };
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    let (mut left, mut buffer) = (end, vec![0; 64 << 10]);
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = file.read(&mut buffer[..most])?;
        if count == 0 {
            return Ok(None);
        }
        digest.update(&buffer[..count]);
        left -= count as u64;
    }
    let mut line = Vec::new();
    file.take(DIGEST_LINE + 1).read_to_end(&mut line)?;
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((line == format!("{DIGEST}{hex}\n").into_bytes()).then_some(hex))
}

/// Gives the agent its new id and its name, and sees that nothing in it points out of its folder.
fn settle(folder: &Path, id: Uuid, name: &str) -> Result<(), Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
        let text = format!("an agent cannot have this name: {name:?}: letters, digits, `_` and `-`, 64 at most");
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    let (agent, prepared) = (folder.join("agent.json"), folder.join("prepared.json"));
    let created_ms = read_json::<Value>(&agent)?["created_ms"].as_u64().unwrap_or_default();
    let mut made: Prepared = read_json(&prepared).map_err(|error| {
        Error::new(ErrorKind::Invalid, "prepared.json holds no manifest that can be read").with_source(error)
    })?;
    if let Some(problem) = reach(&made.resolved.manifest).into_iter().find_map(outside) {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("prepared.json points out of the agent's folder: {problem}"),
        ));
    }
    made.resolved.manifest.name = name.into();
    // There is one manifest, the one that runs; and what it needs is told by it, not by what stands beside it.
    made.resolved.needs = needs(&made.resolved.manifest);
    write_json(&prepared, &made, Sync::Disk)?;
    let resolved = Arc::new(made.resolved);
    write_json(&agent, &AgentFile { id, created_ms, resolved }, Sync::Disk)
}

/// Returns the part of a manifest that would lie outside its agent's folder, if there is one.
fn outside(reach: Reach<'_>) -> Option<String> {
    match reach {
        Reach::Copied(path) | Reach::Inside(path) => (!is_inside(path)).then(|| path.display().to_string()),
        // It does not mean the folder of the agent, wherever it points.
        Reach::Root(path) => {
            let hint = "without `root`, a toolbox works in the agent's own folder";
            Some(format!("{}, the `root` of a toolbox; hint: {hint}", path.display()))
        }
        Reach::Program(tool) => {
            // A name is looked for in PATH; what is between means another file in each folder.
            let is_name = tool.binary.components().count() == 1 && is_inside(&tool.binary);
            if !is_name && !is_place(&tool.binary) {
                return Some(format!("{}, the program of a tool", tool.binary.display()));
            }
            let mut reached = tool.sandbox.read.iter().chain(&tool.sandbox.write);
            let wrong = reached.find(|path| !is_place(path))?;
            Some(format!("{}, what the program of a tool reaches", wrong.display()))
        }
        Reach::Provider(_)
        | Reach::Options(..)
        | Reach::Peer(_)
        | Reach::Database(_)
        | Reach::Commands(..)
        | Reach::Pages(_) => None,
    }
}

/// True if a path means the same for every process: below these folders, none does.
fn is_place(path: &Path) -> bool {
    let is_shifty = ["/proc", "/dev"].iter().any(|it| path.starts_with(it));
    path.is_absolute() && !is_shifty && !path.components().any(|it| it == Component::ParentDir)
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Says in which file it was found.
fn within(file: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("{} cannot be imported: {error}", file.display())).with_source(error.clone())
}
