//! The number of external crates of the facade with one tool and one provider.

use std::collections::BTreeSet;

use crate::{Failure, cargo};

/// The number must stay below.
const CRATES: usize = 120;
const TREE: &str = "tree --package adjutant --edges normal,build --target x86_64-unknown-linux-gnu --prefix none --locked";

pub(super) fn facade() -> Result<Option<String>, Failure> {
    let crates = others(&cargo::output(TREE)?);
    let what =
        format!("{crates} crates of others for facade, tool and provider (limit: under {CRATES})");
    println!("tidy: {what}");
    Ok((crates >= CRATES).then(|| format!("crates/adjutant/Cargo.toml:1: {what}")))
}

fn others(tree: &str) -> usize {
    // Workspace members are listed with their folder.
    let others = tree.lines().filter(|line| !line.contains("(/"));
    let names = others.filter_map(|line| line.split_whitespace().next());
    names.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_others_count_once_when_versions_differ() {
        let tree = "a v1.0.0 (/p)\nb v1.0.0\nb v2.0.0\n\nb v1.0.0 (*)\n";
        assert_eq!(others(tree), 1);
    }
}
