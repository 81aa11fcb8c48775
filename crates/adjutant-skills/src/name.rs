//! Names of skills: the names that the specification allows, and the ones that are tolerated.

use crate::limits::MAX_NAME_CHARS;

/// The largest number of characters of an invalid name in a message.
const MAX_ECHO: usize = 80;

/// Checks a name against the specification; the error gives the reason.
///
/// Source: Agent Skills specification, August 2026.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c == '-' || c.is_numeric() || (c.is_alphabetic() && !c.is_uppercase());
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        Err("it must have 1 to 64 characters")
    } else if !name.chars().all(is_plain) {
        Err("it must be made of lowercase letters, digits and hyphens")
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        Err("hyphens stand alone between letters or digits")
    } else {
        Ok(())
    }
}

/// True if a folder's name can name a skill here: short, and of letters, digits, hyphens, underscores and dots.
pub(crate) fn is_tolerable(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.starts_with('.')
        && name.chars().all(is_plain)
}

/// True if a character is invisible or changes the text direction; characters that join letters do not count.
pub(crate) fn is_invisible(c: char) -> bool {
    let is_steering = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_blank = matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}');
    let is_tag = matches!(c, '\u{e0000}'..='\u{e007f}');
    is_steering || is_blank || is_tag || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// An external text in back-ticks, on one line and truncated.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::from("`");
    for (at, c) in text.chars().enumerate() {
        if at == MAX_ECHO {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
    }
    shown.push('`');
    shown
}

/// The text as one line: white space is one space, and control characters are dropped.
pub(crate) fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_says_why_when_it_is_no_name() {
        let good = ["a", "pdf-tools", "2fa", "größe", &"x".repeat(64)].map(check);
        assert_eq!(good, [Ok(()); 5]);
        for name in [
            "",
            "Pdf",
            "a_b",
            "a b",
            "-a",
            "a-",
            "a--b",
            "../a",
            "a/b",
            &"x".repeat(65),
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn is_tolerable_refuses_when_a_name_could_mislead() {
        assert!(
            ["PDF_Tools.v2", "größe"]
                .iter()
                .all(|name| is_tolerable(name))
        );
        for name in [
            "",
            ".hidden",
            "..",
            "a b",
            "a/b",
            "a\nb",
            "</skills>",
            "a`",
            &"x".repeat(65),
        ] {
            assert!(!is_tolerable(name), "{name:?}");
        }
    }

    #[test]
    fn quoted_stays_on_one_line_when_the_text_is_hostile() {
        assert_eq!(quoted("a\nb\u{1b}["), "`a\\nb\\u{1b}[`");
        assert_eq!(quoted(&"x".repeat(81)), format!("`{}…`", "x".repeat(80)));
    }
}
