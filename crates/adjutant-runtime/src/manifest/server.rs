//! The servers of the Model Context Protocol that a manifest names.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SandboxSpec, Span, vars};

/// The servers of the Model Context Protocol.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct McpSpec {
    /// The servers by name. Agents use them as toolboxes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<Arc<str>, ServerSpec>,
}

/// A server of the Model Context Protocol: a program that is started here, or an address.
///
/// Variables in `command`, `args`, `env`, `cwd`, `url` and `headers` are expanded when the server is started or
/// connected, so that a resolved manifest contains only their names. They can be credentials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ServerSpec {
    /// The program: a path relative to the manifest, or a name that is looked up in `PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arc<str>>,
    /// Its environment variables, in addition to `PATH`, `HOME`, `TMPDIR` and `LANG`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working directory: absolute, or relative to the manifest; by default the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Additional permissions of its sandbox, in which it can change its directory, its `HOME` and its `TMPDIR`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sandbox: SandboxSpec,
    /// The required SHA-256 of its program, in 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Arc<str>>,
    /// The address, instead of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Arc<str>>,
    /// Headers of every request to the address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The source of its tokens: by default `adjutant mcp login`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub auth: AuthSpec,
    /// True if its tool annotations are trusted: which tools only read, and which can be repeated.
    #[serde(skip_serializing_if = "super::is_default")]
    pub trusted: bool,
    /// The prefix of the names of its tools; by default its name and `_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
    /// The tools that agents get, by the server's names; by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<str>>>,
    /// The revision of the protocol; by default negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<ProtocolRevision>,
    /// The maximum time to start; `30s` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// The source of a server's tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AuthSpec {
    /// A program with arguments, whose output is the token, valid for five minutes. It runs without a sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_command: Vec<String>,
    /// The id of a registered client for `adjutant mcp login`, which otherwise registers one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Arc<str>>,
    /// The environment variable with the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_variable: Option<String>,
    /// The scopes of the token; by default the scopes that the server requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Arc<str>>,
    /// The local port for the redirect of the browser; by default any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A revision of the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum ProtocolRevision {
    /// A handshake and a session.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Stateless requests.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// The fields of a server whose variables are expanded later.
pub(super) const LATE: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

impl ServerSpec {
    /// Returns the texts whose variables are expanded when the server is started or connected.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let paths = self
            .command
            .iter()
            .chain(&self.cwd)
            .filter_map(|path| path.to_str());
        let texts = self.args.iter().chain(&self.url).map(|text| &**text);
        paths.chain(texts).chain(
            self.env
                .values()
                .chain(self.headers.values())
                .map(String::as_str),
        )
    }

    /// Returns its program, if it contains no variable.
    pub(crate) fn program(&self) -> Option<&PathBuf> {
        self.command
            .as_ref()
            .filter(|path| !vars::has_any(&path.to_string_lossy()))
    }
}
