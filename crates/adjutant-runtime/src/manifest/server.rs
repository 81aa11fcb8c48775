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
    /// The servers, by the names that agents have them by, as toolboxes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<Arc<str>, ServerSpec>,
}

/// A server of the Model Context Protocol: a program that is started here, or an address.
///
/// Variables in `command`, `args`, `env`, `cwd`, `url` and `headers` are replaced when the server is reached, so that
/// a resolved manifest only contains their names. They can be credentials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ServerSpec {
    /// The program: a path relative to the manifest, or a name that is looked for in `PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arc<str>>,
    /// Variables of its environment; beside them it has `PATH`, `HOME`, `TMPDIR` and `LANG`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The directory that it begins in: absolute, or relative to the manifest; without it the agent's working
    /// directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Additional permissions of its sandbox, in which it can change its directory, its `HOME` and its `TMPDIR`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub sandbox: SandboxSpec,
    /// The sha256 that its program must have, in 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Arc<str>>,
    /// The address, in the place of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Arc<str>>,
    /// Headers of every request to the address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The source of its tokens: by default `adjutant mcp login`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub auth: AuthSpec,
    /// True if its tool annotations are trusted: which ones only read, and which can be repeated.
    #[serde(skip_serializing_if = "super::is_default")]
    pub trusted: bool,
    /// The text before the names of its tools: its name and `_` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
    /// The tools that agents get, under the server's own names; all of them without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<str>>>,
    /// The revision of the protocol that it speaks; found out without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<ProtocolRevision>,
    /// The time that it has to start: `30s` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// The way to the tokens of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AuthSpec {
    /// A program with arguments, which prints the token, valid for five minutes. It runs without a sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_command: Vec<String>,
    /// The id of a client that is registered there, for `adjutant mcp login`, which otherwise registers one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Arc<str>>,
    /// The variable of the environment that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_variable: Option<String>,
    /// The scopes of the token; by default the server's request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Arc<str>>,
    /// The port of this machine that the browser comes back to; any without it.
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
    /// Requests that stand for themselves.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// The fields of a server whose variables stay.
pub(super) const LATE: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

impl ServerSpec {
    /// The texts that variables are put into when it is reached.
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

    /// Its program, if that is known before variables are put in.
    pub(crate) fn program(&self) -> Option<&PathBuf> {
        self.command
            .as_ref()
            .filter(|path| !vars::has_any(&path.to_string_lossy()))
    }
}
