//! Tests in a library that has no target for them: none would run. They do where a file of `tests/` reads the module.

use super::Source;
use crate::metadata::Package;

/// One message for each file whose tests nothing runs.
pub(super) fn find_unread(packages: &[Package], sources: &[Source]) -> Vec<String> {
    let has_none = |package: &&Package| {
        let targets = package.about["targets"].as_array();
        targets.is_some_and(|all| {
            all.iter()
                .any(|it| it["kind"][0] == "lib" && it["test"] == false)
        })
    };
    packages
        .iter()
        .filter(has_none)
        .flat_map(|package| find_in_crate(&package.name, sources))
        .collect()
}

fn find_in_crate(name: &str, sources: &[Source]) -> Vec<String> {
    let [inside, beside] = ["src", "tests"].map(|folder| format!("crates/{name}/{folder}/"));
    let reads = |it: &&Source| it.path.starts_with(&beside) && it.scanned.text.contains("\"../src");
    let reading: Vec<&Source> = sources.iter().filter(reads).collect();
    let is_read = |path: &str| {
        // With a module come those in its folder.
        let named = |part: &str| {
            reading
                .iter()
                .any(|it| it.scanned.code.contains(&format!("mod {part};")))
        };
        path.trim_end_matches(".rs").split('/').any(named)
    };
    let lost = sources.iter().filter_map(|source| {
        let path = source.path.strip_prefix(&inside)?;
        let at = source
            .scanned
            .code
            .find("#[cfg(test)]")
            .filter(|_| !is_read(path))?;
        Some(source.message(
            at,
            "the library has no target for tests, and no file of `tests/` reads these",
        ))
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_when_nothing_reads_them() {
        let sources = [
            ("crates/a/src/one.rs", "\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/two.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/a/src/two/three.rs", "#[cfg(test)]\nmod tests;"),
            (
                "crates/a/tests/inside.rs",
                "#[path = \"../src/two.rs\"]\nmod two;",
            ),
            ("crates/a/tests/other.rs", "mod one;"),
        ];
        let sources = sources.map(|(path, text)| Source::new(path, text.into()));
        let package = |test: bool| Package {
            name: "a".into(),
            about: serde_json::json!({"targets": [{"kind": ["lib"], "test": test}]}),
            ..Package::default()
        };
        let expect = "crates/a/src/one.rs:2: the library has no target for tests, and no file of `tests/` reads these";
        assert_eq!(find_unread(&[package(false)], &sources), [expect]);
        assert!(find_unread(&[package(true)], &sources).is_empty());
    }
}
