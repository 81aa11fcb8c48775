//! Adapts an unpacked agent to its destination: its id and name, its directories and programs, and no paths outside.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use uuid::Uuid;

use super::ImportOptions;
use crate::{
    error::{Error, ErrorKind},
    files::{Sync, read_json, write_json},
    manifest::{Manifest, SandboxSpec, ServerSpec, ToolboxChoice, needs, with_fields},
    provenance::{FileKind, PinnedFile, pin_program},
    trust::{Reach, reach},
    workspace::{AgentFile, Prepared, is_carried, is_same},
};

/// Sets the new id and name, applies changes, and checks that nothing else refers to paths outside of its directory.
pub(super) fn settle(
    folder: &Path,
    id: Uuid,
    name: &str,
    options: &ImportOptions,
) -> Result<(), Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
        let text = format!(
            "an agent cannot have this name: {name:?}: letters, digits, `_` and `-`, 64 at most"
        );
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    let (agent, prepared) = (folder.join("agent.json"), folder.join("prepared.json"));
    let created_ms = read_json::<Value>(&agent)?["created_ms"]
        .as_u64()
        .unwrap_or_default();
    let mut made: Prepared = read_json(&prepared).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            "prepared.json holds no manifest that can be read",
        )
        .with_source(error)
    })?;
    let told = read_json::<AgentFile>(&agent).ok();
    if told.is_some_and(|it| !is_same(&it.resolved.manifest, &made.resolved.manifest)) {
        let text =
            "prepared.json is not what agent.json tells: the file was changed after it was written";
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    let manifest = &mut made.resolved.manifest;
    manifest
        .check_version()
        .map_err(|error| Error::new(ErrorKind::Invalid, error.message()))?;
    if let Some(problem) = reach(manifest)
        .into_iter()
        .find_map(|it| outside(it, options.root.is_some()))
    {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("prepared.json points out of the agent's folder: {problem}"),
        ));
    }
    if let Some(root) = &options.root {
        roots(manifest, root)?;
    }
    if !options.set.is_empty() {
        set(manifest, options)?;
    }
    manifest.name = name.into();
    // Only the manifest runs; its needs are derived from it, not from a file next to it.
    made.resolved.needs = needs(manifest);
    let tools = pinned(manifest, folder)?;
    let is_copy =
        |kind: FileKind| !matches!(kind, FileKind::Manifest | FileKind::Tool | FileKind::Host);
    made.provenance.files.retain(|file| is_copy(file.kind));
    made.provenance.files.extend(tools);
    write_json(&prepared, &made, Sync::Disk)?;
    let resolved = made.resolved.into();
    write_json(
        &agent,
        &AgentFile {
            id,
            created_ms,
            resolved,
        },
        Sync::Disk,
    )
}

/// Moves the directories of toolboxes below the replacement of the manifest's directory.
fn roots(manifest: &mut Manifest, root: &Path) -> Result<(), Error> {
    let root = root.canonicalize().map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            format!("there is no folder {}", root.display()),
        )
        .with_source(error)
    })?;
    let laid = |inner: &mut PathBuf| *inner = root.join(&*inner).components().collect();
    for agent in &mut manifest.agents {
        for toolbox in &mut agent.toolboxes {
            if let ToolboxChoice::Spec(spec) = toolbox {
                spec.root.as_mut().map(laid);
            }
        }
    }
    manifest
        .mcp
        .servers
        .values_mut()
        .filter_map(|spec| spec.cwd.as_mut())
        .for_each(laid);
    Ok(())
}

/// Sets single fields. They can refer to paths outside of the directory, but not to relative paths.
fn set(manifest: &mut Manifest, options: &ImportOptions) -> Result<(), Error> {
    *manifest = with_fields(manifest, &options.set)?;
    let relative = reach(manifest).into_iter().find_map(|it| match it {
        Reach::Root(path) if path.is_relative() => Some(path.display().to_string()),
        Reach::Copied(path) | Reach::Inside(path) if !is_inside(path) => {
            Some(path.display().to_string())
        }
        Reach::Program(tool) => outside(Reach::Program(tool), true),
        Reach::Server(_, ServerSpec { cwd: Some(cwd), .. }) if cwd.is_relative() => {
            Some(cwd.display().to_string())
        }
        Reach::Server(_, spec) => reaches("server", spec.program()?, &spec.sandbox),
        _ => None,
    });
    match relative {
        None => Ok(()),
        Some(path) => Err(Error::new(
            ErrorKind::Invalid,
            format!("not a path that can be set: {path}"),
        )),
    }
}

/// Records the digests of the local programs, included or not.
fn pinned(manifest: &mut Manifest, folder: &Path) -> Result<Vec<PinnedFile>, Error> {
    let mut pins: Vec<PinnedFile> = Vec::new();
    for program in manifest.programs_mut() {
        let (whose, is_carried) = (&program.whose, is_carried(program.path));
        let path = if is_carried {
            folder.join(&*program.path)
        } else {
            program.path.clone()
        };
        let mut pin = pin_program(FileKind::Tool, &path).map_err(|error| {
            let hint = format!("hint: --set {}=PATH names it", program.field);
            Error::new(
                ErrorKind::Pull,
                format!("the program of {whose} is not here: {error}; {hint}"),
            )
        })?;
        if program
            .sha256
            .as_deref()
            .is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&pin.sha256))
        {
            let message = format!(
                "the program of {whose} is not what was pinned: {}",
                path.display()
            );
            return Err(Error::new(ErrorKind::Pull, message));
        }
        *program.sha256 = Some(pin.sha256.as_str().into());
        if is_carried {
            pin.path.clone_from(program.path);
        }
        if !pins.contains(&pin) {
            pins.push(pin);
        }
    }
    Ok(pins)
}

/// Returns the part of a manifest that refers to a path outside its agent's directory, if there is one.
fn outside(reach: Reach<'_>, has_root: bool) -> Option<String> {
    match reach {
        Reach::Copied(path) | Reach::Inside(path) => {
            (!is_inside(path)).then(|| path.display().to_string())
        }
        // Such a path never means the directory of the agent.
        Reach::Root(path) => rootless(path, "the `root` of a toolbox", has_root),
        Reach::Program(tool) => reaches("tool", &tool.binary, &tool.sandbox),
        Reach::Server(_, spec) => {
            let cwd = spec
                .cwd
                .as_ref()
                .and_then(|cwd| rootless(cwd, "the `cwd` of a server", has_root));
            cwd.or_else(|| reaches("server", spec.program()?, &spec.sandbox))
        }
        Reach::Provider(_)
        | Reach::Options(..)
        | Reach::Peer(_)
        | Reach::Database(_)
        | Reach::Commands(..)
        | Reach::Pages(_) => None,
    }
}

/// Returns a directory that does not belong to the agent, unless another directory replaces the manifest's.
fn rootless(path: &Path, what: &str, has_root: bool) -> Option<String> {
    let hint = match is_inside(path) {
        true if has_root => return None,
        true => "; hint: `--root DIR` names the folder that stands for that of the manifest",
        false => "",
    };
    Some(format!("{}, {what}{hint}", path.display()))
}

/// Returns a path of a program or its sandbox that depends on the process.
fn reaches(whose: &str, program: &Path, sandbox: &SandboxSpec) -> Option<String> {
    // A name is looked up in PATH; other relative paths mean different files in each working directory.
    let is_name = program.components().count() == 1 && is_inside(program);
    let is_own = is_carried(program) && is_inside(program);
    if !is_name && !is_own && !is_place(program) {
        return Some(format!("{}, the program of a {whose}", program.display()));
    }
    let wrong = sandbox
        .read
        .iter()
        .chain(&sandbox.write)
        .find(|path| !is_place(path))?;
    Some(format!(
        "{}, what the program of a {whose} reaches",
        wrong.display()
    ))
}

/// True if a path is absolute and has the same meaning for every process, unlike paths below `/proc` and `/dev`.
fn is_place(path: &Path) -> bool {
    let is_shifty = ["/proc", "/dev"].iter().any(|it| path.starts_with(it));
    path.is_absolute() && !is_shifty && !path.components().any(|it| it == Component::ParentDir)
}

fn is_inside(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
