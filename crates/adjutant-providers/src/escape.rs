//! Texts of messages as JSON strings, byte for byte as serde_json writes them.
//!
//! `serde_json` examines each byte separately. This formatter finds runs without escapes eight bytes at a time and
//! copies them whole.

use std::io::{self, Write};

use serde::Serializer;
use serde_json::ser::Formatter;

/// Compact JSON in which byte arrays are texts: the one hook through which serde_json leaves a string to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextFormatter;

/// Writes a text; for members of what [`TextFormatter`] writes, by `serialize_with`.
pub(crate) fn text<S: Serializer>(
    text: &impl AsRef<str>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(text.as_ref().as_bytes())
}

/// Writes a text if there is one.
pub(crate) fn some<S: Serializer>(
    it: &Option<impl AsRef<str>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match it {
        Some(it) => text(it, serializer),
        None => serializer.serialize_none(),
    }
}

impl Formatter for TextFormatter {
    fn write_byte_array<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        mut text: &[u8],
    ) -> io::Result<()> {
        out.write_all(b"\"")?;
        loop {
            let (plain, odd) = text.split_at(plain(text));
            out.write_all(plain)?;
            let Some((odd, rest)) = odd.split_first() else {
                break;
            };
            match odd {
                b'\n' => out.write_all(b"\\n")?,
                b'\t' => out.write_all(b"\\t")?,
                b'\r' => out.write_all(b"\\r")?,
                b'\x08' => out.write_all(b"\\b")?,
                b'\x0c' => out.write_all(b"\\f")?,
                b'"' | b'\\' => out.write_all(&[b'\\', *odd])?,
                _ => write!(out, "\\u{odd:04x}")?,
            }
            text = rest;
        }
        out.write_all(b"\"")
    }
}

/// Counts the bytes before the first byte that must be escaped.
fn plain(text: &[u8]) -> usize {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let (words, rest) = text.as_chunks::<8>();
    for (word, at) in words.iter().zip((0..).step_by(8)) {
        let word = u64::from_le_bytes(*word);
        // If a byte is smaller than its subtrahend, its high bit is set. The bit of a later byte may be set only
        // because of a borrow, so only the first one counts.
        let less = |word: u64, than: u8| word.wrapping_sub(each(than)) & !word;
        let odd = less(word, b' ') | less(word ^ each(b'"'), 1) | less(word ^ each(b'\\'), 1);
        let odd = odd & each(0x80);
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
    }
    let is_odd = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    text.len() - rest.len() + rest.iter().position(is_odd).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;

    use crate::segments::write;

    #[derive(Serialize)]
    struct Sample<'a>(#[serde(serialize_with = "super::text")] &'a str);

    proptest! {
        #[test]
        fn text_is_written_as_serde_json_writes_it(
            text in r#"([ -~]{0,20}[\x00-\x1f"\\\x7f]{0,2}|\PC{0,8}){0,24}"#,
            odd in 0_u8..0x80,
        ) {
            let (text, mut out) = (format!("{text}{}", char::from(odd)), Vec::new());
            write(&mut out, &Sample(&text));
            prop_assert_eq!(Some(out), serde_json::to_vec(&text).ok());
        }
    }
}
