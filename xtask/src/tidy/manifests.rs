//! The required parts of a published crate: description, both licences, settings for hosted documentation, and a
//! README that lists its features.

use std::{collections::BTreeMap, fs};

use serde_json::json;

use crate::{cargo, metadata::Package};

/// One message for each thing that a published crate lacks.
pub(crate) fn lacks(packages: &[Package]) -> Vec<String> {
    let each = packages
        .iter()
        .filter(|package| package.is_published())
        .flat_map(|package| {
            let folder = cargo::root().join("crates").join(&package.name);
            missing(package, |name| fs::read_to_string(folder.join(name)).ok())
        });
    each.collect()
}

fn missing(package: &Package, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (name, about) = (&package.name, &package.about);
    let docs = json!({"all-features": true, "rustdoc-args": ["--cfg", "docsrs"]});
    let readme = read("README.md").filter(|_| about["readme"] == "README.md");
    let holds = [
        (
            ["description", "license", "repository"]
                .iter()
                .all(|key| about[key].is_string()),
            "what it is, its licence or home",
        ),
        (
            about["documentation"] == format!("https://docs.rs/{name}"),
            "its page of docs.rs as `documentation`",
        ),
        (
            matches!(about["keywords"].as_array().map(Vec::len), Some(1..=5)),
            "one to five `keywords`",
        ),
        (about["categories"].get(0).is_some(), "`categories`"),
        (
            about["metadata"]["docs"]["rs"] == docs,
            "the settings of `package.metadata.docs.rs`",
        ),
        (
            ["LICENSE-APACHE", "LICENSE-MIT"]
                .iter()
                .all(|name| read(name).is_some()),
            "a licence file",
        ),
        (readme.is_some(), "README.md"),
        (
            readme.is_none_or(|text| table(&text) == features(package)),
            "the table of its features in README.md",
        ),
    ];
    let lacking = holds.into_iter().filter(|(holds, _)| !holds);
    lacking
        .map(|(_, what)| format!("crates/{name}/Cargo.toml:1: lacks {what}"))
        .collect()
}

/// The features, and whether each one is on by default.
fn features(package: &Package) -> BTreeMap<&str, bool> {
    let default = package.features.get("default");
    let is_default = |name: &String| default.is_some_and(|names| names.contains(name));
    let names = package.features.keys().filter(|name| *name != "default");
    names
        .map(|name| (name.as_str(), is_default(name)))
        .collect()
}

/// The rows whose first cell is a name between backticks, and whether `(default)` follows it.
fn table(readme: &str) -> BTreeMap<&str, bool> {
    let rows = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, rest)| (name, rest.starts_with(" (default)")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str =
        "# adjutant-a\n\n| feature | what |\n|---|---|\n| `one` (default) | a |\n| `two` | b |\n";

    fn package() -> Package {
        let package = json!({
            "name": "adjutant-a", "version": "1.0.0", "dependencies": [], "publish": null,
            "description": "Does a.", "license": "MIT", "repository": "here", "readme": "README.md",
            "documentation": "https://docs.rs/adjutant-a", "keywords": ["a"], "categories": ["a"],
            "features": {"default": ["one"], "one": [], "two": []},
            "metadata": {"docs": {"rs": {"all-features": true, "rustdoc-args": ["--cfg", "docsrs"]}}},
        });
        serde_json::from_value(package).expect("a package")
    }

    #[track_caller]
    fn check(without: &str, readme: &str, expect: &[&str]) {
        let mut package = package();
        package.about[without].take();
        let read = |name: &str| (name != without).then(|| readme.to_owned());
        let expect: Vec<_> = expect
            .iter()
            .map(|what| format!("crates/adjutant-a/Cargo.toml:1: lacks {what}"))
            .collect();
        assert_eq!(missing(&package, read), expect);
    }

    #[test]
    fn crate_is_told_when_it_lacks_what_a_registry_shows() {
        check("", README, &[]);
        check("description", README, &["what it is, its licence or home"]);
        check(
            "documentation",
            README,
            &["its page of docs.rs as `documentation`"],
        );
        check("keywords", README, &["one to five `keywords`"]);
        check("categories", README, &["`categories`"]);
        check(
            "metadata",
            README,
            &["the settings of `package.metadata.docs.rs`"],
        );
        check("LICENSE-MIT", README, &["a licence file"]);
        check("README.md", README, &["README.md"]);
    }

    #[test]
    fn readme_is_told_when_it_does_not_list_the_features() {
        let wrong = &["the table of its features in README.md"];
        check("", "# adjutant-a\n", wrong);
        check("", &README.replace(" (default)", ""), wrong);
        check("", &README.replace("`two`", "`three`"), wrong);
    }
}
