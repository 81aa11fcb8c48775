//! Attributes that silence something: `expect` is counted, `allow` and `ignore` are not taken.

use super::Source;

/// How many `expect` attributes the crates may have in all. It may only fall.
const EXPECTATIONS: usize = 60;
const FORBIDDEN: &[&str] = &["#[allow(", "#![allow(", "#[ignore"];

pub(super) fn forbidden(sources: &[Source]) -> Vec<String> {
    let mut messages = Vec::new();
    for source in sources {
        for attribute in FORBIDDEN {
            let found = source.scanned.code.match_indices(attribute);
            messages.extend(found.map(|(at, _)| source.message(at, &format!("`{attribute}`"))));
        }
    }
    messages
}

pub(super) fn expectations(sources: &[Source]) -> Vec<String> {
    let crates = sources
        .iter()
        .filter(|source| source.path.starts_with("crates/"));
    let attributes =
        |code: &str| code.matches("#[expect(").count() + code.matches("#![expect(").count();
    let found: usize = crates.map(|source| attributes(&source.scanned.code)).sum();
    println!("tidy: {found} expect attributes in crates/ (limit {EXPECTATIONS})");
    let what = format!("crates:1: {found} expect attributes (limit {EXPECTATIONS})");
    if found > EXPECTATIONS {
        vec![what]
    } else {
        Vec::new()
    }
}
