//! `release --dry-run`: checks versions, changelog and what each crate brings along, then packs the published crates.
//! Publishing is done by hand.

use crate::{Failure, cargo, metadata, tidy};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    if arguments != ["--dry-run"] {
        return Err(Failure::Usage(
            "publishing is done by hand: only `release --dry-run`".into(),
        ));
    }
    let packages = metadata::read()?;
    let order = metadata::publish_order(&packages).map_err(|cycle| {
        Failure::Step(format!(
            "published crates form a cycle: {} crates",
            cycle.len()
        ))
    })?;
    let version = order.first().map_or("", |package| &package.version);
    if let Some(other) = order.iter().find(|package| package.version != version) {
        let (name, found) = (&other.name, &other.version);
        return Err(Failure::Step(format!(
            "versions differ: {version}, {name} {found}"
        )));
    }
    let changelog = std::fs::read_to_string(cargo::root().join("CHANGELOG.md"));
    let changelog = changelog.map_err(|error| Failure::Step(format!("CHANGELOG.md: {error}")))?;
    let heading = format!("## [{version}]");
    if !changelog.lines().any(|line| line.starts_with(&heading)) {
        return Err(Failure::Step(format!(
            "CHANGELOG.md has no heading: {heading}"
        )));
    }
    let lacking = tidy::lacks(&packages);
    if !lacking.is_empty() {
        return Err(Failure::Step(format!(
            "crates are not ready to be published:\n{}",
            lacking.join("\n")
        )));
    }
    println!("publish order of {version}:");
    // One call for all: cargo then finds crates that no registry has yet among those just packed.
    let mut pack = String::from("package --allow-dirty --no-verify --locked");
    for package in order {
        println!("  {}", package.name);
        pack += &format!(" --package {}", package.name);
    }
    cargo::step(&pack)
}
