//! The output of a command as text without terminal control and hidden characters.

use adjutant_llm::hidden;

/// The share of bytes that are no text, beyond which an output is binary: one in so many.
const BINARY: usize = 8;
/// The number of bytes that are looked at for it.
const LOOKED: usize = 8 << 10;

/// True if this is no text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let bytes = bytes.get(..LOOKED).unwrap_or(bytes);
    let odd: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    bytes.contains(&0) || odd > bytes.len() / BINARY
}

/// The text that a terminal would have at last: without sequences that steer it, lines that were written over as they ended up.
pub(super) fn text(bytes: &[u8]) -> String {
    let raw = String::from_utf8_lossy(bytes);
    let mut text = String::with_capacity(raw.len());
    let mut start = 0;
    let mut rest = raw.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                text.push('\n');
                start = text.len();
            }
            '\t' => text.push('\t'),
            '\r' => {
                // A line that is written over, unless it ends here.
                if rest.peek().is_some_and(|next| !matches!(next, '\n' | '\r')) {
                    text.truncate(start);
                }
            }
            '\u{8}' if text.len() > start => {
                text.pop();
            }
            '\u{1b}' => skip(rest.next(), &mut rest),
            '\u{9b}' => skip(Some('['), &mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip(Some(']'), &mut rest),
            c if c.is_control() => {}
            c if hidden::is_hidden(c) => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    text
}

/// Skips the rest of a sequence, by what follows its escape.
///
/// Source: ECMA-48: CSI ends with a byte of 0x40 to 0x7e, strings with ST, and, as terminals do it, with BEL.
fn skip(kind: Option<char>, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match kind {
        Some('[') => {
            while rest
                .next_if(|c| !matches!(c, '\u{40}'..='\u{7e}' | '\n'))
                .is_some()
            {}
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A string without an end hides its line and no more.
            while let Some(c) = rest.next_if(|c| !matches!(c, '\u{7}' | '\u{9c}' | '\n')) {
                if c == '\u{1b}' && rest.next_if_eq(&'\\').is_some() {
                    return;
                }
            }
            rest.next_if(|c| *c != '\n');
            return;
        }
        Some('\u{20}'..='\u{2f}') => {
            while rest.next_if(|c| matches!(c, '\u{20}'..='\u{2f}')).is_some() {}
        }
        Some(_) | None => return,
    }
    rest.next_if(|c| *c != '\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_nothing_that_steers_a_terminal() {
        let table: [(&[u8], &str); 12] = [
            (b"plain\n\ttab\n", "plain\n\ttab\n"),
            (b"\x1b[31mred\x1b[0m", "red"),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
            (b"10%\r50%\r100%\nend\r\n", "100%\nend\n"),
            (b"\x1bPq\x1b\\x\x1b(By\x1b=z", "xyz"),
            ("\u{9b}2Ja\u{9d}t\u{9c}b".as_bytes(), "ab"),
            (b"\x1b]52;c;without end\nnext", "\nnext"),
            (b"a\x08b\x07\x00c\x7f", "bc"),
            ("x\u{202e}y\u{200b}".as_bytes(), "x\\u{202e}y\\u{200b}"),
            (b"\xff\xfea", "\u{fffd}\u{fffd}a"),
            (b"\x1b[31", ""),
            (b"\x1b", ""),
        ];
        for (bytes, expect) in table {
            assert_eq!(text(bytes), expect, "{bytes:?}");
        }
    }

    #[test]
    fn binary_is_known_by_zeros_and_by_what_is_no_text() {
        let table: [(&[u8], bool); 5] = [
            (b"text", false),
            ("äöü".as_bytes(), false),
            (b"a\0b", true),
            (&[0xff; 40], true),
            (b"", false),
        ];
        for (bytes, expect) in table {
            assert_eq!(is_binary(bytes), expect, "{bytes:?}");
        }
    }
}
