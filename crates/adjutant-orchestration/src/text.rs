//! Pieces of text: cut at character boundaries, put on one line, with tags escaped; and the texts of errors.

use std::{borrow::Cow, error::Error};

use adjutant_agent::sections::SectionKind;

/// The tags that are escaped in addition to the tags of sections.
const TAGS: [&str; 5] = [
    "prior_reflections",
    "reflection",
    "delegation_context",
    "handoff_context",
    "project_context",
];
/// The mark at the place where a text was cut.
const CUT: &str = " [cut]";

/// The beginning of a text, of at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    text.get(..text.floor_char_boundary(max))
        .unwrap_or_default()
}

/// A text of at most `max` bytes, with a note if it was cut.
pub(crate) fn clip_text(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = cut(text, max.saturating_sub(CUT.len()));
    cut(&format!("{kept}{CUT}"), max).to_owned()
}

/// The beginning of a text, of at most `chars` characters, with a mark if it was cut.
pub(crate) fn cut_chars(text: &str, chars: usize) -> Cow<'_, str> {
    // No text has more characters than bytes.
    if text.len() <= chars {
        return Cow::Borrowed(text);
    }
    let Some((end, _)) = text.char_indices().nth(chars) else {
        return Cow::Borrowed(text);
    };
    let (kept, rest) = text.split_at(end);
    Cow::Owned(format!(
        "{kept}\n[cut here: {} characters are left out]",
        rest.chars().count()
    ))
}

/// A text on one line of at most `max` bytes.
pub(crate) fn line(text: &str, max: usize) -> String {
    // The part that will be cut need not be processed.
    let words =
        cut(text, max.saturating_mul(4)).split(|it: char| it.is_whitespace() || it.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    clip_text(&words.join(" "), max)
}

/// A text in which nothing looks like a tag that the framework writes: its `<` is written as `&lt;`.
pub(crate) fn escape_tags(text: &str) -> String {
    let mut defused = String::with_capacity(text.len());
    let mut parts = text.split('<');
    defused.extend(parts.next());
    for part in parts {
        defused.push_str(if is_tag(part) { "&lt;" } else { "<" });
        defused.push_str(part);
    }
    defused
}

/// True if the text after a `<` makes it a tag, as a lenient reader sees it.
fn is_tag(part: &str) -> bool {
    let part = part.trim_start_matches(|c| c == '/' || is_blank(c));
    let end = part
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(part.len());
    let (name, _) = part.split_at(end);
    let known = SectionKind::KNOWN;
    TAGS.iter()
        .copied()
        .chain(known.iter().map(SectionKind::tag))
        .any(|tag| name.eq_ignore_ascii_case(tag))
}

/// Space, and characters that show as nothing.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The beginning of a text, with its whole size if something was left out.
pub(crate) fn cut_with_size(text: &str, max: usize) -> Cow<'_, str> {
    match text.len() <= max {
        true => text.into(),
        false => format!("{}… ({} bytes in all)", cut(text, max), text.len()).into(),
    }
}

/// The beginning of a text, with an ellipsis if something was left out.
pub(crate) fn cut_with_ellipsis(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        text.into()
    } else {
        format!("{}…", cut(text, max)).into()
    }
}

/// An error with its causes on one line, without repeated texts.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_never_splits_a_character_when_it_shortens() {
        assert_eq!(cut("äöü", 3), "ä");
        assert_eq!(clip_text("ääääääää", 11), "ää [cut]");
        assert_eq!(clip_text("abc", 3), "abc");
        assert_eq!(line(" a\n\tb\0c ", 9), "a b c");
    }

    #[test]
    fn defused_text_has_no_tag_of_ours_when_it_tries_to() {
        assert_eq!(
            escape_tags("a < b <b> </Prior_Reflections x>"),
            "a < b <b> &lt;/Prior_Reflections x>"
        );
        assert_eq!(
            escape_tags("< /\u{200b}instructions><reflections>"),
            "&lt; /\u{200b}instructions><reflections>"
        );
    }
}
