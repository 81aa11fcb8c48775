//! The digest of a manifest's content. For an agent it is the same before and after its workspace was created.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    Error, ErrorKind, Manifest,
    files::storage,
    manifest::{ContextSpec, Instructions, NamedContext},
    provenance::{FileKind, digest_of, hex, pin_program},
    workspace::is_carried,
};

/// The maximum depth of skill directories, and the maximum number of files.
const MAX_DEPTH: usize = 32;
const MAX_FILES: usize = 10_000;
/// The maximum total size of hashed files of a manifest, in bytes.
const MAX_BYTES: u64 = 4 << 30;
/// The maximum size of a hashed file in a command line, in bytes.
const MAX_SCRIPT: u64 = 32 << 20;

/// The subject of a digest. Trust in one does not extend to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Of {
    /// A manifest.
    Manifest,
    /// An agent.
    Agent,
}

/// Returns the digest of a manifest with its agents' context, programs and data: `pinned` has the original digests of
/// files that the agent may have changed since.
///
/// # Errors
/// `Full` if the total size exceeds the maximum.
pub(super) fn digest(
    manifest: &Manifest,
    (of, own): (Of, &Path),
    pinned: impl Fn(&Path) -> Option<String>,
) -> Result<String, Error> {
    let (mut meant, mut hashed) = (manifest.clone(), Hashed::default());
    meant.name = "".into();
    for agent in &mut meant.agents {
        if let Some(Instructions::File { file }) = &mut agent.instructions {
            *file = hashed.content(file)?;
        }
        let told = std::mem::take(&mut agent.context)
            .into_iter()
            .filter_map(|it| hashed.told(it).transpose());
        agent.context = told.collect::<Result<_, _>>()?;
    }
    for folder in &mut meant.skill_folders {
        *folder = hashed.content(folder)?;
    }
    for data in &mut meant.data {
        // A workspace contains the explicit destination.
        data.to = data
            .to
            .take()
            .or_else(|| data.file.file_name().map(PathBuf::from));
        data.file = pinned(&data.file)
            .map_or_else(|| hashed.file(&data.file), Ok)?
            .into();
    }
    let mut scripts = Vec::new();
    for program in meant.programs_mut() {
        let pinned = pin_program(FileKind::Tool, program.path).map(|it| (it.sha256, it.bytes));
        *program.sha256 = Some(hashed.count(pinned)?.into());
        if let Some(inner) = carried(program.path, own).filter(|_| of == Of::Agent) {
            *program.path = inner.to_owned();
        }
        for word in program.args {
            scripts.extend(hashed.word(word)?);
        }
    }
    let text = serde_json::to_string(&(of, meant, scripts))
        .unwrap_or_else(|error| format!("no text: {error}"));
    Ok(hex(&Sha256::digest(text)))
}

/// Returns the path of a program in the directory of its agent, if it was included in a bundle.
pub(super) fn carried<'a>(binary: &'a Path, own: &Path) -> Option<&'a Path> {
    binary
        .strip_prefix(own)
        .ok()
        .filter(|inner| is_carried(inner))
}

/// Returns the digest of a content with an additional text.
pub(super) fn also(digest: &str, beside: &str) -> String {
    hex(&Sha256::digest(format!("{digest}\n{beside}")))
}

/// A hasher that counts the bytes of files.
#[derive(Default)]
struct Hashed {
    bytes: u64,
}

impl Hashed {
    /// Counts the digest of a file. A constant replaces the digest of an unreadable file; a file that is too large is
    /// an error.
    fn count(&mut self, found: Result<(String, u64), Error>) -> Result<String, Error> {
        let (sha256, bytes) = match found {
            Err(error) if error.kind() == ErrorKind::Full => return Err(error),
            found => found.unwrap_or_else(|_| ("none".to_owned(), 0)),
        };
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            let text = format!(
                "a manifest may name files of {MAX_BYTES} bytes in all, and this one names more"
            );
            return Err(Error::new(ErrorKind::Full, text));
        }
        Ok(sha256)
    }

    /// Returns the digest of a file, following links.
    fn file(&mut self, path: &Path) -> Result<String, Error> {
        let real = fs::canonicalize(path).map_err(|error| storage("find", path, error));
        self.count(real.and_then(|real| digest_of(&real)))
    }

    /// Returns the digest or the stamp of the file that a word of a command line names, such as the script of a shell.
    /// A relative path means a file of the working directory, which the agent may change.
    fn word(&mut self, word: &str) -> Result<Option<String>, Error> {
        let behind = word.split_once('=').map_or(word, |(_, behind)| behind);
        let mut paths = [word, behind]
            .into_iter()
            .map(Path::new)
            .filter(|path| path.is_absolute());
        let found = paths
            .find_map(|path| Some((path, fs::metadata(path).ok().filter(fs::Metadata::is_file)?)));
        Ok(match found {
            None => None,
            // Large files such as models or databases are not hashed: their timestamp changes with each write.
            Some((_, found)) if found.len() > MAX_SCRIPT => {
                Some(format!("{} {:?}", found.len(), found.modified().ok()))
            }
            Some((path, _)) => Some(self.file(path)?),
        })
    }

    /// Hashes a file in the context of agents; a missing optional one is omitted.
    fn told(&mut self, context: ContextSpec) -> Result<Option<ContextSpec>, Error> {
        let (file, name, optional) = match context {
            ContextSpec::File(file) => (file, None, false),
            ContextSpec::Named(NamedContext {
                file,
                name,
                optional,
            }) => (file, name, optional),
        };
        if optional && fs::symlink_metadata(&file).is_err() {
            return Ok(None);
        }
        Ok(Some(ContextSpec::Named(NamedContext {
            file: self.content(&file)?,
            name,
            optional: false,
        })))
    }

    /// Returns the name of a file or a directory with the digest of its content, instead of its path.
    fn content(&mut self, path: &Path) -> Result<PathBuf, Error> {
        let mut files = Vec::new();
        self.walk(path, Path::new(""), 0, &mut files)?;
        files.sort();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("{name} {}", hex(&Sha256::digest(files.join("\n")))).into())
    }

    fn walk(
        &mut self,
        root: &Path,
        below: &Path,
        depth: usize,
        files: &mut Vec<String>,
    ) -> Result<(), Error> {
        let path = root.join(below);
        if depth > MAX_DEPTH || files.len() > MAX_FILES {
            // A file that was not read can have any content, so it never matches a trusted content.
            files.push(format!("{} {below:?}", Uuid::now_v7()));
            return Ok(());
        }
        if !path.is_dir() {
            files.push(format!("{} {below:?}", self.file(&path)?));
            return Ok(());
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if files.len() > MAX_FILES + 1 {
                return Ok(());
            }
            self.walk(root, &below.join(entry.file_name()), depth + 1, files)?;
        }
        Ok(())
    }
}
