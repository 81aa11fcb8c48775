//! The tags of sections: a text is inserted and cannot close them.

use super::SectionKind;

/// A text in tags of that name.
///
/// Text inside that looks like a tag of a known section, or of a `present` one, is escaped.
pub(crate) fn wrap(tag: &str, text: &str, present: &[&SectionKind]) -> String {
    let mut wrapped = String::with_capacity(text.len() + 2 * tag.len() + 7);
    wrapped.extend(["<", tag, ">\n"]);
    defuse(text, present, &mut wrapped);
    if !wrapped.ends_with('\n') {
        wrapped.push('\n');
    }
    wrapped.extend(["</", tag, ">"]);
    wrapped
}

fn defuse(text: &str, present: &[&SectionKind], into: &mut String) {
    let mut parts = text.split('<');
    into.extend(parts.next());
    for part in parts {
        into.push_str(if is_section(part, present) {
            "&lt;"
        } else {
            "<"
        });
        into.push_str(part);
    }
}

/// True if the text after a `<` makes it a tag of a section, as a lenient reader sees it.
fn is_section(part: &str, present: &[&SectionKind]) -> bool {
    let part = part.trim_start_matches(|c| c == '/' || is_blank(c));
    let end = part
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(part.len());
    let is_named = |kind: &SectionKind| part[..end].eq_ignore_ascii_case(kind.tag());
    SectionKind::KNOWN.iter().any(is_named) || present.iter().any(|kind| is_named(kind))
}

/// Space, and characters that show as nothing.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
