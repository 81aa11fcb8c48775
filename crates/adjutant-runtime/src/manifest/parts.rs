//! The names of additional parts for a manifest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The names of parts that a manifest can use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PartNames {
    /// Models, by their full names.
    pub models: BTreeSet<String>,
    /// Kinds of effects.
    pub effects: BTreeSet<String>,
    /// Toolboxes.
    pub toolboxes: BTreeSet<String>,
    /// Middleware.
    pub middleware: BTreeSet<String>,
    /// Providers of models: `name/any-model`.
    pub providers: BTreeSet<String>,
}
