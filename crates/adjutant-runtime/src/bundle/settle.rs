//! Makes an agent that was unpacked one of this place: its id and name, its folders and programs, and nothing outside.

use std::path::{Component, Path};

use serde_json::Value;
use uuid::Uuid;

use super::ImportOptions;
use crate::{
    error::{Error, ErrorKind},
    files::{Sync, read_json, write_json},
    manifest::{Manifest, ToolboxChoice, needs, with_fields},
    provenance::{FileKind, PinnedFile, pin_program},
    trust::{Reach, reach},
    workspace::{AgentFile, Prepared, is_carried},
};

/// Gives the agent its new id and its name, puts in what is another thing here, and sees that nothing else in it points out of
/// its folder.
pub(super) fn settle(folder: &Path, id: Uuid, name: &str, options: &ImportOptions) -> Result<(), Error> {
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
    let manifest = &mut made.resolved.manifest;
    manifest.check_version().map_err(|error| Error::new(ErrorKind::Invalid, error.message()))?;
    if let Some(problem) = reach(manifest).into_iter().find_map(|it| outside(it, options.root.is_some())) {
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
    // There is one manifest, the one that runs; and what it needs is told by it, not by what stands beside it.
    made.resolved.needs = needs(manifest);
    let tools = pinned(manifest, folder)?;
    let is_copy = |kind: FileKind| !matches!(kind, FileKind::Manifest | FileKind::Tool | FileKind::Host);
    made.provenance.files.retain(|file| is_copy(file.kind));
    made.provenance.files.extend(tools);
    write_json(&prepared, &made, Sync::Disk)?;
    let resolved = made.resolved.into();
    write_json(&agent, &AgentFile { id, created_ms, resolved }, Sync::Disk)
}

/// Lays the folders of toolboxes below the one that stands for that of the manifest.
fn roots(manifest: &mut Manifest, root: &Path) -> Result<(), Error> {
    let root = root.canonicalize().map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("there is no folder {}", root.display())).with_source(error)
    })?;
    for agent in &mut manifest.agents {
        for toolbox in &mut agent.toolboxes {
            if let ToolboxChoice::Spec(spec) = toolbox
                && let Some(inner) = &spec.root
            {
                spec.root = Some(root.join(inner).components().collect());
            }
        }
    }
    Ok(())
}

/// Puts single fields in. Whoever says them may point out of the folder, but not by a path that is relative to nothing.
fn set(manifest: &mut Manifest, options: &ImportOptions) -> Result<(), Error> {
    *manifest = with_fields(manifest, &options.set)?;
    let relative = reach(manifest).into_iter().find_map(|it| match it {
        Reach::Root(path) if path.is_relative() => Some(path.display().to_string()),
        Reach::Copied(path) | Reach::Inside(path) if !is_inside(path) => Some(path.display().to_string()),
        Reach::Program(tool) => outside(Reach::Program(tool), true),
        _ => None,
    });
    match relative {
        None => Ok(()),
        Some(path) => Err(Error::new(ErrorKind::Invalid, format!("not a path that can be set: {path}"))),
    }
}

/// Pins the programs as they are here: those that were carried along, and those that were not.
fn pinned(manifest: &mut Manifest, folder: &Path) -> Result<Vec<PinnedFile>, Error> {
    let mut pins: Vec<PinnedFile> = Vec::new();
    for tool in &mut manifest.process_tools {
        let is_carried = is_carried(&tool.binary);
        let path = if is_carried { folder.join(&tool.binary) } else { tool.binary.clone() };
        let hint = format!("hint: --set process_tools.{}.binary=PATH names it", tool.name);
        let mut pin = pin_program(FileKind::Tool, &path).map_err(|error| {
            Error::new(ErrorKind::Pull, format!("the program of the tool {} is not here: {error}; {hint}", tool.name))
        })?;
        if tool.sha256.as_deref().is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&pin.sha256)) {
            let message = format!("the program of the tool {} is not what was pinned: {}", tool.name, path.display());
            return Err(Error::new(ErrorKind::Pull, message));
        }
        tool.sha256 = Some(pin.sha256.as_str().into());
        if is_carried {
            pin.path = tool.binary.clone();
        }
        if !pins.contains(&pin) {
            pins.push(pin);
        }
    }
    Ok(pins)
}

/// Returns the part of a manifest that would lie outside its agent's folder, if there is one.
fn outside(reach: Reach<'_>, has_root: bool) -> Option<String> {
    match reach {
        Reach::Copied(path) | Reach::Inside(path) => (!is_inside(path)).then(|| path.display().to_string()),
        // It does not mean the folder of the agent, wherever it points.
        Reach::Root(path) if !has_root || !is_inside(path) => {
            let hint = match is_inside(path) {
                true => "; hint: `--root DIR` names the folder that stands for that of the manifest",
                false => "",
            };
            Some(format!("{}, the `root` of a toolbox{hint}", path.display()))
        }
        Reach::Root(_) => None,
        Reach::Program(tool) => {
            // A name is looked for in PATH; what is between means another file in each folder.
            let is_name = tool.binary.components().count() == 1 && is_inside(&tool.binary);
            let is_own = is_carried(&tool.binary) && is_inside(&tool.binary);
            if !is_name && !is_own && !is_place(&tool.binary) {
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
