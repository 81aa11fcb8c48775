//! The resources that a manifest brings along.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The image that an agent was taken from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImageSpec {
    /// Its reference, as `registry.example/agents/clerk:1`.
    pub reference: Arc<str>,
    /// Its digest, as `sha256:` and 64 hexadecimal digits. It must be the one in the reference, if that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Arc<str>>,
}

/// A file that is laid into the working folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DataSpec {
    /// The file, relative to the manifest.
    pub file: PathBuf,
    /// The path that it is laid at, relative to the working folder; without it, under its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PathBuf>,
    /// A description for the agents: they are told of each file that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
}
