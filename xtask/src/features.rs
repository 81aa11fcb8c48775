//! `features`: every feature of every published crate builds alone, without any, and by default.

use crate::{Failure, cargo, metadata};

pub(crate) fn run() -> Result<(), Failure> {
    for package in metadata::read()?
        .iter()
        .filter(|package| package.is_published())
    {
        let check = format!("check --locked --package {}", package.name);
        cargo::step(&check)?;
        cargo::step(&format!("{check} --no-default-features"))?;
        for feature in package.features.keys().filter(|name| *name != "default") {
            cargo::step(&format!(
                "{check} --no-default-features --features {feature}"
            ))?;
        }
    }
    Ok(())
}
