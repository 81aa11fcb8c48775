//! Exports an agent to one file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    DIGEST, List, ListedFile, MAGIC, STATE, VERSION,
    list::{self, FoundFiles},
};
use crate::{
    error::{Error, ErrorKind},
    files::{open_regular, private, read_json, storage},
    home::Entry,
    manifest::{Manifest, ToolboxChoice},
    provenance::{FileKind, digest_of},
    workspace::{AgentFile, Lock, Prepared, TOOLS, Workspace},
};

/// The number of attempts to copy files that change in the meantime, and the interval between two.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// The contents of an export.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// True if sessions, memories, boards and notes are omitted.
    pub without_state: bool,
}

impl ExportOptions {
    /// Exports everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Omits sessions, memories, boards and notes: the agent starts without them at its destination.
    #[must_use]
    pub fn without_state(self) -> Self {
        Self {
            without_state: true,
        }
    }
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The number of exported files.
    pub files: usize,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Omitted entries: links, pipes, devices, and files whose names are not portable.
    pub skipped: Vec<String>,
    /// Its requirements at the destination: programs and files of command lines that are not next to its manifest, and
    /// directories of toolboxes.
    pub needed: Vec<String>,
}

/// Exports an agent to a new file. The agent must be prepared and must not be running. A prepared update is exported
/// with it.
///
/// # Errors
/// `Conflict` if it is running or is not prepared, `Busy` if it is being started or updated, `Exists` if the file
/// exists, `Pull` if a program does not match its recorded digest, `Storage` for errors of reading or writing.
pub fn export(entry: &Entry, to: &Path, options: &ExportOptions) -> Result<Exported, Error> {
    let workspace = &entry.workspace;
    if !workspace.file("prepared.json").is_file() {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("the agent {} is not prepared", entry.name),
        ));
    }
    // It cannot be started in the meantime.
    let lock = Lock::take(&workspace.file("host.lock")).map_err(|error| match error.kind() {
        ErrorKind::Busy => Error::new(
            ErrorKind::Conflict,
            format!(
                "the agent {} runs, and only one that is stopped is exported",
                entry.name
            ),
        ),
        _ => error,
    })?;
    if fs::symlink_metadata(to).is_ok() {
        return Err(Error::new(
            ErrorKind::Exists,
            format!("there is a file already: {}", to.display()),
        ));
    }
    // A prepared update is part of the agent, so it is applied and exported.
    let life = Lock::take(&workspace.file("life.lock"))?;
    workspace.put_update()?;
    drop(life);
    let beside = beside(to);
    let written =
        settled(workspace, options, &beside, |found| gather(entry, found)).and_then(|exported| {
            // Unlike a rename, a link does not replace a file that was created in the meantime.
            let named = fs::hard_link(&beside, to).or_else(|_| fs::rename(&beside, to));
            named
                .map(|()| exported)
                .map_err(|error| storage("write", to, error))
        });
    // The file has its final name, or is not needed.
    let _ = fs::remove_file(&beside);
    drop(lock);
    written
}

/// Writes the files, and retries if they changed in the meantime: a database that was just released may still be
/// closing.
fn settled(
    workspace: &Workspace,
    options: &ExportOptions,
    to: &Path,
    gather: impl Fn(FoundFiles) -> Result<(Exported, Vec<FileSource>, List), Error>,
) -> Result<Exported, Error> {
    let find = || list::find(workspace, options.without_state.then_some(STATE));
    let mut tries = 0;
    loop {
        let found = find();
        let seen = found.as_ref().ok().cloned();
        let written = found
            .and_then(&gather)
            .and_then(|(exported, sources, list)| {
                write(&sources, &list, to)?;
                Ok(exported)
            });
        tries += 1;
        let is_settled = seen.is_some() && find().ok() == seen;
        if is_settled || tries == TRIES {
            let changed = || {
                Error::new(
                    ErrorKind::Storage,
                    "the files of the agent change all the time",
                )
            };
            return written.and_then(|exported| {
                if is_settled {
                    Ok(exported)
                } else {
                    Err(changed())
                }
            });
        }
        // It may not exist.
        let _ = fs::remove_file(to);
        thread::sleep(PAUSE);
    }
}

/// Collects the contents of the file, and its header.
fn gather(entry: &Entry, found: FoundFiles) -> Result<(Exported, Vec<FileSource>, List), Error> {
    let workspace = &entry.workspace;
    let mut carried = Carried::from_workspace(workspace)?;
    let kept = found.files.into_iter().map(|listed| {
        (
            FileSource::File(workspace.root().join(&listed.path)),
            listed,
        )
    });
    carried.files.extend(kept);
    let (sources, files): (Vec<FileSource>, Vec<ListedFile>) = carried.files.into_iter().unzip();
    let exported = Exported {
        files: files.len(),
        bytes: files.iter().map(|file| file.size).sum(),
        skipped: found.skipped,
        needed: carried.needed,
    };
    let list = List {
        agent: entry.name.clone(),
        id: entry.id,
        files,
    };
    Ok((exported, sources, list))
}

fn beside(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}.{}", Uuid::new_v4().simple()))
}

/// A writer that computes a digest.
struct Hashed<W> {
    to: W,
    digest: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn write(sources: &[FileSource], list: &List, to: &Path) -> Result<(), Error> {
    let wrong = |error| storage("write", to, error);
    let file = private(OpenOptions::new().write(true).create_new(true))
        .open(to)
        .map_err(wrong)?;
    let mut out = Hashed {
        to: BufWriter::new(file),
        digest: Sha256::new(),
    };
    let text = serde_json::to_string(list).map_err(|error| wrong(error.into()))?;
    write!(out, "{MAGIC}{VERSION}\n{text}\n").map_err(wrong)?;
    for (source, listed) in sources.iter().zip(&list.files) {
        match source {
            FileSource::Bytes(bytes) => out.write_all(bytes).map_err(wrong)?,
            FileSource::File(path) => copy(path, listed, &mut out)?,
        }
    }
    let digest = out.digest.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let ended = writeln!(out.to, "{DIGEST}{hex}")
        .and_then(|()| out.to.into_inner().map_err(io::Error::from));
    ended.and_then(|file| file.sync_all()).map_err(wrong)
}

fn copy(path: &Path, listed: &ListedFile, out: &mut impl Write) -> Result<(), Error> {
    let file: File = open_regular(path)?;
    let copied =
        io::copy(&mut file.take(listed.size), out).map_err(|error| storage("copy", path, error))?;
    if copied == listed.size {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Storage,
        format!("{} was changed while it was read", path.display()),
    ))
}

/// The source of a file's bytes.
enum FileSource {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// The definition of an agent, with portable paths, and its included programs.
#[derive(Default)]
struct Carried {
    files: Vec<(FileSource, ListedFile)>,
    needed: Vec<String>,
}

impl Carried {
    fn from_workspace(workspace: &Workspace) -> Result<Self, Error> {
        let (agent, mut made): (AgentFile, Prepared) = (
            workspace.agent()?,
            read_json(&workspace.file("prepared.json"))?,
        );
        let folder = made
            .resolved
            .sources
            .first()
            .and_then(|source| source.parent())
            .map(Path::to_owned);
        let folder = folder.as_deref().filter(|folder| folder.is_absolute());
        let mut carried = Self::default();
        carried.programs(
            &mut made.resolved.manifest,
            &agent.resolved.manifest,
            folder,
        )?;
        carried.roots(&mut made.resolved.manifest, folder);
        for source in &mut made.resolved.sources {
            let inner = folder
                .and_then(|folder| source.strip_prefix(folder).ok())
                .map(Path::to_owned);
            *source = inner
                .or_else(|| source.file_name().map(PathBuf::from))
                .unwrap_or_default();
        }
        // Programs elsewhere get their digest at the destination.
        let is_copy =
            |kind: FileKind| !matches!(kind, FileKind::Manifest | FileKind::Tool | FileKind::Host);
        made.provenance.files.retain(|file| is_copy(file.kind));
        let agent = AgentFile {
            resolved: made.resolved.clone().into(),
            ..agent
        };
        let texts = [
            ("prepared.json", serde_json::to_vec_pretty(&made)),
            ("agent.json", serde_json::to_vec_pretty(&agent)),
        ];
        for (name, text) in texts {
            let text = text.map_err(|error| storage("write", Path::new(name), error.into()))?;
            let listed = ListedFile {
                path: name.to_owned(),
                size: text.len() as u64,
                executable: false,
            };
            carried.files.insert(0, (FileSource::Bytes(text), listed));
        }
        Ok(carried)
    }

    /// Includes programs next to the manifest; others keep the digest from the manifest as it was before the
    /// preparation.
    fn programs(
        &mut self,
        made: &mut Manifest,
        told: &Manifest,
        folder: Option<&Path>,
    ) -> Result<(), Error> {
        let mut told = told.clone();
        for tool in made.programs_mut() {
            let (whose, binary) = (&tool.whose, &mut *tool.path);
            let absolute = tool
                .args
                .iter()
                .map(|word| Path::new(&**word))
                .filter(|path| path.is_absolute() && path.is_file());
            self.needed.extend(
                absolute.map(|path| format!("{}, in the command line of {whose}", path.display())),
            );
            let reached = tool.sandbox.read.iter().chain(&tool.sandbox.write);
            self.needed
                .extend(reached.map(|path| format!("{}, for {whose}", path.display())));
            if binary.is_relative() && binary.components().count() > 1 {
                // It was imported before, and is in an exported directory.
                continue;
            }
            if !folder.is_some_and(|folder| binary.starts_with(folder)) {
                self.needed
                    .push(format!("{}, the program of {whose}", binary.display()));
                let said = told.programs_mut().find(|it| it.field == tool.field);
                *tool.sha256 = said.and_then(|it| it.sha256.clone());
                continue;
            }
            let real = binary
                .canonicalize()
                .map_err(|error| storage("find", binary, error))?;
            let (sha256, size) = digest_of(&real)?;
            if tool
                .sha256
                .as_deref()
                .is_some_and(|pinned| pinned != sha256)
            {
                let message = format!("the program of {whose} was changed: {}", binary.display());
                return Err(Error::new(ErrorKind::Pull, message));
            }
            let name = binary.file_name().unwrap_or_default().to_string_lossy();
            let path = format!("{TOOLS}/{}/{name}", tool.folder);
            *binary = PathBuf::from(&path);
            self.files.push((
                FileSource::File(real),
                ListedFile {
                    path,
                    size,
                    executable: true,
                },
            ));
        }
        Ok(())
    }

    /// Omits directories of toolboxes and servers; their paths become relative to the manifest, whose directory differs
    /// at the destination.
    fn roots(&mut self, made: &mut Manifest, folder: Option<&Path>) {
        for agent in &mut made.agents {
            for toolbox in &mut agent.toolboxes {
                let ToolboxChoice::Spec(spec) = toolbox else {
                    continue;
                };
                let Some(root) = &mut spec.root else { continue };
                self.needed.push(format!(
                    "{}, the folder of the toolbox {}",
                    root.display(),
                    spec.name
                ));
                relative(root, folder);
            }
        }
        for (name, spec) in &mut made.mcp.servers {
            if let Some(cwd) = &mut spec.cwd {
                self.needed.push(format!(
                    "{}, the folder of the server {name}",
                    cwd.display()
                ));
                relative(cwd, folder);
            }
        }
    }
}

/// Makes a directory relative to the manifest's, if it is inside.
fn relative(path: &mut PathBuf, folder: Option<&Path>) {
    if let Some(inner) = folder.and_then(|folder| path.strip_prefix(folder).ok()) {
        *path = Path::new(".").join(inner);
    }
}
