//! The resolved form of a manifest.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Manifest, Problems, VERSION, needs, parse_yaml, yaml};
use crate::error::{Error, ErrorKind};

/// The resolved configuration of an agent. It contains no credentials, so it can be printed.
///
/// Paths in its manifest are absolute, except those relative to the workspace: `data.to`, `sessions.store.path` and
/// `reflections.folder`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Resolved {
    /// The manifest with the overrides.
    pub manifest: Manifest,
    /// Its files: the manifest, its parents, included agents.
    pub sources: Vec<PathBuf>,
    /// The overrides of the user who created it.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// The names of the environment variables that its models and stores need, never their values.
    #[serde(default)]
    pub needs: Vec<String>,
}

impl Manifest {
    /// Refuses a manifest that another version of the program wrote: its fields may have another meaning.
    ///
    /// # Errors
    /// `Config` with both versions.
    pub(crate) fn check_version(&self) -> Result<(), Error> {
        match self.adjutant {
            None | Some(VERSION) => Ok(()),
            Some(other) => {
                let hint = if other > VERSION {
                    "; hint: a newer program reads it"
                } else {
                    ""
                };
                let message = format!(
                    "the manifest is of version {other}, and this program reads {VERSION}{hint}"
                );
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }
}

/// Overrides of a manifest for a new agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Overrides {
    /// Another name for the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Another model for the prompted agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Additional labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Additional variables of process tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Single fields by their dotted paths, such as `agents.lead.max_turns` or `budget.tokens`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
}

impl Overrides {
    /// True if nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Resolved {
    /// Creates a configuration from a manifest that an application built, unchanged.
    pub fn from_manifest(manifest: Manifest) -> Self {
        let needs = needs::find_variables(&manifest);
        Self {
            manifest,
            sources: Vec::new(),
            overrides: Overrides::default(),
            needs,
        }
    }

    /// Formats it as YAML.
    ///
    /// # Errors
    /// `Invalid` if a path is not UTF-8.
    pub fn to_yaml(&self) -> Result<String, Error> {
        let value = serde_json::to_value(self).map_err(|error| {
            Error::new(ErrorKind::Invalid, "what was resolved cannot be written").with_source(error)
        })?;
        Ok(yaml(&value))
    }

    /// Parses the output of [`Resolved::to_yaml`].
    ///
    /// # Errors
    /// `Manifest` with line and column if it is invalid.
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        parse_yaml(text).map_err(|problem| Problems::from(problem).into())
    }
}
