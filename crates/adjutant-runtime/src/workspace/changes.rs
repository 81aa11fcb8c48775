//! The changes of an agent's update: fields of its manifest, files, tools.

use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc};

use adjutant_llm::hidden;
use serde::Serialize;
use serde_json::Value;

use crate::{
    manifest::{Manifest, Resolved, ToolboxChoice},
    provenance::{FileKind, PinnedFile},
};

/// The maximum number of characters of a value.
const MAX_VALUE: usize = 200;

/// The changes of an update. `Display` writes one line for each change.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// The fields of the manifest, by dotted path, with the value before and after; `None` for a missing one.
    pub fields: Vec<(String, Option<Value>, Option<Value>)>,
    /// The files, with their sizes before and after; `None` for a missing one.
    pub files: Vec<(FileKind, PathBuf, Option<u64>, Option<u64>)>,
    /// The added and the removed tools and toolboxes: agent and name.
    pub tools: [Vec<(Arc<str>, Arc<str>)>; 2],
}

impl Changes {
    pub(super) fn between(
        old: &Resolved,
        new: &Resolved,
        before: &[PinnedFile],
        after: &[PinnedFile],
    ) -> Self {
        let mut changes = Self::default();
        let json = |manifest: &Manifest| serde_json::to_value(manifest).unwrap_or_default();
        compare(
            String::new(),
            Some(&json(&old.manifest)),
            Some(&json(&new.manifest)),
            &mut changes.fields,
        );
        let named = |file: &PinnedFile| (file.kind, file.path.clone());
        // The program that an agent runs in is chosen at its start.
        let told = before
            .iter()
            .chain(after)
            .filter(|file| file.kind != FileKind::Host);
        let names: BTreeSet<_> = told.map(named).collect();
        for (kind, path) in names {
            let find = |files: &'_ [PinnedFile]| {
                files
                    .iter()
                    .find(|it| it.kind == kind && it.path == path)
                    .cloned()
            };
            let (old, new) = (find(before), find(after));
            if old.as_ref().map(|it| &it.sha256) != new.as_ref().map(|it| &it.sha256) {
                changes
                    .files
                    .push((kind, path, old.map(|it| it.bytes), new.map(|it| it.bytes)));
            }
        }
        let (old, new) = (tools(&old.manifest), tools(&new.manifest));
        changes.tools = [
            new.difference(&old).cloned().collect(),
            old.difference(&new).cloned().collect(),
        ];
        changes
    }

    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the tools and toolboxes that agents name.
fn tools(manifest: &Manifest) -> BTreeSet<(Arc<str>, Arc<str>)> {
    let mut tools = BTreeSet::new();
    for agent in &manifest.agents {
        let boxes = agent.toolboxes.iter().map(|choice| match choice {
            ToolboxChoice::Name(name) => name,
            ToolboxChoice::Spec(spec) => &spec.name,
        });
        tools.extend(
            boxes
                .chain(&agent.tools)
                .map(|name| (Arc::clone(&agent.name), Arc::clone(name))),
        );
    }
    tools
}

/// Compares two values field by field; other values than mappings are compared as a whole, except for lists of named
/// elements.
fn compare(
    path: String,
    old: Option<&Value>,
    new: Option<&Value>,
    into: &mut Vec<(String, Option<Value>, Option<Value>)>,
) {
    if old == new {
        return;
    }
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            keys.into_iter()
                .for_each(|key| compare(below(key), old.get(key), new.get(key), into));
        }
        (Some(Value::Array(before)), Some(Value::Array(after)))
            if is_named(before) && is_named(after) =>
        {
            let names: BTreeSet<&str> = before.iter().chain(after).filter_map(name).collect();
            for it in names {
                let find = |all: &'_ [Value]| all.iter().position(|value| name(value) == Some(it));
                let (old, new) = (
                    find(before).map(|at| &before[at]),
                    find(after).map(|at| &after[at]),
                );
                compare(below(it), old, new, into);
            }
        }
        _ => into.push((path, old.cloned(), new.cloned())),
    }
}

fn name(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

fn is_named(all: &[Value]) -> bool {
    let names: BTreeSet<&str> = all.iter().filter_map(name).collect();
    names.len() == all.len()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, old, new) in &self.fields {
            match (old, new) {
                (Some(old), Some(new)) => {
                    writeln!(f, "field {path}: {} -> {}", shown(old), shown(new))?
                }
                (None, Some(new)) => writeln!(f, "field {path}: {} is new", shown(new))?,
                (Some(old), None) => writeln!(f, "field {path}: {} is gone", shown(old))?,
                (None, None) => {}
            }
        }
        for (kind, path, old, new) in &self.files {
            let (kind, path) = (kind.word(), hidden::whole(&path.to_string_lossy()));
            match (old, new) {
                (Some(old), Some(new)) => {
                    writeln!(f, "{kind} file {path}: other bytes, {old} -> {new}")?
                }
                (None, Some(new)) => writeln!(f, "{kind} file {path}: is new, {new} bytes")?,
                (Some(old), None) => writeln!(f, "{kind} file {path}: is gone, {old} bytes")?,
                (None, None) => {}
            }
        }
        let [added, gone] = &self.tools;
        added
            .iter()
            .try_for_each(|(agent, tool)| writeln!(f, "tool {tool} of {agent}: is new"))?;
        gone.iter()
            .try_for_each(|(agent, tool)| writeln!(f, "tool {tool} of {agent}: is gone"))
    }
}

/// Formats a value in one line, truncated if it is long.
fn shown(value: &Value) -> String {
    let text = hidden::whole(&value.to_string());
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
