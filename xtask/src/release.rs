//! `release --dry-run`: checks versions and changelog, then packs the published crates. Publishing is done by hand.

use crate::metadata::{self, Package};
use crate::{Failure, cargo};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    if arguments != ["--dry-run"] {
        return Err(Failure::Usage(
            "publishing is done by hand: use `release --dry-run`".into(),
        ));
    }
    let packages = metadata::read()?;
    let order = metadata::publish_order(&packages).map_err(|cycle| {
        Failure::Step(format!(
            "published crates form a cycle: {}",
            names(&cycle).join(", ")
        ))
    })?;
    let version = shared_version(&order)?;
    let path = cargo::root().join("CHANGELOG.md");
    let changelog = std::fs::read_to_string(path)
        .map_err(|error| Failure::Step(format!("CHANGELOG.md: {error}")))?;
    if !changelog
        .lines()
        .any(|line| line.starts_with(&format!("## [{version}]")))
    {
        return Err(Failure::Step(format!(
            "CHANGELOG.md: no heading for the version: {version}"
        )));
    }
    println!("publish order of {version}:");
    for (place, name) in names(&order).iter().enumerate() {
        println!("  {:2}. {name}", place + 1);
    }
    // One call for all: cargo then answers dependencies on crates that no registry has yet from the crates just packed.
    let mut pack = vec!["package", "--allow-dirty", "--no-verify", "--locked"];
    pack.extend(
        names(&order)
            .into_iter()
            .flat_map(|name| ["--package", name]),
    );
    cargo::step("package", &pack)
}

fn shared_version<'a>(order: &[&'a Package]) -> Result<&'a str, Failure> {
    let first = order
        .first()
        .ok_or_else(|| Failure::Step("nothing is published".into()))?;
    match order
        .iter()
        .find(|package| package.version != first.version)
    {
        None => Ok(&first.version),
        Some(other) => Err(Failure::Step(format!(
            "versions differ: {} {}, {} {}",
            first.name, first.version, other.name, other.version
        ))),
    }
}

fn names<'a>(packages: &[&'a Package]) -> Vec<&'a str> {
    packages
        .iter()
        .map(|package| package.name.as_str())
        .collect()
}
