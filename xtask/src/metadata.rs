//! The workspace from `cargo metadata`, reduced to the fields that the tasks use.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{Failure, cargo};

/// One member of the workspace.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// The registries it may go to; none means any.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Everything else: what registries show and other tools read.
    #[serde(flatten)]
    pub(crate) about: Value,
}

/// A dependency of a member.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none.
    pub(crate) kind: Option<String>,
    /// Its version, or `*`: then it does not stay in the published manifest if it is `dev`.
    pub(crate) req: String,
    /// Only dependencies on other members have one.
    pub(crate) path: Option<String>,
}

#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

impl Package {
    pub(crate) fn is_published(&self) -> bool {
        self.publish.is_none()
    }

    /// Its dependencies on other members.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|edge| edge.path.is_some())
    }
}

pub(crate) fn read() -> Result<Vec<Package>, Failure> {
    let text = cargo::output("metadata --no-deps --format-version 1 --locked")?;
    let workspace: Result<Workspace, _> = serde_json::from_str(&text);
    let failure = |error| Failure::Step(format!("cargo metadata: {error}"));
    Ok(workspace.map_err(failure)?.packages)
}

/// The published members in an order in which each follows its dependencies, or the members of a cycle.
pub(crate) fn publish_order(packages: &[Package]) -> Result<Vec<&Package>, Vec<&Package>> {
    let mut waiting: Vec<_> = packages
        .iter()
        .filter(|package| package.is_published())
        .collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let waits_for = |name: &String| waiting.iter().any(|other| other.name == *name);
        let waits = |package: &&Package| {
            package
                .edges()
                .any(|edge| edge.req != "*" && waits_for(&edge.name))
        };
        let (later, now): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(waits);
        if now.is_empty() {
            return Err(later);
        }
        order.extend(now);
        waiting = later;
    }
    Ok(order)
}
