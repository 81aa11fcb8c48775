//! `features`: every feature of every published crate builds alone, without any, and by default.

use crate::{Failure, cargo, metadata};

pub(crate) fn run() -> Result<(), Failure> {
    for package in metadata::read()?.iter().filter(|package| package.published) {
        let check = ["check", "--package", &package.name, "--locked"];
        cargo::step(&format!("{} by default", package.name), &check)?;
        let bare = [check.as_slice(), &["--no-default-features"]].concat();
        cargo::step(&format!("{} without features", package.name), &bare)?;
        for feature in package
            .features
            .iter()
            .filter(|feature| *feature != "default")
        {
            let alone = [bare.as_slice(), &["--features", feature]].concat();
            cargo::step(&format!("{} with only {feature}", package.name), &alone)?;
        }
    }
    Ok(())
}
