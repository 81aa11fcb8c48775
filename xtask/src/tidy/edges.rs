//! Which crate of the workspace may depend on which. Unpublished members may use everything.

use super::Source;
use crate::metadata::{self, Package};

/// A crate and its permitted dependencies, normal or optional, without `adjutant-`. Future crates are included.
const EDGES: &[(&str, &str)] = &[
    ("llm", ""),
    ("macros", ""),
    ("tool", "llm macros"),
    ("providers", "llm"),
    ("core", "llm tool"),
    ("agent", "core llm tool"),
    ("context", "agent llm tool"),
    ("store", "core llm"),
    ("skills", "llm tool agent"),
    ("orchestration", "llm tool agent"),
    ("fleet", "agent core llm tool store"),
    ("restate", "agent core fleet llm tool store"),
    ("toolkit", "llm tool"),
    ("mcp", "agent core llm tool toolkit"),
    ("otel", "llm"),
    ("protocols", "agent core llm tool toolkit"),
    ("runtime", LIBRARIES),
    ("testing", "llm tool agent runtime"),
    ("adjutant", LIBRARIES),
    ("server", "adjutant"),
    ("cli", "adjutant server"),
];
/// For the crates above all of them; that no two of those need each other, the check for cycles sees.
const LIBRARIES: &str = "agent context core fleet llm macros mcp orchestration otel protocols providers runtime skills store tool toolkit";

pub(super) fn table(packages: &[Package]) -> Vec<String> {
    let mut messages = Vec::new();
    for package in packages.iter().filter(|package| package.is_published()) {
        let row = EDGES.iter().find(|(name, _)| *name == short(&package.name));
        if row.is_none() {
            messages.push(message(package, "not in the edge table"));
        }
        for edge in package.edges() {
            let allowed =
                row.is_some_and(|(_, to)| to.split(' ').any(|to| to == short(&edge.name)));
            let what = match (edge.kind.as_deref(), edge.req.as_str()) {
                (None | Some("build"), _) if !allowed => "not in the edge table",
                (None | Some("build"), "*") => "without a version",
                (Some("dev"), req) if req != "*" && edge.name == "adjutant-testing" => {
                    "with a version (path only)"
                }
                _ => continue,
            };
            messages.push(message(
                package,
                &format!("depends on {}: {what}", edge.name),
            ));
        }
    }
    messages
}

/// Published manifests have no cycle, including dev-dependencies with a version.
pub(super) fn publish_cycles(packages: &[Package]) -> Vec<String> {
    let cycle = metadata::publish_order(packages).err().unwrap_or_default();
    cycle
        .iter()
        .map(|package| message(package, "in or above a cycle once published"))
        .collect()
}

/// Inline tests would see another build of their own crate than `adjutant-testing` does.
pub(super) fn inline_tests(source: &Source) -> Vec<String> {
    let path = &source.path;
    let inside =
        path.starts_with("crates/") && path.contains("/src/") && !path.contains("-testing/");
    let found = source
        .scanned
        .code
        .find("adjutant_testing")
        .filter(|_| inside);
    found
        .map(|at| source.message(at, "adjutant-testing is for `tests/`"))
        .into_iter()
        .collect()
}

fn message(package: &Package, what: &str) -> String {
    format!("crates/{}/Cargo.toml:1: {what}", package.name)
}

fn short(name: &str) -> &str {
    name.trim_start_matches("adjutant-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, to: &str, kind: Option<&str>, req: &str) -> Package {
        let (kind, path) = (kind.map(str::to_owned), Some(String::new()));
        let dependencies = vec![Dependency {
            name: to.into(),
            kind,
            req: req.into(),
            path,
        }];
        Package {
            name: name.into(),
            dependencies,
            ..Package::default()
        }
    }

    #[track_caller]
    fn check(rule: fn(&[Package]) -> Vec<String>, packages: &[Package], expect: &[&str]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|what| format!("crates/adjutant-{what}"))
            .collect();
        assert_eq!(rule(packages), expect);
    }

    #[test]
    fn table_reports_an_edge_when_it_is_not_listed_or_wrongly_versioned() {
        let tool = |req| package("adjutant-tool", "adjutant-llm", None, req);
        let llm = |req| package("adjutant-llm", "adjutant-testing", Some("dev"), req);
        check(table, &[tool("^1"), llm("*")], &[]);
        let bare = "tool/Cargo.toml:1: depends on adjutant-llm: without a version";
        let fixed = "llm/Cargo.toml:1: depends on adjutant-testing: with a version (path only)";
        check(table, &[tool("*"), llm("^1")], &[bare, fixed]);
        let up = package("adjutant-llm", "adjutant-tool", None, "^1");
        let unlisted = "llm/Cargo.toml:1: depends on adjutant-tool: not in the edge table";
        check(table, &[up], &[unlisted]);
    }

    #[test]
    fn published_reports_a_cycle_when_a_dev_dependency_has_a_version() {
        let tool = || package("adjutant-tool", "adjutant-llm", None, "^1");
        let llm = |req| package("adjutant-llm", "adjutant-tool", Some("dev"), req);
        check(publish_cycles, &[tool(), llm("*")], &[]);
        let [one, other] = ["tool", "llm"]
            .map(|name| format!("{name}/Cargo.toml:1: in or above a cycle once published"));
        check(publish_cycles, &[tool(), llm("^1")], &[&one, &other]);
    }
}
