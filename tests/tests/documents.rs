//! What the documents point at is there: links, and the files that hold or check an invariant.

use std::path::{Path, PathBuf};

/// Document, and the folder that its links start from.
const DOCUMENTS: [(&str, &str); 28] = [
    ("README.md", ""),
    ("ARCHITECTURE.md", ""),
    ("CHANGELOG.md", ""),
    ("CONTRIBUTING.md", ""),
    ("SECURITY.md", ""),
    ("docs/agents.md", "docs"),
    ("docs/command.md", "docs"),
    ("docs/events.md", "docs"),
    ("docs/dependencies.md", "docs"),
    ("docs/fleet.md", "docs"),
    ("docs/hands.md", "docs"),
    ("docs/http.md", "docs"),
    ("docs/lifecycle.md", "docs"),
    ("docs/manifest.md", "docs"),
    ("docs/mcp.md", "docs"),
    ("docs/memory.md", "docs"),
    ("docs/orchestration.md", "docs"),
    ("docs/protocols.md", "docs"),
    ("docs/providers.md", "docs"),
    ("docs/models.md", "docs"),
    ("docs/scale.md", "docs"),
    ("docs/sessions.md", "docs"),
    ("docs/security.md", "docs"),
    ("docs/skills.md", "docs"),
    ("docs/stores.md", "docs"),
    ("docs/testing.md", "docs"),
    ("docs/tools.md", "docs"),
    ("docs/view.md", "docs"),
];
/// Where the paths between backticks begin that name a file in full.
const FOLDERS: [&str; 4] = ["adjutant-", "tests/", "xtask/", "examples/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).expect("the document is there")
}

#[test]
fn links_lead_to_files_when_they_are_relative() {
    let mut broken = Vec::new();
    for (document, folder) in DOCUMENTS {
        let text = text(document);
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
            .map(|(target, _)| target);
        for target in targets.filter(|target| !target.starts_with("https://")) {
            let path = target.split('#').next().unwrap_or_default();
            if !root().join(folder).join(path).exists() {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn architecture_and_threat_model_name_what_is_there_when_they_name_it_in_full() {
    let texts = text("ARCHITECTURE.md") + &text("docs/security.md");
    let code = texts.split('`').skip(1).step_by(2);
    let named =
        code.filter(|it| it.contains(".rs") && FOLDERS.iter().any(|folder| it.starts_with(folder)));
    let named: Vec<&str> = named.collect();
    let place = |path: &str| {
        if path.starts_with("adjutant-") {
            root().join("crates").join(path)
        } else {
            root().join(path)
        }
    };
    let is_there = |it: &&&str| {
        let (path, test) = it.split_once("::").unwrap_or((it, ""));
        std::fs::read_to_string(place(path)).is_ok_and(|text| text.contains(test))
    };
    let missing: Vec<&&str> = named.iter().filter(|it| !is_there(it)).collect();
    assert!(
        named.len() > 50 && missing.is_empty(),
        "{} names, missing: {missing:?}",
        named.len()
    );
}

#[test]
fn features_of_the_facade_are_in_its_table_when_it_has_them() {
    let manifest = text("crates/adjutant/Cargo.toml");
    let features = manifest
        .split("[features]")
        .nth(1)
        .expect("it has features")
        .split("\n[")
        .next()
        .unwrap_or_default();
    let named = |line: &str| {
        line.split_once(" = ")
            .map(|(name, of)| (name.to_owned(), of.to_owned()))
    };
    let mut features: Vec<(String, String)> = features.lines().filter_map(named).collect();
    let at = features
        .iter()
        .position(|(name, _)| name == "default")
        .expect("some are on without a word");
    let (_, default) = features.remove(at);
    let mut expect: Vec<(String, bool)> = features
        .into_iter()
        .map(|(name, _)| (name.clone(), default.contains(&format!("\"{name}\""))))
        .collect();
    let readme = text("crates/adjutant/README.md");
    let row = |line: &str| {
        Some((
            line.strip_prefix("| `")?.split('`').next()?.to_owned(),
            line.contains("(default)"),
        ))
    };
    let mut told: Vec<(String, bool)> = readme.lines().filter_map(row).collect();
    expect.sort();
    told.sort();
    assert_eq!(told, expect);
}
