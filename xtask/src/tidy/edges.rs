//! Which crate of the workspace may depend on which. Unpublished members may use everything.

use super::Source;
use crate::metadata::{self, Package};

const ALL: &str = "agent llm macros mcp orchestration otel providers skills store tool toolkit";

/// Crate and what it may depend on, normally or optionally; `adjutant-` is left out. Crates to come are listed too.
const EDGES: &[(&str, &[&str])] = &[
    ("llm", &[]),
    ("macros", &[]),
    ("tool", &["llm macros"]),
    ("providers", &["llm"]),
    ("agent", &["llm tool"]),
    ("store", &["llm tool agent"]),
    ("skills", &["llm tool agent"]),
    ("orchestration", &["llm tool agent"]),
    ("toolkit", &["llm tool"]),
    ("mcp", &["llm tool"]),
    ("otel", &["llm"]),
    ("runtime", &[ALL]),
    ("testing", &["llm tool agent"]),
    ("adjutant", &[ALL, "runtime"]),
    ("server", &["adjutant"]),
    ("cli", &["adjutant server"]),
];

pub(super) fn table(packages: &[Package]) -> Vec<String> {
    let mut messages = Vec::new();
    for package in packages.iter().filter(|package| package.published) {
        let path = format!("crates/{}/Cargo.toml:1", package.name);
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == short(&package.name))
        else {
            messages.push(format!(
                "{path}: a published crate that the edge table does not know"
            ));
            continue;
        };
        let allowed = |name: &str| {
            allowed
                .iter()
                .any(|names| names.split(' ').any(|one| one == short(name)))
        };
        for edge in &package.edges {
            if !edge.development && !allowed(&edge.to) {
                messages.push(format!(
                    "{path}: depends on {} (not in the edge table)",
                    edge.to
                ));
            }
            if !edge.development && !edge.versioned {
                messages.push(format!("{path}: depends on {} without a version", edge.to));
            }
            if edge.development && edge.versioned && edge.to == "adjutant-testing" {
                messages.push(format!(
                    "{path}: dev-depends on {} with a version (path only)",
                    edge.to
                ));
            }
        }
    }
    messages
}

/// What stays in published manifests has no cycle: dev-dependencies too, when they have a version.
pub(super) fn published(packages: &[Package]) -> Vec<String> {
    let cycle = metadata::publish_order(packages).err().unwrap_or_default();
    let message =
        |package: &&Package| format!("crates/{}/Cargo.toml:1: in a published cycle", package.name);
    cycle.iter().map(message).collect()
}

/// Inline tests see another build of their own crate than `adjutant-testing` does.
pub(super) fn inline_tests(sources: &[Source]) -> Vec<String> {
    let inside = |source: &&Source| {
        source.path.starts_with("crates/")
            && source.path.contains("/src/")
            && !source.path.contains("-testing/")
    };
    let found = sources.iter().filter(inside).filter_map(|source| {
        let at = source.scanned.code.find("adjutant_testing")?;
        Some(source.message(at, "adjutant-testing is for the crate's `tests/`"))
    });
    found.collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("adjutant-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Edge;

    fn package(name: &str, to: &str, development: bool, versioned: bool) -> Package {
        let edges = vec![Edge {
            to: to.into(),
            development,
            versioned,
        }];
        Package {
            name: name.into(),
            published: true,
            edges,
            ..Package::default()
        }
    }

    #[test]
    fn table_reports_an_edge_when_it_is_not_listed() {
        let fine = [
            package("adjutant-tool", "adjutant-llm", false, true),
            package("adjutant-llm", "adjutant-testing", true, false),
        ];
        assert_eq!(table(&fine), [""; 0]);
        assert_eq!(
            table(&[package("adjutant-llm", "adjutant-tool", false, true)]),
            ["crates/adjutant-llm/Cargo.toml:1: depends on adjutant-tool (not in the edge table)"]
        );
    }

    #[test]
    fn published_reports_a_cycle_when_a_dev_dependency_has_a_version() {
        let tool = || package("adjutant-tool", "adjutant-llm", false, true);
        let llm = |versioned| package("adjutant-llm", "adjutant-tool", true, versioned);
        assert_eq!(published(&[tool(), llm(false)]), [""; 0]);
        assert_eq!(
            published(&[tool(), llm(true)]),
            [
                "crates/adjutant-tool/Cargo.toml:1: in a published cycle",
                "crates/adjutant-llm/Cargo.toml:1: in a published cycle"
            ]
        );
    }
}
