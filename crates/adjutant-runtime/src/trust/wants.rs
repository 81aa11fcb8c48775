//! What a manifest wants that is more than to read its own folder and to ask a known provider: all of it, for people.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::hidden;
use adjutant_providers::Provider;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Reach,
    content::{self, Of},
    reach,
};
use crate::{
    Error, Manifest, Workspace,
    manifest::{OptionsSpec, ProcessTool},
};

/// The folder of a workspace that belongs to its tools; whatever stands in it, nothing of ours is written through it.
const WORK: &str = "work";
/// How many files of a workspace are looked at, and how deep: an agent of years keeps a folder for each session.
const MAX_FILES: usize = 1_000_000;
const MAX_DEPTH: usize = 32;

/// All that a manifest wants, sorted; and the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    name: Arc<str>,
    all: Vec<Want>,
    digest: String,
}

/// Something that a manifest wants.
///
/// Shown, it is one line: characters that steer a terminal or do not show are written as `\u{…}`, and nothing is cut.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Want {
    /// What kind of thing it is.
    pub kind: WantKind,
    /// The thing itself, and what it is for.
    pub what: String,
}

/// What kind of thing is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WantKind {
    /// To run a program.
    Program,
    /// To read a folder that is not its own.
    Folder,
    /// To read a file that is not its own.
    File,
    /// To send prompts, and keys if it names their variables, to an address.
    Address,
    /// To use a database.
    Database,
}

impl Wants {
    /// What a manifest wants whose own folder is this one. It reads files, and blocks.
    pub fn of(manifest: &Manifest, own: &Path) -> Self {
        Self::sorted(manifest, own, Of::Manifest)
    }

    fn sorted(manifest: &Manifest, own: &Path, of: Of) -> Self {
        let mut all: Vec<Want> = reach(manifest).into_iter().filter_map(|it| want(it, manifest, own)).collect();
        all.sort();
        all.dedup();
        // Where a path leads is no part of the manifest, and may change without it.
        let digest =
            all.iter().fold(content::digest(manifest, of), |digest, it| content::also(&digest, &it.to_string()));
        Self { name: Arc::clone(&manifest.name), all, digest }
    }

    /// What an agent wants that was written down in this folder, by whomever. It reads files, and blocks.
    ///
    /// # Errors
    /// `Missing` if there is no agent, `Storage` if it cannot be read.
    pub fn of_agent(workspace: &Workspace) -> Result<Self, Error> {
        let manifest = match workspace.is_prepared() {
            true => workspace.prepared()?.resolved.manifest,
            false => workspace.agent()?.resolved.manifest.clone(),
        };
        Ok(Self::of_workspace(workspace, &manifest))
    }

    /// What a manifest wants that runs in this folder.
    pub(crate) fn of_workspace(workspace: &Workspace, manifest: &Manifest) -> Self {
        let mut wants = Self::sorted(manifest, workspace.root(), Of::Agent);
        let mut links = Vec::new();
        let is_whole = find_links(workspace.root(), workspace.root(), 0, &mut 0, &mut links);
        let links =
            links.iter().map(|path| Want::new(WantKind::Folder, format!("{}, for what an agent keeps", shown(path))));
        let unseen = format!("more than {MAX_FILES} files of its own, not looked at");
        let links = links.chain((!is_whole).then(|| Want::new(WantKind::Folder, unseen))).collect::<Vec<_>>();
        for link in links {
            // It is no part of the manifest, whose content may be trusted without it.
            wants.digest = content::also(&wants.digest, &link.to_string());
            wants.all.push(link);
        }
        wants.all.sort();
        wants
    }

    /// The same, of a content that is more than the manifest: it is trusted by itself.
    pub(crate) fn with_content(mut self, digest: &str) -> Self {
        self.digest = content::also(&self.digest, digest);
        self
    }

    /// Whether it wants nothing.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Each thing, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Want> {
        self.all.iter()
    }

    /// What the manifest is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the manifest and of what belongs to it, in 64 hexadecimal digits: it differs after any change.
    ///
    /// It is that of the manifest as it is meant, without its name, of all that its agents are told, of its skills, programs
    /// and data; for an agent that was written down, not of its data, which it may change.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// How many things of which kinds, in a few words.
    pub fn summary(&self) -> String {
        let mut counts: BTreeMap<WantKind, usize> = BTreeMap::new();
        self.all.iter().for_each(|it| *counts.entry(it.kind).or_default() += 1);
        let words: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        words.join(", ")
    }
}

impl Want {
    fn new(kind: WantKind, what: impl AsRef<str>) -> Self {
        Self { kind, what: hidden::whole(what.as_ref()) }
    }
}

fn want(reach: Reach<'_>, manifest: &Manifest, own: &Path) -> Option<Want> {
    match reach {
        Reach::Copied(path) | Reach::Inside(path) if is_within(own, path) => None,
        Reach::Root(path) if is_within(own, path) => None,
        Reach::Inside(path) if path.is_relative() && is_plain(path) => None,
        Reach::Copied(path) if path.is_dir() => {
            Some(Want::new(WantKind::Folder, format!("{}, for agents", shown(path))))
        }
        Reach::Copied(path) | Reach::Inside(path) => {
            Some(Want::new(WantKind::File, format!("{}, for agents", shown(path))))
        }
        Reach::Root(path) => Some(Want::new(WantKind::Folder, format!("{}, for file tools", shown(path)))),
        Reach::Program(tool) => Some(Want::new(WantKind::Program, command(tool, manifest))),
        Reach::Provider(value) => address(value).map(|what| Want::new(WantKind::Address, what)),
        Reach::Options(agent, options) => {
            let OptionsSpec { headers, extra, .. } = options;
            let text = format!(
                "its usual one, of the agent {agent}, with the headers {} and the fields {}",
                json!(headers),
                json!(extra)
            );
            Some(Want::new(WantKind::Address, text))
        }
        Reach::Database(variable) => Some(Want::new(WantKind::Database, format!("at the address in {variable}"))),
    }
}

/// A program with all its words and its environment.
fn command(tool: &ProcessTool, manifest: &Manifest) -> String {
    let mut text = quoted(&tool.binary);
    tool.args.iter().for_each(|word| text += &format!(" {}", Value::from(&**word)));
    text += &format!(", as the tool {}", tool.name);
    let variables: BTreeMap<_, _> = manifest.environment.iter().chain(&tool.environment).collect();
    for (n, (name, value)) in variables.into_iter().enumerate() {
        text += &format!("{}{name}={}", if n == 0 { ", with " } else { " " }, Value::from(&**value));
    }
    text
}

/// Where a provider is, and whose keys go there; nothing if that is what is known of a provider anyway.
fn address(value: &Value) -> Option<String> {
    // What cannot be read is never used, and shown as it is.
    let Ok(provider) = serde_json::from_value::<Provider>(value.clone()) else { return Some(value.to_string()) };
    if provider.is_usual() {
        return None;
    }
    let text = match (&*provider.base_url, &*provider.base_url_variable) {
        ("", "") => "its usual address".to_owned(),
        ("", variable) => format!("the address in {variable}"),
        (url, "") => url.to_owned(),
        (url, variable) => format!("{url}, or the address in {variable}"),
    };
    // A letter of another script looks like one of a known host.
    let mut text: String =
        text.chars().flat_map(|c| if c.is_ascii() { vec![c] } else { c.escape_unicode().collect() }).collect();
    text += &format!(", as the provider {}", provider.name);
    match &provider.key_variables[..] {
        [] => {}
        variables => text += &format!(", with the key in {}", variables.join(" or ")),
    }
    if !provider.headers.is_empty() {
        let names: Vec<&str> = provider.headers.keys().map(String::as_str).collect();
        text += &format!(", with the headers {}", names.join(", "));
    }
    Some(text)
}

/// The links of a workspace that lead out of it, or nowhere; says whether all of it was looked at.
fn find_links(root: &Path, folder: &Path, depth: usize, seen: &mut usize, links: &mut Vec<PathBuf>) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *seen += 1;
        if *seen > MAX_FILES || depth > MAX_DEPTH {
            return false;
        }
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_symlink) {
            let is_inside = path.canonicalize().is_ok_and(|_| is_within(root, &path));
            links.extend((!is_inside).then_some(path));
            continue;
        }
        let is_ours = kind.is_ok_and(|kind| kind.is_dir()) && (depth > 0 || entry.file_name() != WORK);
        if is_ours && !find_links(root, &path, depth + 1, seen, links) {
            return false;
        }
    }
    true
}

/// Where a path leads, and how it is written if that is elsewhere.
fn shown(path: &Path) -> String {
    match path.canonicalize() {
        Ok(real) if real != path => format!("{}, by {}", quoted(&real), quoted(path)),
        _ => quoted(path),
    }
}

fn quoted(path: &Path) -> String {
    Value::from(path.to_string_lossy()).to_string()
}

/// Whether a path lies in a folder, links followed as far as there is something.
fn is_within(own: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(own), real(path)) {
        (Some(own), Some(path)) => path.starts_with(own),
        (_, None) => path.starts_with(own) && is_plain(path.strip_prefix(own).unwrap_or(path)),
        (None, Some(_)) => false,
    }
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

impl fmt::Display for WantKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::Folder => "folder",
            Self::File => "file",
            Self::Address => "address",
            Self::Database => "database",
        })
    }
}

impl fmt::Display for Want {
    /// `program: "/bin/sh" "-c" "…", as the tool sh`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}
