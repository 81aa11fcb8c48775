//! Imports an agent from an untrusted file: it is checked completely before anything is unpacked.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    DIGEST, DIGEST_LINE, FOLDERS, List, ListedFile, MAGIC, MAX_LIST, VERSION, list, settle::settle,
};
use crate::{
    error::{Error, ErrorKind},
    files::{make_folder, open_regular, private, remove_folder, storage, sync_folder},
    home::Home,
    trust::Trust,
    wants::Wants,
    workspace::{Lock, Workspace},
};

/// The maximum size of a file: 16 GiB.
const MAX_BYTES: u64 = 16 << 30;
/// Directories that every agent has, in addition to the included ones.
const MADE: [&str; 2] = ["logs", "tmp"];
/// The prefix of the names of incomplete directories.
const PART: &str = ".import-";

/// An imported agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// Its new id.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// The permissions that the agent requests.
    pub wants: Wants,
}

/// The changes to an agent at its destination.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Another name.
    pub name: Option<Arc<str>>,
    /// The directory that replaces the manifest's directory, for toolboxes with directories next to it.
    pub root: Option<PathBuf>,
    /// Single fields of the manifest, by their dotted paths, as `process_tools.jq.binary`.
    pub set: BTreeMap<String, Value>,
}

impl ImportOptions {
    /// Changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another name.
    #[must_use]
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// Sets the directory that replaces the manifest's directory, for toolboxes that worked next to it.
    #[must_use]
    pub fn root(self, root: impl Into<PathBuf>) -> Self {
        Self {
            root: Some(root.into()),
            ..self
        }
    }

    /// Sets a single field of the manifest, by its dotted path.
    #[must_use]
    pub fn set(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set.insert(field.into(), value.into());
        self
    }
}

/// Imports an agent from a file into a directory of agents, under a new id, with changes.
///
/// Nothing from the original place is needed except what its bundle lists: programs from elsewhere are looked up here.
/// The file is untrusted: an agent that requests permissions is accepted only if `trust` permits them.
///
/// # Errors
/// `Untrusted`, with the requested permissions, if they are not trusted; `Invalid` if the file is damaged, has a newer
/// version, or contains a file that no agent has; `Pull` if a program is missing or does not match its digest in the
/// manifest; `Exists` if there is an agent with the name; `Busy` if another import is running; `Storage` if the file
/// cannot be read or unpacked.
pub fn import(
    home: &Home,
    from: &Path,
    options: &ImportOptions,
    trust: &Trust,
) -> Result<Import, Error> {
    let mut bundle = Bundle::open(from)?;
    list::check(&bundle.list.files).map_err(|error| within(from, &error))?;
    home.make()?;
    let lock = Lock::take(&home.root().join("import.lock"))?;
    clean(home)?;
    let name: Arc<str> = options
        .name
        .clone()
        .unwrap_or_else(|| Arc::clone(&bundle.list.agent));
    if home.entries()?.all.iter().any(|entry| entry.name == name) {
        let text = format!(
            "there is an agent of this name already: {name}; hint: --name gives it another one"
        );
        return Err(Error::new(ErrorKind::Exists, text));
    }
    let id = Uuid::now_v7();
    let part = home.root().join(format!("{PART}{id}"));
    let settled = || settle(&part, id, &name, options).map_err(|error| within(from, &error));
    let done = bundle.unpack(&part).and_then(|()| settled());
    let done = done.and_then(|()| {
        let wants = Wants::from_agent(&Workspace::at(&part))?;
        trust.admit(&wants.clone().with_content(&bundle.digest))?;
        let folder = home.workspace(id);
        fs::rename(&part, folder.root()).map_err(|error| storage("make", folder.root(), error))?;
        sync_folder(home.root())?;
        Ok(wants)
    });
    let wants = done.inspect_err(|_| {
        // The next import deletes the rest of it.
        let _ = remove_folder(&part);
    })?;
    drop(lock);
    home.touch()?;
    Ok(Import { id, name, wants })
}

/// Returns the permissions that an agent in a file requests, as an import would find them; stores nothing.
///
/// # Errors
/// Like [`import`].
pub fn inspect(from: &Path, options: &ImportOptions) -> Result<Wants, Error> {
    let mut bundle = Bundle::open(from)?;
    list::check(&bundle.list.files).map_err(|error| within(from, &error))?;
    let (id, name) = (Uuid::now_v7(), Arc::clone(&bundle.list.agent));
    let part = std::env::temp_dir().join(format!("adjutant{PART}{id}"));
    let settled = || settle(&part, id, &name, options).map_err(|error| within(from, &error));
    let settled = bundle.unpack(&part).and_then(|()| settled());
    let wants = settled.and_then(|()| Wants::from_agent(&Workspace::at(&part)));
    let wants = wants.map(|wants| wants.with_content(&bundle.digest));
    remove_folder(&part)?;
    wants
}

/// Deletes the remains of interrupted imports.
fn clean(home: &Home) -> Result<(), Error> {
    let entries = fs::read_dir(home.root()).map_err(|error| storage("read", home.root(), error))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PART) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

/// A file with a valid digest.
struct Bundle {
    path: PathBuf,
    file: BufReader<File>,
    list: List,
    /// The digest of the whole file.
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
                let text = format!(
                    "{} is of version {version}, and this program reads {VERSION}",
                    path.display()
                );
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("{text}; hint: a newer program reads it"),
                ));
            }
            Some(VERSION) => {}
            _ => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("{} is no exported agent", path.display()),
                ));
            }
        }
        if length > MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{} is longer than 16 GiB", path.display()),
            ));
        }
        let Some(digest) = digest(&mut file, length).map_err(wrong)? else {
            let text = format!(
                "{} is damaged: its digest is not that of its bytes",
                path.display()
            );
            return Err(Error::new(ErrorKind::Invalid, text));
        };
        file.seek(SeekFrom::Start(first)).map_err(wrong)?;
        let (second, list) = second_line(&mut file, path)?;
        let files = list
            .files
            .iter()
            .try_fold(0_u64, |sum, file| sum.checked_add(file.size));
        if files.and_then(|sum| sum.checked_add(first + second + DIGEST_LINE)) != Some(length) {
            let text = format!(
                "{} is damaged: its files are not as long as they should be",
                path.display()
            );
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            list,
            digest,
        })
    }

    /// Unpacks all files into a new directory.
    fn unpack(&mut self, folder: &Path) -> Result<(), Error> {
        make_folder(folder)?;
        // Directories without files are not in the list, but an agent needs them.
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

/// Returns the length of the first line, and its version.
fn first_line(file: &mut BufReader<File>) -> io::Result<(u64, Option<u32>)> {
    let mut line = Vec::new();
    let length = file.take(64).read_until(b'\n', &mut line)?;
    let line = std::str::from_utf8(&line)
        .ok()
        .and_then(|line| line.strip_suffix('\n'));
    Ok((
        length as u64,
        line.and_then(|line| line.strip_prefix(MAGIC)?.parse().ok()),
    ))
}

/// Returns the length and the content of the second line.
fn second_line(file: &mut BufReader<File>, path: &Path) -> Result<(u64, List), Error> {
    let mut line = Vec::new();
    let read = file
        .take(MAX_LIST)
        .read_until(b'\n', &mut line)
        .map_err(|error| storage("read", path, error))?;
    match serde_json::from_slice(&line) {
        Ok(list) if line.ends_with(b"\n") => Ok((read as u64, list)),
        Ok(_) => Err(Error::new(
            ErrorKind::Invalid,
            format!("{} has a list of files that does not end", path.display()),
        )),
        Err(error) => {
            let text = format!("{} has a list of files that cannot be read", path.display());
            Err(Error::new(ErrorKind::Invalid, text).with_source(error))
        }
    }
}

/// Returns the digest at the end, if it matches everything before it.
fn digest(file: &mut BufReader<File>, length: u64) -> io::Result<Option<String>> {
    let Some(end) = length.checked_sub(DIGEST_LINE) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    let (mut left, mut buffer) = (end, vec![0; 64 << 10]);
    while left > 0 {
        let most = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = file.read(&mut buffer[..most])?;
        if count == 0 {
            return Ok(None);
        }
        digest.update(&buffer[..count]);
        left -= count as u64;
    }
    let mut line = Vec::new();
    file.take(DIGEST_LINE + 1).read_to_end(&mut line)?;
    let hex: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok((line == format!("{DIGEST}{hex}\n").into_bytes()).then_some(hex))
}

/// Adds the file to an error.
fn within(file: &Path, error: &Error) -> Error {
    Error::new(
        error.kind(),
        format!("{} cannot be imported: {error}", file.display()),
    )
    .with_source(error.clone())
}
