//! The names of parts that a manifest may name beside those that are there anyway.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The names of parts: what a manifest may name, wherever the parts themselves are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PartNames {
    /// Models, by their whole names.
    pub models: BTreeSet<String>,
    /// Kinds of effects.
    pub effects: BTreeSet<String>,
    /// Toolboxes.
    pub toolboxes: BTreeSet<String>,
    /// What may surround runs.
    pub middleware: BTreeSet<String>,
    /// Providers of models: `name/any-model`.
    pub providers: BTreeSet<String>,
}
