//! Sanitizes the text of models, tools and servers: it must neither control the terminal nor break out of its line.

use std::{borrow::Cow, fmt::Display};

use adjutant::llm::hidden::is_hidden;
pub(crate) use adjutant::llm::hidden::whole;
use serde_json::Value;

/// The maximum number of characters of such text in one line.
const MAX_LINE: usize = 400;

/// Returns the text as one line: white space becomes one space, control and invisible characters become `\u{fffd}`, and
/// it is truncated to 400 characters.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    for (at, character) in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .enumerate()
    {
        if at == MAX_LINE {
            line.push('…');
            break;
        }
        line.push(if is_unseen(character) {
            '\u{fffd}'
        } else {
            character
        });
    }
    line
}

/// Returns the text with its lines and tabs, without terminal control characters.
pub(crate) fn stream(text: &str) -> Cow<'_, str> {
    let harmful = |character| is_steering(character) && !matches!(character, '\n' | '\t');
    if text.contains(harmful) {
        Cow::Owned(text.replace(harmful, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a complete JSON text in one line: every key and value in its original form, without white space between
/// them.
///
/// It is not parsed into a value, which would keep only one of two equal keys.
pub(crate) fn json(text: &str) -> String {
    if serde_json::from_str::<Value>(text).is_err() {
        return whole(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let end = if first == '"' {
            end_of_string(rest)
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        match first {
            '"' => {
                let read = serde_json::from_str::<String>(token)
                    .and_then(|text| serde_json::to_string(&text));
                out += read.as_deref().unwrap_or(token);
            }
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out += token,
        }
        rest = after;
    }
    whole(&out)
}

/// Returns the end of the JSON string at the start of a text.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |(_, byte): &(usize, u8)| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    };
    text.bytes()
        .enumerate()
        .skip(1)
        .find(is_end)
        .map_or(text.len(), |(at, _)| at + 1)
}

/// Returns an equal line of JSON in which invisible and control characters are escaped.
fn escaped(json: &str) -> Cow<'_, str> {
    // A character below a blank is white space between values; in strings it is already escaped.
    let is_bare = |character: char| character >= ' ' && is_hidden(character);
    if !json.contains(is_bare) {
        return Cow::Borrowed(json);
    }
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if is_bare(character) {
            character
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| line += &format!("\\u{unit:04x}"));
        } else {
            line.push(character);
        }
    }
    Cow::Owned(line)
}

/// Returns a value as a line of JSON in which invisible and control characters are escaped.
pub(crate) fn json_line(value: impl Display) -> String {
    escaped(&value.to_string()).into_owned() + "\n"
}

/// Quotes the text as one word of a shell command, in one line.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(is_unseen) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut word = "$'".to_owned();
    for character in text.chars() {
        match character {
            '\'' | '\\' => word.extend(['\\', character]),
            _ if is_unseen(character) => {
                let bytes = character.to_string().into_bytes();
                word.extend(bytes.iter().map(|byte| format!("\\x{byte:02x}")));
            }
            _ => word.push(character),
        }
    }
    word + "'"
}

/// Control characters, characters that change the text direction, and invisible tags.
fn is_steering(character: char) -> bool {
    let is_turning = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_turning || matches!(character, '\u{e0000}'..='\u{e007f}')
}

/// Control characters, and characters that are invisible in a line: not blanks, and not joiners or variation
/// selectors.
fn is_unseen(character: char) -> bool {
    let is_of_text = matches!(character, '\u{200c}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    is_steering(character) || is_hidden(character) && !character.is_whitespace() && !is_of_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shown_whole_and_as_it_is_read() {
        let blanks = " ".repeat(400);
        for (text, expect) in [
            (
                format!("{{\"a\":1,{blanks}\n\"path\" : \"b.txt\"}}"),
                r#"{"a":1,"path":"b.txt"}"#.to_owned(),
            ),
            (
                format!("{{\"a\":\"{blanks}\"}}"),
                format!("{{\"a\":\"{blanks}\"}}"),
            ),
            (
                r#"{"p":"a","p":"\u0062\"","n":1.0e2}"#.to_owned(),
                r#"{"p":"a","p":"b\"","n":1.0e2}"#.to_owned(),
            ),
            (
                "[\"\u{202e}\u{9b}\u{7f}\u{200b}\\u202e\\u001b[2J\u{a0}\u{e0041}\"]".to_owned(),
                r#"["\u{202e}\u{9b}\u{7f}\u{200b}\u{202e}\u001b[2J\u{a0}\u{e0041}"]"#.to_owned(),
            ),
            (
                "no\n JSON \u{1b}[2J".to_owned(),
                r"no\u{a} JSON \u{1b}[2J".to_owned(),
            ),
        ] {
            assert_eq!(json(&text), expect);
        }
    }

    #[test]
    fn escaped_is_the_same_value_when_it_cannot_be_seen() {
        let value = serde_json::json!({"a\u{202e}": "é\u{7f}\u{9b}2J\u{2066}\u{e0041}\n\u{1b}🦀"});
        let text = value.to_string();
        let line = escaped(&text);
        assert_eq!(
            line,
            r#"{"a\u202e":"é\u007f\u009b2J\u2066\udb40\udc41\n\u001b🦀"}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&line).ok(), Some(value));
        assert!(matches!(escaped("{\"a\": 1}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn line_is_one_short_line_when_the_text_is_hostile() {
        assert_eq!(
            line(" a\r\n\tb\x1b[2Jc\u{202e}d "),
            "a b\u{fffd}[2Jc\u{fffd}d"
        );
        assert_eq!(
            line("a\u{200b}b\u{e0041}\u{2067}c\u{a0}d ✔\u{fe0f}"),
            "a\u{fffd}b\u{fffd}\u{fffd}c d ✔\u{fe0f}"
        );
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
        assert_eq!(stream("ក\u{200b}ខ\u{e0041}"), "ក\u{200b}ខ\u{fffd}");
        assert_eq!(
            stream("a\n\x1b]0;x\x07\r"),
            "a\n\u{fffd}]0;x\u{fffd}\u{fffd}"
        );
    }
}
