//! Finds out what a manifest wants that is more than to read its own directory and to ask a known provider: all of it.

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

/// The directory of a workspace that belongs to its tools; nothing of ours is written through it, but for reflections.
const WORK: &str = "work";
/// The number of files of a workspace that are looked at, and the depth: an agent of years keeps a directory for each
/// session.
const MAX_FILES: usize = 1_000_000;
const MAX_DEPTH: usize = 32;
/// The maximum number of files that are counted among those that programs of an agent may use.
const MAX_COUNTED: usize = 10_000;

impl Wants {
    /// Returns the wants of a manifest whose own directory is this one. It reads files, and blocks.
    ///
    /// # Errors
    /// `Full` if a file that it names is longer than 1 GiB, or all of them are than 4 GiB.
    pub fn of(manifest: &Manifest, own: &Path) -> Result<Self, Error> {
        Self::sorted(manifest, own, Of::Manifest, |_| None)
    }

    fn sorted(
        manifest: &Manifest,
        own: &Path,
        of: Of,
        pinned: impl Fn(&Path) -> Option<String>,
    ) -> Result<Self, Error> {
        // Copies lie elsewhere once they are made: those of an agent are told by what they hold.
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
        // The target of a path is no part of the manifest, and may change without it.
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

    /// Returns the wants of an agent that was written down in this directory, no matter by whom. It reads files, and
    /// blocks.
    ///
    /// # Errors
    /// `Missing` if there is no agent, `Storage` if it cannot be read, `Full` as of a manifest.
    pub fn of_agent(workspace: &Workspace) -> Result<Self, Error> {
        if workspace.is_prepared() {
            let made = workspace.prepared()?;
            return Self::of_workspace(workspace, &made.resolved.manifest, &made.provenance.files);
        }
        Self::of_workspace(workspace, &workspace.agent()?.resolved.manifest, &[])
    }

    /// Returns the wants of a manifest that runs in this directory, and was made of these files.
    pub(crate) fn of_workspace(
        workspace: &Workspace,
        manifest: &Manifest,
        files: &[PinnedFile],
    ) -> Result<Self, Error> {
        let pinned = |path: &Path| {
            // A file that lies elsewhere is no copy, whatever is written of it.
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
            // It is no part of the manifest, whose content may be trusted without it.
            wants.digest = content::also(&wants.digest, &link.to_string());
            wants.all.push(link);
        }
        if wants.all.iter().any(|want| want.kind == WantKind::Program) {
            // They are the agent's to change, so they are listed with what is wanted and are no part of the digest.
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

    /// The same, with the files that a server runs and that an agent can change.
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

    /// The same, of a content that is more than the manifest: it is trusted by itself.
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

/// A server with all that is said of it; variables stand as they are named.
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

/// A program with all its words and its environment.
fn command(
    (program, args): (&Path, &[Arc<str>]),
    whose: &str,
    sandbox: &SandboxSpec,
    variables: BTreeMap<&String, &String>,
    own: &Path,
) -> String {
    // One that was carried along is the same wherever its agent is kept.
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

/// Returns where a provider is, and whose keys go there; nothing if that is what is known of a provider anyway.
fn address(value: &Value) -> Option<String> {
    // A provider that cannot be read is never used, and shown as it is.
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

/// An address: a letter of another script looks like one of a known host.
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

/// The links of a workspace that lead out of it, or nowhere; says whether all of it was looked at.
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

/// Returns `before` plus the number of files in a directory, counted as far as anybody would read the number.
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

/// True if a link leads out of a directory, or nowhere.
fn leads_out(root: &Path, link: &Path) -> bool {
    !link.canonicalize().is_ok_and(|_| is_within(root, link))
}

/// Returns where a path leads, and how it is written if that is elsewhere.
fn shown(path: &Path) -> String {
    match path.canonicalize() {
        Ok(real) if real != path => format!("{}, by {}", quoted(&real), quoted(path)),
        _ => quoted(path),
    }
}

fn quoted(path: &Path) -> String {
    Value::from(path.to_string_lossy()).to_string()
}

/// True if a path lies in a directory, with links followed as far as there is something.
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
