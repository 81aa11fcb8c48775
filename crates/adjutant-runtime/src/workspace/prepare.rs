//! Creates a workspace: copies of its agents' context, and the digest of every file that it runs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use adjutant_tool::Cancel;

use super::{
    Prepared, Workspace,
    copying::{Copied, Copier, MAX_CONTEXT, MAX_DATA, pull},
};
use crate::{
    error::{Error, ErrorKind},
    files::{self, Sync, storage},
    manifest::{ContextSpec, DataSpec, Instructions, Manifest, NamedContext, Resolved},
    provenance::{FileKind, PinnedFile, Provenance, digest_of, pin_program},
};

/// The temporary directory in which everything is created.
const MAKING: &str = ".preparing";
/// The directories that are moved to their final places.
const MADE: [&str; 3] = ["context", "skills", "work"];

/// Creates a workspace. Blocks.
///
/// Everything is created in a temporary directory and moved to its final place; `prepared.json`, written last, marks it
/// as complete. Remains of an earlier attempt are deleted first.
pub(crate) fn prepare(
    workspace: &Workspace,
    resolved: &Resolved,
    host: &Path,
    now_ms: u64,
    cancel: &Cancel,
) -> Result<Prepared, Error> {
    let made = make(workspace, resolved, host, now_ms, cancel);
    let made = made.and_then(|(making, prepared)| put(workspace, &making, prepared));
    if made.is_err() {
        let _left = clear(workspace);
    }
    made
}

/// Deletes the remains of a failed attempt.
pub(crate) fn clear(workspace: &Workspace) -> Result<(), Error> {
    files::remove_folder(&workspace.file(MAKING))?;
    if workspace.is_prepared() {
        return Ok(());
    }
    MADE.iter()
        .try_for_each(|name| files::remove_folder(&workspace.file(name)))
}

/// Creates everything in a new directory without the marker.
pub(super) fn make(
    workspace: &Workspace,
    resolved: &Resolved,
    host: &Path,
    now_ms: u64,
    cancel: &Cancel,
) -> Result<(Workspace, Prepared), Error> {
    clear(workspace)?;
    let making = Workspace::at(workspace.file(MAKING));
    for folder in [
        workspace.state(),
        workspace.tmp(),
        workspace.logs(),
        making.context(),
        making.skills(),
        making.work(),
    ] {
        files::make_folder(&folder)?;
    }
    let within = folders_of(&resolved.sources)?;
    let copier = Copier {
        within: &within,
        cancel,
    };
    let mut making = Making {
        copier,
        into: making,
        files: Vec::new(),
        copies: BTreeMap::new(),
    };
    let mut resolved = resolved.clone();
    making.sources(&resolved.sources)?;
    making.told(&mut resolved.manifest)?;
    making.skills(&mut resolved.manifest)?;
    making.data(&mut resolved.manifest.data)?;
    making.programs(&mut resolved.manifest, host)?;
    let provenance = Provenance::new(making.files);
    making.copier.go_on()?;
    Ok((
        making.into,
        Prepared {
            resolved,
            provenance,
            prepared_ms: now_ms,
        },
    ))
}

/// Moves the result to its final place.
fn put(
    workspace: &Workspace,
    making: &Workspace,
    mut prepared: Prepared,
) -> Result<Prepared, Error> {
    for name in MADE {
        let (from, to) = (making.file(name), workspace.file(name));
        fs::rename(&from, &to).map_err(|error| storage("make", &to, error))?;
    }
    files::write_json(&workspace.file("prepared.json"), &prepared, Sync::Disk)?;
    files::remove_folder(making.root())?;
    for_each_copy(&mut prepared.resolved.manifest, |path| {
        *path = workspace.file("").join(&*path)
    });
    Ok(prepared)
}

/// Returns the directories of the manifest's files, without links.
fn folders_of(sources: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let folder = |source: &PathBuf| {
        let folder = source.parent().unwrap_or(Path::new("/"));
        fs::canonicalize(folder).map_err(|error| pull(storage("find", folder, error)))
    };
    sources.iter().map(folder).collect()
}

/// The directory of programs from a bundle.
pub(crate) const TOOLS: &str = "tools";

/// True if a path is a program from a bundle; a bare name is looked up in `PATH`.
pub(crate) fn is_carried(path: &Path) -> bool {
    path.starts_with(TOOLS) && path.components().count() > 1
}

/// Calls a function with every path of a manifest that refers to a copy in the workspace.
pub(crate) fn for_each_copy(manifest: &mut Manifest, mut change: impl FnMut(&mut PathBuf)) {
    for agent in &mut manifest.agents {
        if let Some(Instructions::File { file }) = &mut agent.instructions {
            change(file);
        }
        for context in &mut agent.context {
            match context {
                ContextSpec::File(file) => change(file),
                ContextSpec::Named(named) => change(&mut named.file),
            }
        }
    }
    manifest.skill_folders.iter_mut().for_each(&mut change);
    manifest
        .data
        .iter_mut()
        .for_each(|data| change(&mut data.file));
    // Programs are not copied, except for programs from a bundle.
    let programs = manifest
        .programs_mut()
        .filter(|program| is_carried(program.path));
    programs.for_each(|program| change(program.path));
}

/// True if two manifests are equal except for the changes by a workspace: paths of copies, and digests of programs.
pub(crate) fn is_same(one: &Manifest, other: &Manifest) -> bool {
    let meant = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        manifest
            .agents
            .iter_mut()
            .for_each(|agent| agent.context.clear());
        manifest.data.iter_mut().for_each(|data| data.to = None);
        manifest
            .programs_mut()
            .for_each(|program| *program.sha256 = None);
        for_each_copy(&mut manifest, |path| {
            if !is_carried(path) {
                *path = PathBuf::new();
            }
        });
        manifest
    };
    meant(one) == meant(other)
}

/// A workspace that is being created.
struct Making<'a> {
    copier: Copier<'a>,
    into: Workspace,
    files: Vec<PinnedFile>,
    /// The paths of copied files: a file of several agents is copied once.
    copies: BTreeMap<PathBuf, PathBuf>,
}

impl Making<'_> {
    /// Records the digests of the manifest's files, which are not copied.
    fn sources(&mut self, sources: &[PathBuf]) -> Result<(), Error> {
        for source in sources {
            self.copier.go_on()?;
            let (sha256, bytes) = digest_of(source).map_err(pull)?;
            self.files.push(PinnedFile {
                kind: FileKind::Manifest,
                path: source.clone(),
                sha256,
                bytes,
            });
        }
        Ok(())
    }

    /// Copies the context of agents. A missing optional file is removed from the running manifest.
    fn told(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        for agent in &mut manifest.agents {
            if let Some(Instructions::File { file }) = &mut agent.instructions {
                *file = self.tell(FileKind::Instructions, file)?;
            }
            for context in std::mem::take(&mut agent.context) {
                let (file, name, optional) = match context {
                    ContextSpec::File(file) => (file, None, false),
                    ContextSpec::Named(NamedContext {
                        file,
                        name,
                        optional,
                    }) => (file, name, optional),
                };
                if optional
                    && fs::symlink_metadata(&file)
                        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
                {
                    continue;
                }
                let file = self.tell(FileKind::Context, &file)?;
                let told = match name {
                    None => ContextSpec::File(file),
                    name => ContextSpec::Named(NamedContext {
                        file,
                        name,
                        optional: false,
                    }),
                };
                agent.context.push(told);
            }
        }
        Ok(())
    }

    /// Copies one file under its own name, into a numbered directory.
    fn tell(&mut self, kind: FileKind, from: &Path) -> Result<PathBuf, Error> {
        if let Some(copy) = self.copies.get(from) {
            return Ok(copy.clone());
        }
        let copy = Path::new("context")
            .join(self.copies.len().to_string())
            .join(name_of(from)?);
        let copied = self
            .copier
            .file(from, &self.into.file("").join(&copy), MAX_CONTEXT)?;
        self.pin(kind, copy.clone(), copied);
        self.copies.insert(from.to_owned(), copy.clone());
        Ok(copy)
    }

    /// Copies directories of skills, each under its own name, which is part of a skill.
    fn skills(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        for (number, folder) in manifest.skill_folders.iter_mut().enumerate() {
            let copy = Path::new("skills")
                .join(number.to_string())
                .join(name_of(folder)?);
            let copied = self
                .copier
                .folder(folder, &self.into.file("").join(&copy))?;
            for (path, copied) in copied {
                self.files.push(PinnedFile::copied(
                    FileKind::Skill,
                    copy.join(path),
                    copied.sha256,
                    copied.bytes,
                ));
            }
            *folder = copy;
        }
        Ok(())
    }

    /// Copies data files into the working directory.
    fn data(&mut self, data: &mut [DataSpec]) -> Result<(), Error> {
        for data in data {
            let to = match &data.to {
                Some(to) => to.clone(),
                None => PathBuf::from(name_of(&data.file)?),
            };
            if to
                .components()
                .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
            {
                let message = format!("{} would lie outside the working folder", to.display());
                return Err(Error::new(ErrorKind::Config, message));
            }
            let copy = Path::new("work").join(&to);
            let target = self.into.file("").join(&copy);
            if fs::symlink_metadata(&target).is_ok() {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("two files of data are laid to {}", to.display()),
                ));
            }
            let copied = self.copier.file(&data.file, &target, MAX_DATA)?;
            self.pin(FileKind::Data, copy.clone(), copied);
            (data.file, data.to) = (copy, Some(to));
        }
        Ok(())
    }

    /// Records the digests of programs, which are not copied, because they may need files next to them.
    fn programs(&mut self, manifest: &mut Manifest, host: &Path) -> Result<(), Error> {
        for program in manifest.programs_mut() {
            self.copier.go_on()?;
            let pinned = pin_program(FileKind::Tool, program.path)?;
            let wanted = program
                .sha256
                .as_deref()
                .filter(|wanted| !wanted.eq_ignore_ascii_case(&pinned.sha256));
            if let Some(wanted) = wanted {
                let path = program.path.display();
                let message = format!(
                    "{path} is not what was pinned for {}: {wanted}",
                    program.whose
                );
                return Err(Error::new(ErrorKind::Pull, message));
            }
            // So that every start checks the same digest.
            *program.sha256 = Some(pinned.sha256.as_str().into());
            if !self.files.contains(&pinned) {
                self.files.push(pinned);
            }
        }
        self.copier.go_on()?;
        self.files.push(pin_program(FileKind::Host, host)?);
        Ok(())
    }

    fn pin(&mut self, kind: FileKind, path: PathBuf, copied: Copied) {
        self.files
            .push(PinnedFile::copied(kind, path, copied.sha256, copied.bytes));
    }
}

fn name_of(path: &Path) -> Result<&std::ffi::OsStr, Error> {
    path.file_name().ok_or_else(|| {
        Error::new(
            ErrorKind::Invalid,
            format!("{} names no file", path.display()),
        )
    })
}
