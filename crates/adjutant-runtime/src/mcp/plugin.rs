//! Plugins in the format of Agent Plugins: a directory with skills and servers that several clients load.
//!
//! Source: agent-plugins.org, Agent Plugins Specification 1.0.0, November 2026. Sections are named where they decide.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use adjutant_llm::hidden::is_hidden;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::file::{MAX_BYTES, MAX_NAME, McpFile, taken_prefix};
use crate::{
    files::read_capped,
    manifest::{ServerSpec, Span, is_line},
};

/// The manifest of a plugin, and the directory of plugins below a project or a home.
const MANIFEST: &str = "plugin.json";
const PLUGINS: &str = ".agents/plugins";
/// The identifiers of the supported version (5.2, 7.2.1).
const PLUGIN_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const MCP_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";
/// The maximum number of plugins in one directory.
const MAX_PLUGINS: usize = 100;
/// The time that a server has to start: the first start of many downloads them.
const START: Duration = Duration::from_secs(60);

/// A plugin: a directory with a `plugin.json`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name.
    pub name: Arc<str>,
    /// Its directory, without links.
    pub root: PathBuf,
    /// The directory of its skills, if it has one.
    pub skills: Option<PathBuf>,
    /// Its servers, if it has a valid `mcp.json`.
    pub servers: Option<McpFile>,
    /// Problems and ignored parts, one line each.
    pub findings: Vec<String>,
}

/// The fields that a `plugin.json` may have, apart from `extensions`.
const FIELDS: [&str; 9] = [
    "$schema",
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpConfig {
    #[serde(rename = "$schema")]
    schema: String,
    #[serde(rename = "mcpServers")]
    servers: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum PluginServer {
    #[serde(rename = "stdio")]
    Stdio {
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        #[serde(default)]
        cwd: Option<String>,
    },
    #[serde(rename = "streamable-http")]
    Http {
        url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    #[serde(rename = "sse")]
    Sse {
        url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl Plugin {
    /// Reads the plugins in `.agents/plugins` of a directory, sorted by directory, and the problems of the others, one
    /// line each. It blocks.
    ///
    /// `data` returns the directory in which a plugin keeps its data. A plugin that a link leads to is read if it is
    /// inside `within`, or anywhere without it.
    pub fn find(
        directory: &Path,
        within: Option<&Path>,
        data: impl Fn(&Path) -> PathBuf,
    ) -> (Vec<Self>, Vec<String>) {
        let (mut plugins, mut problems) = (Vec::new(), Vec::new());
        let entries = fs::read_dir(directory.join(PLUGINS)).into_iter().flatten();
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.retain(|folder| folder.join(MANIFEST).symlink_metadata().is_ok());
        if folders.len() > MAX_PLUGINS {
            problems.push(format!(
                "there are more than {MAX_PLUGINS} plugins; the rest is not read"
            ));
            folders.truncate(MAX_PLUGINS);
        }
        for folder in folders {
            let read = real(&folder, within).and_then(|root| Self::read(&root, &data(&root)));
            match read {
                Ok(plugin) => plugins.push(plugin),
                Err(why) => problems.push(format!("{}: {why}; it is not used", folder.display())),
            }
        }
        (plugins, problems)
    }

    /// Reads a plugin whose directory has no links.
    fn read(root: &Path, data: &Path) -> Result<Self, String> {
        let mut findings = Vec::new();
        let mut fields: Map<String, Value> = json(&real(&root.join(MANIFEST), Some(root))?)?;
        if fields
            .remove("extensions")
            .is_some_and(|value| !value.is_object())
        {
            findings.push("the field `extensions` is not an object; it is ignored".to_owned());
        }
        fields.retain(|key, _| {
            let is_known = FIELDS.contains(&&**key);
            if !is_known {
                findings.push(format!("the unknown field {key:?} is ignored"));
            }
            is_known
        });
        for (key, value) in &fields {
            if !has_type(key, value) {
                return Err(format!("the field {key:?} has a wrong type"));
            }
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let schema = text("$schema").ok_or("missing field `$schema`")?;
        if schema != PLUGIN_SCHEMA {
            return Err(format!(
                "the version {schema:?} of `$schema` is not supported; hint: version 1.0.0 is {PLUGIN_SCHEMA}"
            ));
        }
        let name = text("name").ok_or("missing field `name`")?;
        if !is_name(name) {
            return Err(format!("invalid `name`: {name:?}"));
        }
        let mut plugin = Self {
            name: name.into(),
            root: root.to_owned(),
            skills: None,
            servers: None,
            findings,
        };
        let skills = root.join("skills");
        if skills.symlink_metadata().is_ok() {
            match real(&skills, Some(root)).map(|real| real.is_dir()) {
                Ok(true) => plugin.skills = Some(skills),
                _ => plugin
                    .findings
                    .push("`skills` is not a directory of the plugin".to_owned()),
            }
        }
        let servers = root.join("mcp.json");
        if servers.symlink_metadata().is_ok() {
            match plugin.read_servers(&servers, data) {
                Ok(file) => plugin.servers = Some(file),
                Err(why) => plugin
                    .findings
                    .push(format!("`mcp.json`: {why}; its servers are not used")),
            }
        }
        Ok(plugin)
    }

    fn read_servers(&mut self, path: &Path, data: &Path) -> Result<McpFile, String> {
        let config: McpConfig = typed(json(&real(path, Some(&self.root))?)?)?;
        if config.schema != MCP_SCHEMA {
            return Err(format!(
                "its `$schema` is not that of version 1.0.0: {:?}",
                config.schema
            ));
        }
        let mut file = McpFile {
            path: path.to_owned(),
            servers: Vec::new(),
            findings: Vec::new(),
            data: Some(data.to_owned()),
        };
        for (name, value) in config.servers {
            let spec = if !is_line(&name, MAX_NAME) || name.contains(is_hidden) {
                Err(format!(
                    "a name is one line of at most {MAX_NAME} bytes, all of which are visible"
                ))
            } else {
                typed(value).and_then(|server| self.server(&name, server, data))
            };
            match spec {
                Ok(spec) => file.servers.push((name.into(), spec)),
                Err(why) => file.findings.push(format!("{name}: {why}; it is not used")),
            }
        }
        Ok(file)
    }

    /// Converts a server to the form of other files. Texts are literal apart from the two placeholders (9.2).
    fn server(&self, name: &str, server: PluginServer, data: &Path) -> Result<ServerSpec, String> {
        let mut spec = ServerSpec {
            prefix: taken_prefix(name),
            timeout: Some(Span(START)),
            ..ServerSpec::default()
        };
        match server {
            PluginServer::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                spec.command = Some(self.program(&command)?);
                let fill = |text: &str| fill(text, &self.root, data);
                spec.args = args.iter().map(|word| fill(word).into()).collect();
                for (key, value) in env {
                    if ["PLUGIN_ROOT", "PLUGIN_DATA"].contains(&&*key) {
                        return Err(format!("`env` must not contain {key}"));
                    }
                    spec.env.insert(key, fill(&value));
                }
                for (key, path) in [("PLUGIN_ROOT", &*self.root), ("PLUGIN_DATA", data)] {
                    spec.env
                        .insert(key.to_owned(), literal(&path.to_string_lossy()));
                }
                spec.cwd = Some(self.directory(cwd.as_deref(), data)?);
                spec.sandbox.read = vec![self.root.clone()];
                spec.sandbox.write = vec![data.to_owned()];
                spec.sandbox.network = true;
            }
            PluginServer::Http { url, headers } => {
                check_url(&url)?;
                check_headers(&headers)?;
                spec.url = Some(literal(&url).into());
                spec.headers = headers
                    .into_iter()
                    .map(|(name, value)| (name, literal(&value)))
                    .collect();
            }
            PluginServer::Sse { url, headers } => {
                check_url(&url)?;
                check_headers(&headers)?;
                return Err(
                    "the transport `sse` is not supported; hint: many servers also have \
                            one of type `streamable-http`"
                        .to_owned(),
                );
            }
        }
        Ok(spec)
    }

    /// Returns a program: a bare name, or a path below the plugin (7.2.1).
    fn program(&self, command: &str) -> Result<PathBuf, String> {
        if let Some(below) = command.strip_prefix("./") {
            return real(&self.root.join(below), Some(&self.root))
                .map(|path| PathBuf::from(literal(&path.to_string_lossy())));
        }
        let is_bare = !command.is_empty() && !command.contains(['/', '\\']);
        match is_bare && command != ".." {
            true => Ok(literal(command).into()),
            false => {
                Err("`command` must be a bare name, or a path that begins with `./`".to_owned())
            }
        }
    }

    /// Returns a working directory: below the plugin, or below its data (7.2.1).
    fn directory(&self, cwd: Option<&str>, data: &Path) -> Result<PathBuf, String> {
        let Some(cwd) = cwd else {
            return Ok(self.root.clone());
        };
        let below = |start: &str| {
            let rest = cwd.strip_prefix(start)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
        };
        let (root, below) = match (
            cwd.strip_prefix("./"),
            below("${PLUGIN_ROOT}"),
            below("${PLUGIN_DATA}"),
        ) {
            (Some(below), ..) | (_, Some(below), _) => (&*self.root, below),
            (.., Some(below)) => (data, below),
            _ => {
                return Err(
                    "`cwd` must begin with `./`, `${PLUGIN_ROOT}` or `${PLUGIN_DATA}`".to_owned(),
                );
            }
        };
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let path = root.join(below);
        let around = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        match path.canonicalize() {
            Ok(real) if real.starts_with(around) => Ok(literal(&real.to_string_lossy()).into()),
            // The server may create a directory of its data at its first start.
            Err(_) if root == data && Path::new(below).components().all(is_plain) => {
                Ok(literal(&path.to_string_lossy()).into())
            }
            _ => Err("`cwd` is not a directory of the plugin".to_owned()),
        }
    }
}

/// The path without links, which must be inside a directory.
fn real(path: &Path, within: Option<&Path>) -> Result<PathBuf, String> {
    let real = path
        .canonicalize()
        .map_err(|error| format!("{} cannot be read: {}", path.display(), error.kind()))?;
    let within = within.map(|within| within.canonicalize().unwrap_or_else(|_| within.to_owned()));
    match within.is_none_or(|within| real.starts_with(within)) {
        true => Ok(real),
        false => Err(format!("{} leads out of its directory", path.display())),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let bytes = read_capped(path, MAX_BYTES).map_err(|error| error.message().to_owned())?;
    let value = adjutant_llm::json::from_slice(&bytes).map_err(|error| error.to_string())?;
    typed(value)
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// True if a field of a manifest has the type of the specification (5.3, 5.4).
fn has_type(key: &str, value: &Value) -> bool {
    match key {
        "author" => value.as_object().is_some_and(|author| {
            let is_known = |key: &str| ["name", "email", "url"].contains(&key);
            author
                .iter()
                .all(|(key, value)| is_known(key) && value.is_string())
        }),
        "keywords" => value
            .as_array()
            .is_some_and(|words| words.iter().all(Value::is_string)),
        _ => value.is_string(),
    }
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), String> {
    let names: BTreeSet<String> = headers.keys().map(|name| name.to_lowercase()).collect();
    match names.len() < headers.len() {
        true => Err("`headers` contains a name twice".to_owned()),
        false => Ok(()),
    }
}

/// True if a plugin may have this name (5.5).
fn is_name(name: &str) -> bool {
    let is_part = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    (1..=64).contains(&name.len())
        && name.chars().all(is_part)
        && !name.starts_with(['-', '.'])
        && !name.ends_with(['-', '.'])
        && !name.contains("--")
        && !name.contains("..")
}

/// Checks the address of a server (7.2.1).
fn check_url(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match place.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    let is_loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|host| host.is_loopback());
    if host.is_empty() || place.contains('@') || url.contains('#') {
        return Err("`url` must be absolute, without a user and without a fragment".to_owned());
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("`url` must use https, or http on this machine".to_owned()),
    }
}

/// Replaces the placeholders once; everything else stays as it is.
fn fill(text: &str, root: &Path, data: &Path) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${PLUGIN_") {
        out.push_str(&literal(before));
        let paths = [("ROOT}", root), ("DATA}", data)];
        let found = paths
            .iter()
            .find_map(|(name, path)| Some((after.strip_prefix(name)?, path)));
        rest = match found {
            Some((after, path)) => {
                out.push_str(&literal(&path.to_string_lossy()));
                after
            }
            None => {
                out.push_str(&literal("${PLUGIN_"));
                after
            }
        };
    }
    out + &literal(rest)
}

/// A text that is not expanded when the server is reached.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plugin with this manifest and these servers.
    fn read(manifest: &str, servers: &str) -> (tempfile::TempDir, Result<Plugin, String>) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let root = folder.path().canonicalize().expect("it exists").join("p");
        fs::create_dir_all(root.join("skills/heron")).expect("it can be made");
        fs::create_dir_all(root.join("bin")).expect("it can be made");
        let write = |path: &str, text: &str| {
            fs::write(root.join(path), text).expect("it can be written");
        };
        write("bin/server", "#!/bin/sh\n");
        write("plugin.json", manifest);
        write("mcp.json", servers);
        let plugin = Plugin::read(&root, Path::new("/data/p"));
        (folder, plugin)
    }

    fn manifest(fields: &str) -> String {
        format!(r#"{{"$schema": "{PLUGIN_SCHEMA}", "name": "a"{fields}}}"#)
    }

    fn servers(servers: &str) -> String {
        format!(r#"{{"$schema": "{MCP_SCHEMA}", "mcpServers": {{{servers}}}}}"#)
    }

    #[test]
    fn plugin_is_refused_only_for_what_the_specification_calls_fatal() {
        let empty = servers("");
        for (fields, findings) in [
            ("", 0),
            (
                r#", "version": "x", "license": "?", "author": {"name": "b"}, "keywords": ["c"]"#,
                0,
            ),
            (r#", "hooks": {}, "commands": 1"#, 2),
            (r#", "extensions": 1"#, 1),
            (r#", "extensions": {"com.example": 1}"#, 0),
        ] {
            let plugin = read(&manifest(fields), &empty).1.expect(fields);
            assert_eq!(plugin.findings.len(), findings, "{fields}");
            assert!(plugin.skills.is_some() && plugin.servers.is_some());
        }
        for wrong in [
            "{".to_owned(),
            "[]".to_owned(),
            r#"{"name": "a"}"#.to_owned(),
            format!(r#"{{"$schema": "{PLUGIN_SCHEMA}"}}"#),
            format!(r#"{{"$schema": "{PLUGIN_SCHEMA}", "name": "A"}}"#),
            format!(r#"{{"$schema": "{PLUGIN_SCHEMA}", "name": "a..b"}}"#),
            manifest(r#", "version": 1"#),
            manifest(r#", "author": {"phone": "1"}"#),
            manifest("").replace("1.0.0", "9.0.0"),
        ] {
            assert!(read(&wrong, &empty).1.is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_are_literal_apart_from_the_placeholders() {
        let text = servers(
            r#""db": {"type": "stdio", "command": "./bin/server", "env": {"HOME_DIR": "${HOME}"},
                "args": ["${PLUGIN_ROOT}/c", "${PLUGIN_DATA}${PLUGIN_ROOT}", "${PLUGIN_X} $A"], "cwd": "${PLUGIN_DATA}/x"},
               "web": {"type": "streamable-http", "url": "https://a.example/mcp", "headers": {"X": "${TOKEN}"}}"#,
        );
        let (_folder, plugin) = read(&manifest(""), &text);
        let plugin = plugin.expect("it is valid");
        let root = plugin.root.to_string_lossy().into_owned();
        let file = plugin.servers.expect("it has servers");
        assert_eq!(file.findings, Vec::<String>::new());
        let (_, db) = &file.servers[0];
        let expect = [
            format!("{root}/c"),
            format!("/data/p{root}"),
            "$${PLUGIN_X} $$A".to_owned(),
        ];
        assert!(
            db.args
                .iter()
                .map(|word| &**word)
                .eq(expect.iter().map(String::as_str)),
            "{db:?}"
        );
        assert_eq!(db.cwd.as_deref(), Some(Path::new("/data/p/x")));
        assert_eq!(db.command, Some(plugin.root.join("bin/server")));
        let env: Vec<_> = db
            .env
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            env,
            [
                ("HOME_DIR", "$${HOME}"),
                ("PLUGIN_DATA", "/data/p"),
                ("PLUGIN_ROOT", &*root)
            ]
        );
        assert_eq!(file.servers[1].1.headers["X"], "$${TOKEN}");
    }

    #[test]
    fn bad_server_is_left_out_alone() {
        for wrong in [
            r#"{"command": "x"}"#,
            r#"{"type": "stdio", "command": "../x"}"#,
            r#"{"type": "stdio", "command": "./../../x"}"#,
            r#"{"type": "stdio", "command": "/bin/sh"}"#,
            r#"{"type": "stdio", "command": "./missing"}"#,
            r#"{"type": "stdio", "command": "sh", "shell": true}"#,
            r#"{"type": "stdio", "command": "sh", "url": "https://a.example"}"#,
            r#"{"type": "stdio", "command": "sh", "cwd": "data"}"#,
            r#"{"type": "stdio", "command": "sh", "cwd": "./.."}"#,
            r#"{"type": "stdio", "command": "sh", "cwd": "${PLUGIN_DATA}/../x"}"#,
            r#"{"type": "stdio", "command": "sh", "cwd": "${PLUGIN_ROOT}x"}"#,
            r#"{"type": "stdio", "command": "sh", "env": {"PLUGIN_ROOT": "/"}}"#,
            r#"{"type": "http", "url": "https://a.example"}"#,
            r#"{"type": "sse", "url": "https://a.example"}"#,
            r#"{"type": "streamable-http", "url": "http://a.example"}"#,
            r#"{"type": "streamable-http", "url": "https://u@a.example"}"#,
            r#"{"type": "streamable-http", "url": "https://a.example/#f"}"#,
            r#"{"type": "streamable-http", "url": "https://a.example", "headers": {"X": "1", "x": "2"}}"#,
        ] {
            let good = r#""good": {"type": "streamable-http", "url": "http://127.0.0.1:1/"}"#;
            let text = servers(&format!(r#""bad": {wrong}, {good}"#));
            let plugin = read(&manifest(""), &text).1.expect("the rest is valid");
            let file = plugin.servers.expect("the rest is valid");
            assert_eq!(
                (file.servers.len(), file.findings.len()),
                (1, 1),
                "{wrong}: {file:?}"
            );
        }
        for wrong in [
            "{}",
            "[]",
            &servers("").replace("1.0.0", "1.1.0"),
            &servers("").replace('}', r#", "x": 1}"#),
        ] {
            let plugin = read(&manifest(""), wrong).1.expect("the rest is valid");
            assert!(
                plugin.servers.is_none() && plugin.skills.is_some(),
                "{wrong}"
            );
            assert_eq!(plugin.findings.len(), 1, "{wrong}");
        }
    }
}
