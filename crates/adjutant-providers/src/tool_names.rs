//! Names of tools in a form that all vendors accept. Pure.
//!
//! Source: `^[a-zA-Z0-9_-]{1,64}$` of "Function calling", platform.openai.com, and of opencode 48750, 2026-09; "must start
//! with a letter or an underscore" of `FunctionDeclaration`, ai.google.dev, 2026-11.

use std::borrow::Cow;

use adjutant_llm::{ToolDecl, ToolName};

use crate::fnv::Fnv;

/// The largest number of characters of a name.
const MAX_LENGTH: usize = 64;
/// The number of hexadecimal digits that distinguish names with replaced characters.
const DIGITS: usize = 6;

/// Returns the name of a tool on the wire, in its declaration and in its calls. Calls may have names of tools that do not
/// exist, and vendors refuse these names in a history.
pub fn wire_name(name: &str) -> Cow<'_, str> {
    if is_valid(name) {
        return Cow::Borrowed(name);
    }
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let start = if name.starts_with(|it: char| it.is_ascii_digit() || it == '-') {
        "_"
    } else {
        ""
    };
    let letters = name.chars().map(|it| if fits(it) { it } else { '_' });
    let letters = letters.take(MAX_LENGTH - DIGITS - 2);
    let digest = Fnv::new().with(name).to_string();
    let end = ["_", &digest[..DIGITS]].concat();
    Cow::Owned(start.chars().chain(letters).chain(end.chars()).collect())
}

/// Returns the tool's name for this name on the wire, or `None` if both are equal.
pub(crate) fn original<'a>(name: &str, tools: &'a [ToolDecl]) -> Option<&'a ToolName> {
    let is_it = |tool: &&ToolDecl| is_renamed(tool) && wire_name(tool.name.as_str()) == name;
    tools.iter().find(is_it).map(|tool| &tool.name)
}

/// True if a tool is declared under another name.
pub(crate) fn is_renamed(tool: &ToolDecl) -> bool {
    !is_valid(tool.name.as_str())
}

fn is_valid(name: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    let starts = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    starts && name.len() <= MAX_LENGTH && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_name_keeps_valid_names_and_makes_others_valid_and_distinct() {
        let long = "n".repeat(65);
        let table = [
            ("read_file", true),
            ("_x-1", true),
            ("math.factorial", false),
            ("math_factorial", true),
            ("math:factorial", false),
            ("2fa", false),
            ("-x", false),
            ("größe", false),
            ("", false),
            ("名", false),
            (&long, false),
            (&long[1..], true),
        ];
        let mut seen = std::collections::BTreeSet::new();
        for (name, is_kept) in table {
            let declared = wire_name(name);
            assert_eq!(declared == name, is_kept, "{name}");
            assert!(is_valid(&declared), "{name}: {declared}");
            let tools = [ToolDecl {
                name: name.into(),
                description: "".into(),
                schema: std::sync::Arc::default(),
            }];
            let restored = original(&declared, &tools).map(ToolName::as_str);
            assert_eq!(restored, (!is_kept).then_some(name));
            assert!(seen.insert(declared.into_owned()), "{name}");
        }
    }
}
