//! The digest of a manifest's content; that of an agent is the same before and after its workspace was made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    Manifest,
    manifest::{ContextSpec, Instructions, NamedContext},
    provenance::{FileKind, digest_of, hex, pin_program},
};

/// How deep folders of skills are looked through, and how many files count.
const MAX_DEPTH: usize = 32;
const MAX_FILES: usize = 10_000;

/// What a digest is of. One that was trusted says nothing about the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Of {
    /// A manifest.
    Manifest,
    /// An agent.
    Agent,
}

/// The digest of a manifest with everything that its agents are told, its programs and its data: `pinned` tells what held
/// the files that the agent may have changed since.
pub(super) fn digest(manifest: &Manifest, of: Of, pinned: impl Fn(&Path) -> Option<String>) -> String {
    let mut meant = manifest.clone();
    meant.name = "".into();
    for agent in &mut meant.agents {
        if let Some(Instructions::File { file }) = &mut agent.instructions {
            *file = content(file);
        }
        let told = std::mem::take(&mut agent.context).into_iter().filter_map(told);
        agent.context = told.collect();
    }
    meant.skill_folders.iter_mut().for_each(|folder| *folder = content(folder));
    for data in &mut meant.data {
        // A workspace is made with its place written out.
        data.to = data.to.take().or_else(|| data.file.file_name().map(PathBuf::from));
        data.file = pinned(&data.file).unwrap_or_else(|| sha256(&data.file)).into();
    }
    for tool in &mut meant.process_tools {
        let pinned = pin_program(FileKind::Tool, &tool.binary).map_or_else(|_| "none".to_owned(), |it| it.sha256);
        tool.sha256 = Some(pinned.into());
    }
    let text = serde_json::to_string(&(of, meant)).unwrap_or_else(|error| format!("no text: {error}"));
    hex(&Sha256::digest(text))
}

/// The digest of a content with something beside it.
pub(super) fn also(digest: &str, beside: &str) -> String {
    hex(&Sha256::digest(format!("{digest}\n{beside}")))
}

/// A file that agents are told; a workspace is made without one that need not be there.
fn told(context: ContextSpec) -> Option<ContextSpec> {
    let (file, name, optional) = match context {
        ContextSpec::File(file) => (file, None, false),
        ContextSpec::Named(NamedContext { file, name, optional }) => (file, name, optional),
    };
    if optional && fs::symlink_metadata(&file).is_err() {
        return None;
    }
    Some(ContextSpec::Named(NamedContext { file: content(&file), name, optional: false }))
}

/// The name of a file or a folder, and the digest of what it holds, in the place of its path.
fn content(path: &Path) -> PathBuf {
    let mut files = Vec::new();
    walk(path, Path::new(""), 0, &mut files);
    files.sort();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name} {}", hex(&Sha256::digest(files.join("\n")))).into()
}

fn walk(root: &Path, below: &Path, depth: usize, files: &mut Vec<String>) {
    let path = root.join(below);
    if depth > MAX_DEPTH || files.len() > MAX_FILES {
        // What is not looked at may be anything: it is never the content that was trusted.
        return files.push(format!("{} {below:?}", Uuid::now_v7()));
    }
    if !path.is_dir() {
        return files.push(format!("{} {below:?}", sha256(&path)));
    }
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        if files.len() > MAX_FILES + 1 {
            return;
        }
        walk(root, &below.join(entry.file_name()), depth + 1, files);
    }
}

/// The digest of a file, links followed.
fn sha256(path: &Path) -> String {
    let digest = path.canonicalize().ok().and_then(|real| digest_of(&real).ok());
    digest.map_or_else(|| "none".to_owned(), |(sha256, _)| sha256)
}
