//! Determines all permissions that a manifest requests beyond reading its own directory and calling a known provider.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use adjutant_providers::Provider;
use serde_json::{Value, json};

#[cfg(feature = "mcp")]
use super::Pins;
use super::{
    Reach,
    content::{self, Of},
    reach,
};
use crate::{
    error::Error,
    manifest::{Manifest, OptionsSpec, PeerSpec, ProcessTool, SandboxSpec, ServerSpec},
    provenance::{FileKind, PinnedFile},
    wants::{Want, WantKind, Wants},
    workspace::Workspace,
};

/// The directory of a workspace for its tools. The runtime writes nothing through it, except for reflections.
const WORK: &str = "work";
/// The maximum number of inspected files of a workspace, and the maximum depth: an old agent has a directory for each
/// session.
const MAX_FILES: usize = 1_000_000;
const MAX_DEPTH: usize = 32;
/// The maximum number of counted files that programs of an agent may use.
const MAX_COUNTED: usize = 10_000;

impl Wants {
    /// Returns the permissions that a manifest in this directory requests. Reads files, and blocks.
    ///
    /// # Errors
    /// `Full` if a file is larger than 1 GiB, or all files together are larger than 4 GiB.
    pub fn from_manifest(manifest: &Manifest, own: &Path) -> Result<Self, Error> {
        Self::sorted(manifest, own, Of::Manifest, |_| None)
    }

    fn sorted(
        manifest: &Manifest,
        own: &Path,
        of: Of,
        pinned: impl Fn(&Path) -> Option<String>,
    ) -> Result<Self, Error> {
        // The paths of copies differ between agents, so copies are identified by their content.
        let is_by_path = |it: &Reach<'_>| of == Of::Manifest || !matches!(it, Reach::Copied(_));
        let sorted = |reach: Vec<Reach<'_>>| {
            reach
                .into_iter()
                .filter_map(|it| want(it, manifest, own))
                .collect()
        };
        let all: BTreeSet<Want> = sorted(reach(manifest));
        let by_path: BTreeSet<Want> =
            sorted(reach(manifest).into_iter().filter(is_by_path).collect());
        // The target of a path is not part of the manifest, and may change without it.
        let digest = content::digest(manifest, (of, own), pinned)?;
        let digest = by_path
            .iter()
            .fold(digest, |digest, it| content::also(&digest, &it.to_string()));
        Ok(Self {
            name: Arc::clone(&manifest.name),
            all: all.into_iter().collect(),
            digest,
        })
    }

    /// Returns the permissions that the recorded agent in this directory requests. Reads files,
    /// and blocks.
    ///
    /// # Errors
    /// `Missing` if there is no agent, `Storage` if it cannot be read, `Full` as for a manifest.
    pub fn from_agent(workspace: &Workspace) -> Result<Self, Error> {
        if workspace.is_prepared() {
            let made = workspace.prepared()?;
            return Self::from_workspace(
                workspace,
                &made.resolved.manifest,
                &made.provenance.files,
            );
        }
        Self::from_workspace(workspace, &workspace.agent()?.resolved.manifest, &[])
    }

    /// Returns the permissions that a manifest requests which runs in this directory, and was read from these files.
    pub(crate) fn from_workspace(
        workspace: &Workspace,
        manifest: &Manifest,
        files: &[PinnedFile],
    ) -> Result<Self, Error> {
        let pinned = |path: &Path| {
            // A file outside the workspace is not a copy, even if it is recorded as one.
            let files = if is_within(workspace.root(), path) {
                files
            } else {
                &[]
            };
            let is_it = |file: &&PinnedFile| {
                file.kind == FileKind::Data && workspace.root().join(&file.path) == path
            };
            files.iter().find(is_it).map(|file| file.sha256.clone())
        };
        let mut wants = Self::sorted(manifest, workspace.root(), Of::Agent, pinned)?;
        let mut links = Vec::new();
        let (root, mut seen) = (workspace.root(), 0);
        let mut is_whole = find_links(root, root, 0, &mut seen, &mut links);
        let reflections = manifest
            .agents
            .iter()
            .filter_map(|agent| agent.reflections.as_ref()?.folder.as_deref());
        for folder in reflections.filter(|folder| is_plain(folder)) {
            let above = links.len();
            links.extend(
                folder
                    .ancestors()
                    .map(|it| root.join(it))
                    .filter(|it| it.is_symlink() && leads_out(root, it)),
            );
            is_whole &= links.len() > above
                || find_links(root, &root.join(folder), 1, &mut seen, &mut links);
        }
        links.sort();
        links.dedup();
        let links = links.iter().map(|path| {
            Want::new(
                WantKind::Folder,
                format!("{}, for what an agent keeps", shown(path)),
            )
        });
        let unseen = format!("more than {MAX_FILES} files of its own, not looked at");
        let links = links
            .chain((!is_whole).then(|| Want::new(WantKind::Folder, unseen)))
            .collect::<Vec<_>>();
        for link in links {
            // Links are not part of the manifest, whose content may be trusted without them.
            wants.digest = content::also(&wants.digest, &link.to_string());
            wants.all.push(link);
        }
        if wants.all.iter().any(|want| want.kind == WantKind::Program) {
            // The agent may change them, so they are listed with the permissions and are not part of the digest.
            for (folder, name) in [
                (workspace.work(), "its working folder"),
                (workspace.file("home"), "its home"),
            ] {
                let count = match count(&folder, 0, 0) {
                    0 => continue,
                    1 => "1 file".to_owned(),
                    all if all > MAX_COUNTED => format!("more than {MAX_COUNTED} files"),
                    all => format!("{all} files"),
                };
                wants.all.push(Want::new(
                    WantKind::Folder,
                    format!("{count} in {name}, which its programs may use"),
                ));
            }
        }
        wants.all.sort();
        Ok(wants)
    }

    /// Adds the files that a server runs and that an agent can change.
    #[cfg(feature = "mcp")]
    pub(crate) fn with_pins(mut self, name: &str, pins: &Pins) -> Self {
        if let Some(package) = &pins.floating {
            let text = format!(
                "the package {package:?} in whatever version there is, for the server {name}"
            );
            self.all.push(Want::new(WantKind::Program, text));
        }
        if pins.is_empty() {
            return self;
        }
        let content = pins.read();
        let trees: Vec<String> = pins.trees().map(shown).collect();
        let text = match content.is_whole {
            true => format!(
                "the present content of {} below {}, for the server {name}",
                files(content.files),
                trees.join(", ")
            ),
            false => format!(
                "too many files below {} to be pinned, so that it is asked each time, for the server {name}",
                trees.join(", ")
            ),
        };
        self.digest = content::also(&self.digest, &format!("{name} {}", content.digest));
        self.all.push(Want::new(WantKind::File, text));
        self.all.sort();
        self
    }

    /// Returns what skills of a directory want: to instruct the model. The digest covers all files of the skills. It
    /// reads them, and blocks.
    #[cfg(feature = "mcp")]
    pub fn of_skills<'s>(
        directory: &Path,
        skills: impl IntoIterator<Item = (&'s str, &'s Path)>,
    ) -> Self {
        let skills: BTreeMap<&str, &Path> = skills.into_iter().collect();
        let content = Pins::from_trees(skills.values().map(|path| path.to_path_buf())).read();
        let want = |(name, path): (&&str, &&Path)| {
            Want::new(WantKind::Skill, format!("{name}, in {}", shown(path)))
        };
        Self {
            name: directory.to_string_lossy().into(),
            all: skills.iter().map(want).collect(),
            digest: content::also(&content.digest, &directory.to_string_lossy()),
        }
    }

    /// Adds a content beyond the manifest, which needs its own trust.
    pub(crate) fn with_content(mut self, digest: &str) -> Self {
        self.digest = content::also(&self.digest, digest);
        self
    }
}

#[cfg(feature = "mcp")]
fn files(count: usize) -> String {
    if count == 1 {
        "1 file".to_owned()
    } else {
        format!("{count} files")
    }
}

fn want(reach: Reach<'_>, manifest: &Manifest, own: &Path) -> Option<Want> {
    match reach {
        Reach::Copied(path) | Reach::Inside(path) if is_within(own, path) => None,
        Reach::Root(path) if is_within(own, path) => None,
        Reach::Inside(path) if path.is_relative() && is_plain(path) => None,
        Reach::Copied(path) if path.is_dir() => Some(Want::new(
            WantKind::Folder,
            format!("{}, for agents", shown(path)),
        )),
        Reach::Copied(path) | Reach::Inside(path) => Some(Want::new(
            WantKind::File,
            format!("{}, for agents", shown(path)),
        )),
        Reach::Root(path) => Some(Want::new(
            WantKind::Folder,
            format!("{}, for file tools", shown(path)),
        )),
        Reach::Program(tool) => {
            let ProcessTool {
                name,
                binary,
                args,
                environment,
                sandbox,
                ..
            } = tool;
            let variables = manifest.environment.iter().chain(environment).collect();
            let whose = format!("tool {name}");
            Some(Want::new(
                WantKind::Program,
                command((binary, args), &whose, sandbox, variables, own),
            ))
        }
        Reach::Server(name, spec) => Some(server(name, spec, own)),
        Reach::Commands(agent, rules) => {
            let rules = match rules {
                Some(rules) => format!("by the rules {}", json!(rules)),
                None => "each one asked about".to_owned(),
            };
            let text = format!("any command, in the sandbox, of the agent {agent}, {rules}");
            Some(Want::new(WantKind::Program, text))
        }
        Reach::Pages(agent) => Some(Want::new(
            WantKind::Address,
            format!("any public page of the web, for the agent {agent}"),
        )),
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
        Reach::Peer(PeerSpec {
            name,
            description: _,
            agent,
            address,
            a2a,
            token_variable,
        }) => {
            let with = |token: &Option<String>| {
                format!("with the token in {}", token.as_deref().unwrap_or("none"))
            };
            let place = match (address, token_variable) {
                (None, token) if a2a.is_some() => {
                    format!(
                        "{}, {}",
                        plain(a2a.as_deref().unwrap_or_default()),
                        with(token)
                    )
                }
                (Some(address), token) => {
                    format!(
                        "{address}, with the token in {}",
                        token.as_deref().unwrap_or("none")
                    )
                }
                (None, _) => format!("the agent {} beside it", agent.as_ref().unwrap_or(name)),
            };
            Some(Want::new(
                WantKind::Address,
                format!("{place}, as the peer {name}"),
            ))
        }
        Reach::Database(variable) => Some(Want::new(
            WantKind::Database,
            format!("at the address in {variable}"),
        )),
    }
}

/// Describes a server with all its fields; variables are not expanded.
fn server(name: &str, spec: &ServerSpec, own: &Path) -> Want {
    let ServerSpec {
        command: program,
        args,
        env,
        cwd,
        sandbox,
        sha256: _,
        url,
        headers,
        auth,
        trusted,
        ..
    } = spec;
    let believed = if *trusted {
        ", whose word on its tools is taken"
    } else {
        ""
    };
    match (program, url) {
        (Some(program), _) => {
            let whose = match cwd {
                Some(cwd) => format!("server {name} in {}", shown(cwd)),
                None => format!("server {name}"),
            };
            let text = self::command((program, args), &whose, sandbox, env.iter().collect(), own);
            Want::new(WantKind::Program, text + believed)
        }
        (None, url) => {
            let mut text = format!(
                "{}, as the server {name}",
                plain(url.as_deref().unwrap_or_default())
            );
            if !headers.is_empty() {
                text += &format!(", with the headers {}", json!(headers));
            }
            if !auth.token_command.is_empty() {
                text += &format!(
                    ", with the token that the program {} prints",
                    json!(auth.token_command)
                );
            }
            Want::new(WantKind::Address, text + believed)
        }
    }
}

/// Describes a program with its arguments and environment.
fn command(
    (program, args): (&Path, &[Arc<str>]),
    whose: &str,
    sandbox: &SandboxSpec,
    variables: BTreeMap<&String, &String>,
    own: &Path,
) -> String {
    // A program from a bundle is identified without the place of its agent.
    let mut text = quoted(content::carried(program, own).unwrap_or(program));
    args.iter()
        .for_each(|word| text += &format!(" {}", Value::from(&**word)));
    text += &format!(", as the {whose}");
    let SandboxSpec {
        read,
        write,
        network,
        danger_without_any,
    } = sandbox;
    for (may, paths) in [("reads", read), ("changes", write)] {
        paths
            .iter()
            .for_each(|path| text += &format!(", which {may} {}", shown(path)));
    }
    if *network {
        text += ", with the network";
    }
    if *danger_without_any {
        text += ", without a sandbox";
    }
    for (n, (name, value)) in variables.into_iter().enumerate() {
        text += &format!(
            "{}{name}={}",
            if n == 0 { ", with " } else { " " },
            Value::from(&**value)
        );
    }
    text
}

/// Returns the address of a provider and the keys that are sent there; `None` if both are the provider's known ones.
fn address(value: &Value) -> Option<String> {
    // An invalid provider is never used, and is displayed unchanged.
    let Ok(provider) = serde_json::from_value::<Provider>(value.clone()) else {
        return Some(value.to_string());
    };
    if provider.is_usual() {
        return None;
    }
    let text = match (&*provider.base_url, &*provider.base_url_variable) {
        ("", "") => "its usual address".to_owned(),
        ("", variable) => format!("the address in {variable}"),
        (url, "") => url.to_owned(),
        (url, variable) => format!("{url}, or the address in {variable}"),
    };
    let mut text = plain(&text);
    text += &format!(", as the provider {}", provider.name);
    match &provider.key_variables[..] {
        [] => {}
        variables => text += &format!(", with the key in {}", variables.join(" or ")),
    }
    if let Some(command) = &provider.key_command {
        text += &format!(
            ", with the key that the program {} prints",
            Value::from(command.argv.as_slice())
        );
    }
    if !provider.headers.is_empty() {
        let names: Vec<&str> = provider.headers.keys().map(String::as_str).collect();
        text += &format!(", with the headers {}", names.join(", "));
    }
    Some(text)
}

/// Formats an address so that letters of other scripts cannot imitate a known host.
fn plain(address: &str) -> String {
    address
        .chars()
        .flat_map(|c| {
            if c.is_ascii() {
                vec![c]
            } else {
                c.escape_unicode().collect()
            }
        })
        .collect()
}

/// Finds the links of a workspace that lead out of it or nowhere; returns whether all entries were inspected.
fn find_links(
    root: &Path,
    folder: &Path,
    depth: usize,
    seen: &mut usize,
    links: &mut Vec<PathBuf>,
) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *seen += 1;
        if *seen > MAX_FILES || depth > MAX_DEPTH {
            return false;
        }
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.as_ref().is_ok_and(fs::FileType::is_symlink) {
            links.extend(leads_out(root, &path).then_some(path));
            continue;
        }
        let is_ours =
            kind.is_ok_and(|kind| kind.is_dir()) && (depth > 0 || entry.file_name() != WORK);
        if is_ours && !find_links(root, &path, depth + 1, seen, links) {
            return false;
        }
    }
    true
}

/// Returns `before` plus the number of files in a directory, up to a maximum.
fn count(folder: &Path, depth: usize, before: usize) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.fold(before, |all, entry| {
        let is_folder = depth < MAX_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir());
        match is_folder {
            _ if all > MAX_COUNTED => all,
            true => count(&entry.path(), depth + 1, all),
            false => all + 1,
        }
    })
}

/// True if a link leads out of a directory or nowhere.
fn leads_out(root: &Path, link: &Path) -> bool {
    !link.canonicalize().is_ok_and(|_| is_within(root, link))
}

/// Formats a path with its target, if that differs.
fn shown(path: &Path) -> String {
    match path.canonicalize() {
        Ok(real) if real != path => format!("{}, by {}", quoted(&real), quoted(path)),
        _ => quoted(path),
    }
}

fn quoted(path: &Path) -> String {
    Value::from(path.to_string_lossy()).to_string()
}

/// True if a path is in a directory, with links resolved for its existing part.
fn is_within(own: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(own), real(path)) {
        (Some(own), Some(path)) => path.starts_with(own),
        (_, None) => path.starts_with(own) && is_plain(path.strip_prefix(own).unwrap_or(path)),
        (None, Some(_)) => false,
    }
}

fn is_plain(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
