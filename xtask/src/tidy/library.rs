//! The root of a library: documentation, modules and re-exports, and no items.

use super::Source;
use crate::scan;

/// Libraries whose root must hold items: path, reason.
const WITH_ITEMS: &[(&str, &str)] = &[(
    "crates/adjutant-macros/src/lib.rs",
    "the compiler requires procedural macros there",
)];

pub(super) fn root(source: &Source) -> Option<String> {
    if !source.path.ends_with("/src/lib.rs") {
        return None;
    }
    let listed = WITH_ITEMS.iter().any(|(path, _)| *path == source.path);
    let item = first_item(&source.scanned.code).filter(|_| !listed);
    item.map(|at| source.message(at, "an item in lib.rs"))
}

/// Returns the position of the first item that is neither an attribute nor `mod name;` nor `use`.
fn first_item(code: &str) -> Option<usize> {
    let mut rest = code.trim();
    while !rest.is_empty() {
        let bare = rest
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ");
        let length = match bare.split([' ', '[']).next() {
            Some("#" | "#!") => scan::end(rest, rest.find('[')?, b']'),
            Some("use") => rest.find(';').map(|at| at + 1),
            Some("mod") => {
                let name = rest.split_once('{').map_or(rest, |(before, _)| before);
                name.find(';').map(|at| at + 1)
            }
            _ => None,
        };
        let Some(length) = length else {
            return Some(code.trim_end().len() - rest.len());
        };
        rest = rest[length..].trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expect: Option<&str>) {
        assert_eq!(
            root(&Source::new("a/src/lib.rs", raw.into())).as_deref(),
            expect
        );
    }

    #[test]
    fn library_rejects_items_next_to_modules_and_uses() {
        let fine = "//! Doc.\n#![deny(x)]\n\nmod a;\n#[cfg(x)]\npub mod b;\npub use a::{C, D};\n";
        check(fine, None);
        let at_8 = Some("a/src/lib.rs:8: an item in lib.rs");
        check(&format!("{fine}mod c {{ }}\n"), at_8);
        check(&format!("{fine}pub struct S;\n"), at_8);
    }
}
