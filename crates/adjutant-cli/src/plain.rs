//! Text of models, tools and servers, made harmless: it must neither steer the terminal nor break out of its line.

use std::borrow::Cow;

/// How many characters of such text stand in one line.
const MAX_LINE: usize = 400;

/// The text as one line: white space is one space, other control characters are `\u{fffd}`, and it is cut at 400 characters.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    for (at, character) in text.split_whitespace().collect::<Vec<_>>().join(" ").chars().enumerate() {
        if at == MAX_LINE {
            line.push('…');
            break;
        }
        line.push(if is_steering(character) { '\u{fffd}' } else { character });
    }
    line
}

/// The text with its lines and tabs, without anything that steers a terminal.
pub(crate) fn stream(text: &str) -> Cow<'_, str> {
    let harmful = |character| is_steering(character) && !matches!(character, '\n' | '\t');
    if text.contains(harmful) { Cow::Owned(text.replace(harmful, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The text as one word of a shell's command, exactly, in one line.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(is_steering) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut word = "$'".to_owned();
    for character in text.chars() {
        match character {
            '\'' | '\\' => word.extend(['\\', character]),
            _ if is_steering(character) => {
                let bytes = character.to_string().into_bytes();
                word.extend(bytes.iter().map(|byte| format!("\\x{byte:02x}")));
            }
            _ => word.push(character),
        }
    }
    word + "'"
}

/// Control characters, and those that turn the direction of what follows.
fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_one_short_line_when_the_text_is_hostile() {
        assert_eq!(line(" a\r\n\tb\x1b[2Jc\u{202e}d "), "a b\u{fffd}[2Jc\u{fffd}d");
        assert_eq!(line(&"é".repeat(401)), format!("{}…", "é".repeat(400)));
        assert_eq!(line(&"é".repeat(400)), "é".repeat(400));
    }

    #[test]
    fn word_is_quoted_when_a_shell_would_read_it_otherwise() {
        assert_eq!(word("ada/first-2"), "ada/first-2");
        assert_eq!(word("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(word(""), "''");
        assert_eq!(word("it's\n\u{202e}\\"), r"$'it\'s\x0a\xe2\x80\xae\\'");
    }

    #[test]
    fn stream_keeps_lines_when_the_text_is_hostile() {
        assert_eq!(stream("a\n\tb"), "a\n\tb");
        assert_eq!(stream("a\n\x1b]0;x\x07\r"), "a\n\u{fffd}]0;x\u{fffd}\u{fffd}");
    }
}
