//! How many crates a user gets with the facade, one tool and one provider.

use std::collections::BTreeSet;

use crate::{Failure, cargo};

/// The number must stay below.
const CRATES: usize = 120;

pub(super) fn facade() -> Result<Vec<String>, Failure> {
    let edges = [
        "tree",
        "--package",
        "adjutant",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ];
    let target = ["--target", "x86_64-unknown-linux-gnu", "--locked"];
    let tree = cargo::output(&[edges.as_slice(), &target].concat())?;
    let crates = unique_names(&tree);
    println!(
        "tidy: facade, one tool and one provider need {crates} crates (limit: under {CRATES})"
    );
    let what =
        format!("crates/adjutant/Cargo.toml:1: needs {crates} crates (limit: under {CRATES})");
    Ok(if crates < CRATES {
        Vec::new()
    } else {
        vec![what]
    })
}

fn unique_names(tree: &str) -> usize {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect::<BTreeSet<_>>()
        .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_count_once_when_versions_differ() {
        assert_eq!(
            unique_names("a v1.0.0 (/p)\nb v1.0.0\nb v2.0.0\n\nb v1.0.0 (*)\n"),
            2
        );
    }
}
