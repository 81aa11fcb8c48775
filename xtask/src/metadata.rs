//! The workspace as `cargo metadata` tells it, reduced to what the tasks ask about.

use serde_json::Value;

use crate::{Failure, cargo};

/// One member of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) published: bool,
    pub(crate) features: Vec<String>,
    /// Its dependencies on other members.
    pub(crate) edges: Vec<Edge>,
}

/// A dependency on another member of the workspace.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) to: String,
    pub(crate) development: bool,
    /// Has a version, so it stays in the published manifest.
    pub(crate) versioned: bool,
}

pub(crate) fn read() -> Result<Vec<Package>, Failure> {
    let text = cargo::output(&["metadata", "--no-deps", "--format-version", "1", "--locked"])?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::Step(format!("cargo metadata: {error}")))?;
    Ok(list(&value["packages"]).iter().map(package).collect())
}

/// The published members in an order in which each comes after what it depends on, or the members of a cycle.
pub(crate) fn publish_order(packages: &[Package]) -> Result<Vec<&Package>, Vec<&Package>> {
    let mut waiting: Vec<&Package> = packages
        .iter()
        .filter(|package| package.published)
        .collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let blocked = |package: &&Package| {
            let mut edges = package.edges.iter().filter(|edge| edge.versioned);
            edges.any(|edge| waiting.iter().any(|other| other.name == edge.to))
        };
        let (later, now): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(blocked);
        if now.is_empty() {
            return Err(later);
        }
        order.extend(now);
        waiting = later;
    }
    Ok(order)
}

fn package(value: &Value) -> Package {
    Package {
        name: string(&value["name"]),
        version: string(&value["version"]),
        published: value["publish"]
            .as_array()
            .is_none_or(|registries| !registries.is_empty()),
        features: value["features"]
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect(),
        edges: list(&value["dependencies"])
            .iter()
            .filter(|edge| edge["path"].is_string())
            .map(edge)
            .collect(),
    }
}

fn edge(value: &Value) -> Edge {
    Edge {
        to: string(&value["name"]),
        development: value["kind"] == "dev",
        versioned: value["req"] != "*",
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
