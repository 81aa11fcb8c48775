//! Every file of tests runs: it is a target of cargo, or a module of one.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The names of the Rust files that lie in a folder itself.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("the folder can be read").file_name());
    let names = names.map(|name| name.into_string().expect("names are text"));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".rs")).collect();
    names.sort();
    names
}

/// The packages of the workspace whose manifest names their targets one by one, with that manifest.
fn packages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = fs::read_dir(root.join("crates")).expect("the folder is there");
    let crates = crates.map(|entry| entry.expect("the folder can be read").path());
    let all = crates.chain([root.join("tests")]).map(|folder| {
        let manifest =
            fs::read_to_string(folder.join("Cargo.toml")).expect("every package has a manifest");
        (folder, manifest)
    });
    all.filter(|(_, manifest)| manifest.contains("\nautotests = false\n"))
        .collect()
}

/// How often each file of a package is a target or a line in one, if that is not once.
fn wrong(folder: &Path, manifest: &str) -> Vec<String> {
    let folder = folder.join("tests");
    let targets = manifest
        .split("[[test]]\nname = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let targets: Vec<String> = targets.map(|name| format!("{name}.rs")).collect();
    let roots = targets
        .iter()
        .filter_map(|name| fs::read_to_string(folder.join(name)).ok());
    let roots: String = roots.collect();
    let times = |name: &String| {
        let line = format!("mod {};", name.trim_end_matches(".rs"));
        roots.lines().filter(|it| *it == line).count() + usize::from(targets.contains(name))
    };
    let found = files(&folder)
        .into_iter()
        .map(|name| (times(&name), name))
        .filter(|(times, _)| *times != 1);
    found
        .map(|(times, name)| format!("{}: {times} times", folder.join(name).display()))
        .collect()
}

#[test]
fn every_file_runs_once_when_targets_are_named() {
    let packages = packages();
    assert!(packages.len() >= 6, "{packages:?}");
    let wrong: Vec<String> = packages
        .iter()
        .flat_map(|(folder, manifest)| wrong(folder, manifest))
        .collect();
    assert!(
        wrong.is_empty(),
        "each needs its line in a root: {wrong:#?}"
    );
}
