//! The file of servers that editors and other agents also read: `.mcp.json`.

mod edit;

use std::{
    fs,
    io::ErrorKind as IoKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::hidden::is_hidden;
use adjutant_toolkit::Rules;
use serde_json::{Map, Value};

use crate::{
    Error, ErrorKind, Manifest, Wants,
    files::{read_capped, storage},
    manifest::{McpSpec, SandboxSpec, ServerSpec, TOOLBOXES, is_line, nearest, vars},
    trust::Pins,
};

/// The name of the file in a directory.
pub const FILE_NAME: &str = ".mcp.json";
/// The maximum size of the file in bytes, and the maximum number of servers in it.
pub(super) const MAX_BYTES: u64 = 1 << 20;
const MAX_SERVERS: usize = 64;
/// The depth up to which duplicate keys are refused: the file, its servers, one server, and its maps.
const DEPTH: usize = 4;
/// The maximum number of bytes of a name.
pub(super) const MAX_NAME: usize = 32;
/// The fields that contain the servers; the second one is VS Code's.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];
/// Known fields of other programs that have no effect here.
const SILENT: [&str; 5] = ["type", "disabled", "description", "$schema", "inputs"];
/// The fields of a server.
const FIELDS: [&str; 14] = [
    "command", "args", "env", "cwd", "sandbox", "sha256", "url", "headers", "auth", "trusted",
    "prefix", "tools", "revision", "timeout",
];

/// A parsed file of servers: `.mcp.json` of a directory, or the user's own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpFile {
    /// The file.
    pub path: PathBuf,
    /// The usable servers, with variables not expanded.
    pub servers: Vec<(Arc<str>, ServerSpec)>,
    /// Errors and ignored fields, one line each; an invalid server is not among the servers.
    pub findings: Vec<String>,
    /// The directory of a plugin's data, which must exist before its servers start.
    pub data: Option<PathBuf>,
}

impl McpFile {
    /// Reads a file; `None` if it does not exist. Blocks.
    ///
    /// By default, a program runs in a sandbox with network access, and may change the directory of the file and
    /// directories that its arguments name.
    ///
    /// # Errors
    /// `Invalid` if it is not a regular file, belongs to another user than this process's or root, is longer than 1
    /// MiB, or is invalid; `Storage` if it cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(invalid(path, "it is a directory, and no file of servers"));
            }
            Ok(found) if !found.is_file() => {
                return Err(invalid(path, "it is no plain file, and a link is none"));
            }
            Ok(found) if is_strange(&found) => {
                return Err(invalid(
                    path,
                    "it belongs to another user, and is not believed",
                ));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(storage("read", path, error)),
        }
        let bytes = read_capped(path, MAX_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|_| invalid(path, "it is no UTF-8"))?;
        Self::parse(&text, path).map(Some)
    }

    /// Parses the current or future content of this file.
    ///
    /// # Errors
    /// `Invalid` if the content is invalid.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let text = text.trim_start_matches('\u{feff}');
        let root: Value = serde_json::from_str(text)
            .map_err(|error| invalid(path, &format!("it is no JSON: {error}")))?;
        // Programs differ in which duplicate counts, so the trusted content would have another meaning elsewhere.
        if let Some(field) = edit::twice(text, DEPTH) {
            return Err(invalid(
                path,
                &format!("it says `{field}` twice in one object; hint: take one out"),
            ));
        }
        let mut file = Self {
            path: path.to_owned(),
            servers: Vec::new(),
            findings: Vec::new(),
            data: None,
        };
        let root = root
            .as_object()
            .ok_or_else(|| invalid(path, "it holds no object"))?;
        let Some((field, servers)) = SERVERS
            .iter()
            .find_map(|field| Some((*field, root.get(*field)?)))
        else {
            let hint = "hint: it has the form {\"mcpServers\": {\"NAME\": {\"command\": …}}}";
            file.findings.push(format!("it names no servers; {hint}"));
            return Ok(file);
        };
        file.unknown(None, root.keys(), |key| key == field);
        let servers = servers
            .as_object()
            .ok_or_else(|| invalid(path, &format!("`{field}` is no object")))?;
        if servers.len() > MAX_SERVERS {
            return Err(invalid(
                path,
                &format!("it names more than {MAX_SERVERS} servers"),
            ));
        }
        for (name, value) in servers {
            match file.server(name, value) {
                Ok(Some(spec)) => file.servers.push((name.as_str().into(), spec)),
                Ok(None) => file.findings.push(format!("{name}: it is disabled")),
                Err(why) => file.findings.push(format!("{name}: {why}; it is not used")),
            }
        }
        Ok(file)
    }

    /// Returns the permissions that its servers request, for the user's trust. The digest covers the content of the
    /// file and the programs that it names, including files that a server runs in the directory of the file.
    ///
    /// # Errors
    /// `Full` if a program is too large to be hashed.
    pub fn wants(&self) -> Result<Wants, Error> {
        self.wants_in(self.folder())
    }

    /// True if a server of the file runs files of a directory that an agent can change.
    pub fn runs_files_of(&self, work: &Path) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|(_, spec)| !Pins::from_server(spec, work).is_empty())
    }

    /// The same as [`wants`](Self::wants), for an agent that can change this directory, in which servers start.
    ///
    /// # Errors
    /// `Full` if a program is too large to be hashed.
    pub fn wants_in(&self, work: &Path) -> Result<Wants, Error> {
        let manifest = Manifest {
            name: self.path.to_string_lossy().into(),
            mcp: McpSpec {
                servers: self.servers.iter().cloned().collect(),
            },
            ..Manifest::default()
        };
        let wants = Wants::from_manifest(&manifest, self.folder())?;
        let pinned = |wants: Wants, (name, spec): &(Arc<str>, ServerSpec)| {
            wants.with_pins(name, &Pins::from_server(spec, work))
        };
        Ok(self.servers.iter().fold(wants, pinned))
    }

    /// Adds a server in the format of the file, which is created if it does not exist. The rest of the file is
    /// unchanged, and the write is atomic.
    ///
    /// # Errors
    /// `Exists` if a server has this name, `Invalid` if the file or the server is invalid, `Storage` if the file cannot
    /// be written.
    pub fn add(path: &Path, name: &str, server: &Value) -> Result<(), Error> {
        let known = Self::read(path)?;
        let text = match &known {
            Some(_) => fs::read_to_string(path).map_err(|error| storage("read", path, error))?,
            None => String::new(),
        };
        let mut value = server.clone();
        if let Some(map) = value
            .as_object_mut()
            .filter(|map| map.contains_key("url") && !map.contains_key("type"))
        {
            map.shift_insert(0, "type".to_owned(), "http".into());
        }
        let empty = Self {
            path: path.to_owned(),
            servers: Vec::new(),
            findings: Vec::new(),
            data: None,
        };
        let told = known.unwrap_or(empty).server(name, &value);
        told.map_err(|why| {
            Error::new(
                ErrorKind::Invalid,
                format!("no server can be added as {name:?}: {why}"),
            )
        })?;
        edit::write(
            path,
            &edit::added(&text, name, &value).map_err(|why| why.error(path, name))?,
        )
    }

    /// Removes a server from a file; the rest of the file is unchanged.
    ///
    /// # Errors
    /// `Missing` if no server has this name, and like [`add`](Self::add).
    pub fn remove(path: &Path, name: &str) -> Result<(), Error> {
        let text = match Self::read(path)? {
            Some(_) => fs::read_to_string(path).map_err(|error| storage("read", path, error))?,
            None => String::new(),
        };
        edit::write(
            path,
            &edit::removed(&text, name).map_err(|why| why.error(path, name))?,
        )
    }

    /// Returns the base directory of its relative paths.
    fn folder(&self) -> &Path {
        self.path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    }

    /// Parses a server; `None` if it is disabled.
    fn server(&mut self, name: &str, value: &Value) -> Result<Option<ServerSpec>, String> {
        if !is_line(name, MAX_NAME) || name.len() > MAX_NAME || name.contains(is_hidden) {
            return Err(format!(
                "a name is one line of {MAX_NAME} bytes at most, all of which show"
            ));
        }
        let fields = value.as_object().ok_or("it is no object")?;
        if fields.get("disabled") == Some(&Value::Bool(true)) {
            return Ok(None);
        }
        match fields
            .get("type")
            .map(|kind| kind.as_str().unwrap_or_default())
        {
            None
            | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => {
            }
            Some("sse") => {
                let hint = "most servers have one of type `http` too, often at `/mcp`";
                return Err(format!(
                    "the type `sse` of older revisions is not spoken here, hint: {hint}"
                ));
            }
            Some(kind) => {
                return Err(format!(
                    "there is no type {kind:?}: there are `stdio` and `http`"
                ));
            }
        }
        self.unknown(Some(name), fields.keys(), |key| FIELDS.contains(&key));
        let mut own: Map<String, Value> = fields
            .iter()
            .filter(|(key, _)| FIELDS.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if own.get("timeout").is_some_and(Value::is_number) {
            own.remove("timeout");
            self.findings.push(format!(
                "{name}: `timeout` is not heeded: here it is a time, as \"30s\""
            ));
        }
        if own
            .get("tools")
            .is_some_and(|tools| *tools == serde_json::json!(["*"]))
        {
            own.remove("tools");
        }
        let folder = self
            .folder()
            .canonicalize()
            .unwrap_or_else(|_| self.folder().to_owned());
        for value in own.values_mut() {
            translated(value, &folder)?;
        }
        if let Some(prefix) = taken_prefix(name) {
            own.entry("prefix").or_insert_with(|| (*prefix).into());
        }
        // Many servers are downloaded at their first start.
        own.entry("timeout").or_insert_with(|| "60s".into());
        let has_sandbox = own.contains_key("sandbox");
        let mut spec: ServerSpec =
            serde_json::from_value(Value::Object(own)).map_err(|error| error.to_string())?;
        for text in spec.texts() {
            vars::names(text).map_err(|(message, _)| message)?;
        }
        match (&spec.command, &spec.url) {
            (Some(_), None) => {}
            (None, Some(url)) => {
                let is_web = ["https://", "http://", "${"]
                    .iter()
                    .any(|start| url.trim().starts_with(start));
                let place = url.split_once("://").map_or(&**url, |(_, rest)| rest);
                return match (
                    is_web,
                    place
                        .split(['/', '?', '#'])
                        .next()
                        .is_some_and(|host| host.contains('@')),
                ) {
                    (_, true) => Err(
                        "its address holds a user or a password, hint: they belong into `headers`"
                            .to_owned(),
                    ),
                    (true, false) => Ok(Some(spec)),
                    (false, false) => Err(format!("this is no address of a server: {url:?}")),
                };
            }
            _ => return Err("a server has either a `command` or a `url`".to_owned()),
        }
        let absolute = |path: &mut PathBuf| {
            if !vars::has_any(&path.to_string_lossy()) {
                *path = folder.join(&*path).components().collect();
            }
        };
        spec.command
            .as_mut()
            .filter(|command| command.components().count() > 1)
            .map(absolute);
        spec.cwd.as_mut().map(absolute);
        // The user's own file belongs to no directory. In the file of a directory, relative arguments are files there,
        // which are part of the trusted content.
        if self.path.file_name().is_some_and(|name| name == FILE_NAME) {
            spec.cwd.get_or_insert_with(|| folder.clone());
        }
        let SandboxSpec { read, write, .. } = &mut spec.sandbox;
        read.iter_mut().chain(write).for_each(absolute);
        if !has_sandbox {
            let named = spec
                .args
                .iter()
                .map(|word| Path::new(&**word))
                .filter(|path| path.is_absolute() && path.is_dir());
            spec.sandbox.write = named.map(Path::to_owned).collect();
            spec.sandbox.network = true;
        }
        Ok(Some(spec))
    }

    /// Reports ignored fields.
    fn unknown<'k>(
        &mut self,
        server: Option<&str>,
        keys: impl Iterator<Item = &'k String>,
        is_known: impl Fn(&str) -> bool,
    ) {
        let whose = server.map(|name| format!("{name}: ")).unwrap_or_default();
        for key in keys.filter(|key| !is_known(key) && !SILENT.contains(&key.as_str())) {
            let near = nearest(key, FIELDS.into_iter().chain(SERVERS))
                .map(|near| format!("; hint: the nearest is `{near}`"));
            self.findings.push(format!(
                "{whose}the field `{key}` is not heeded{}",
                near.unwrap_or_default()
            ));
        }
    }
}

/// Returns the prefix of a server whose name would make its tools look like others.
pub(super) fn taken_prefix(name: &str) -> Option<Arc<str>> {
    let is_taken = TOOLBOXES.contains(&name) || Rules::knows_prefix(&format!("{name}_"));
    is_taken.then(|| format!("mcp_{name}_").into())
}

/// Converts the variable syntax of other programs, and converts numbers and Booleans to texts as other programs do.
fn translated(value: &mut Value, folder: &Path) -> Result<(), String> {
    match value {
        Value::String(text) => {
            if text.contains("${input:") {
                return Err("it asks for an input, as only VS Code does, hint: name a variable of the environment, as `${NAME}`".to_owned());
            }
            *text = text
                .replace("${env:", "${")
                .replace("${workspaceFolder}", &folder.to_string_lossy());
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| translated(item, folder)),
        Value::Object(map) => map
            .values_mut()
            .try_for_each(|item| translated(item, folder)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// True if a file belongs to a user other than this one and root.
#[cfg(unix)]
fn is_strange(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw()
}

fn invalid(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{}: {why}", path.display()))
}
