//! How many crates a user gets with the facade, one tool and one provider.

use std::collections::BTreeSet;

use crate::{Failure, cargo};

/// The number must stay below.
const CRATES: usize = 120;
const TREE: &str =
    "tree --package adjutant --edges normal,build --target x86_64-unknown-linux-gnu --prefix none --locked";

pub(super) fn facade() -> Result<Option<String>, Failure> {
    let crates = unique_names(&cargo::output(TREE)?);
    let what = format!("{crates} crates for facade, tool and provider (limit: under {CRATES})");
    println!("tidy: {what}");
    Ok((crates >= CRATES).then(|| format!("crates/adjutant/Cargo.toml:1: {what}")))
}

fn unique_names(tree: &str) -> usize {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_count_once_when_versions_differ() {
        let tree = "a v1.0.0 (/p)\nb v1.0.0\nb v2.0.0\n\nb v1.0.0 (*)\n";
        assert_eq!(unique_names(tree), 2);
    }
}
