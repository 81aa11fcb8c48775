//! Peers and data files of a manifest.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent of another process that the agents of this manifest can call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PeerSpec {
    /// Its name: letters, digits, `_` and `-`, 64 at most.
    pub name: Arc<str>,
    /// A description of its purpose, for the model.
    pub description: Arc<str>,
    /// An agent of the same operator; by default the one called `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The address of an agent on this machine, instead of `agent`: `127.0.0.1:7000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<SocketAddr>,
    /// The address of an A2A agent or its card, instead of `agent`: `https://…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<Arc<str>>,
    /// The environment variable with the token for `address` or `a2a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_variable: Option<String>,
}

/// A file that is copied into the working directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DataSpec {
    /// The file, relative to the manifest.
    pub file: PathBuf,
    /// Its path in the working directory; by default its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PathBuf>,
    /// A description for the agents: files with a description are listed in their context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
}
