//! Names, headers and attributes: what files and types are called, how a file opens, what it silences.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, visit::Visit};

use super::{Source, floors};

/// Stems of files and folders that hold whatever nobody placed.
const VAGUE: &[&str] = &["mod", "util", "utils", "common", "helpers", "misc", "manager"];
const FORBIDDEN: &[&str] = &["#[allow(", "#![allow(", "#[ignore"];
/// Where forbidden attributes are text that is written into the code of others: path, reason.
const WRITERS: &[(&str, &str)] =
    &[("crates/adjutant-macros/src/expand.rs", "`expect` would warn in code that happens to need no exception")];
/// How many `expect` attributes the sources of the crates may have in all. It may only fall.
///
/// Tests may have more: what several targets share, each uses in part.
const EXPECTATIONS: usize = 3;
/// In how many files a name may be a type's.
const HOMONYMS: usize = 3;
/// What a name may mean in any number of files: each crate's error, a value's state and kind, the arguments of a tool,
/// and the two directions of each wire.
const EVERYWHERE: &[&str] = &["State", "Error", "ErrorKind", "Kind", "Args", "Encoder", "Decoder"];

pub(super) fn file_name(source: &Source) -> Vec<String> {
    let mut parts = source.path.trim_end_matches(".rs").split('/');
    let vague = parts.find(|part| VAGUE.contains(part));
    vague.map(|part| source.message(0, &format!("the name says nothing: {part}"))).into_iter().collect()
}

pub(super) fn header(source: &Source) -> Vec<String> {
    // Fixtures of the compiler's messages are programs of a few lines, named by the mistake in them.
    let bare = !source.raw.starts_with("//! ") && !source.path.contains("/tests/ui/");
    bare.then(|| source.message(0, "does not open with `//!`")).into_iter().collect()
}

pub(super) fn attributes(source: &Source) -> Vec<String> {
    let writes = WRITERS.iter().any(|(path, _)| *path == source.path);
    let words = FORBIDDEN.iter().filter(|_| !writes);
    let found = words.flat_map(|word| source.scanned.code.match_indices(word));
    found.map(|(at, word)| source.message(at, &format!("`{word}`"))).collect()
}

pub(super) fn expectations(sources: &[Source]) -> Option<String> {
    let is_source = |source: &&Source| source.path.starts_with("crates/") && source.path.contains("/src/");
    let crates = sources.iter().filter(is_source);
    let words = crates.flat_map(|source| source.scanned.code.match_indices("[expect("));
    let found = format!("{} expect attributes (limit {EXPECTATIONS})", words.clone().count());
    println!("tidy: crates have {found}");
    (words.count() > EXPECTATIONS).then(|| format!("crates:1: {found}"))
}

/// Names that are a type's in too many files. What vendors call things stands in files called `wire.rs`.
pub(super) fn homonyms(sources: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let is_source = |it: &&Source| it.path.starts_with("crates/") && it.path.contains("/src/");
    let is_own = |it: &&Source| !it.path.ends_with("/wire.rs") && !it.path.ends_with("/tests.rs");
    for source in sources.iter().filter(is_source).filter(is_own) {
        let mut types = Types::default();
        // What does not parse is the compiler's to tell.
        if let Ok(parsed) = syn::parse_file(&source.raw) {
            types.visit_file(&parsed);
        }
        types.0.into_iter().for_each(|name| files.entry(name).or_default().push(&source.path));
    }
    files.retain(|name, files| files.len() > HOMONYMS && !EVERYWHERE.contains(&name.as_str()));
    println!("tidy: {} names are a type's in more than {HOMONYMS} files", files.len());
    let tell =
        |(name, files): (_, Vec<&str>)| format!("{}:1: a type is called {name} in {}", files[0], files.join(", "));
    files.into_iter().map(tell).collect()
}

#[derive(Default)]
struct Types(BTreeSet<String>);

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a Item) {
        if floors::is_test(item) {
            return;
        }
        let name = match item {
            Item::Struct(it) => Some(&it.ident),
            Item::Enum(it) => Some(&it.ident),
            Item::Union(it) => Some(&it.ident),
            Item::Trait(it) => Some(&it.ident),
            Item::Type(it) => Some(&it.ident),
            _ => None,
        };
        self.0.extend(name.map(ToString::to_string));
        syn::visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homonyms_are_told_when_a_fourth_file_declares_the_name() {
        let check = |files: &[(&str, &str)], expect: &[&str]| {
            let source = |(path, raw): &(&str, &str)| Source::new(&format!("crates/c/src/{path}"), (*raw).to_owned());
            let sources: Vec<_> = files.iter().map(source).collect();
            assert_eq!(homonyms(&sources), expect);
        };
        let three = [("a.rs", "struct Part;"), ("b.rs", "fn f() { enum Part {} }"), ("d.rs", "type Part = u8;")];
        let with = |path, raw| [three.as_slice(), &[(path, raw)]].concat();
        check(&three, &[]);
        check(&with("e.rs", "use crate::a::Part; impl Part {} enum E { Part }"), &[]);
        check(&with("e/wire.rs", "struct Part;"), &[]);
        check(&with("e.rs", "#[cfg(test)] mod tests { struct Part; }"), &[]);
        let four = "crates/c/src/a.rs:1: a type is called Part in crates/c/src/a.rs, crates/c/src/b.rs, \
                    crates/c/src/d.rs, crates/c/src/e.rs";
        check(&with("e.rs", "mod inner { pub trait Part {} }"), &[four]);
        check(&["a.rs", "b.rs", "d.rs", "e.rs"].map(|path| (path, "struct State;")), &[]);
    }
}
