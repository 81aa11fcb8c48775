//! Halves of surrogate pairs that stand alone in JSON: they are no Unicode, and the parser refuses them. Pure.
//!
//! Servers that cut texts by UTF-16 units split an emoji between two deltas, and models write half of one. Nothing here
//! needs to run before the parser has refused a text.
//!
//! Source: elizaOS/eliza 30904, 2026-09, and elie222/rakazo 416, 2026-08.

use serde::de::DeserializeOwned;

/// The number of bytes of an escape such as `\ud83d`.
pub const ESCAPE: usize = 6;
/// The escape that replaces a lone half.
pub const REPLACEMENT: &str = "\\ufffd";

/// A lone half in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Half {
    /// The offset of its escape.
    pub at: usize,
    /// True for the first half of a pair.
    pub is_high: bool,
    /// True if it is a high half at the end of its string, or a low half at the beginning.
    pub is_outer: bool,
}

/// Reads JSON; lone halves in it are replaced.
///
/// # Errors
/// If it cannot be read all the same.
pub fn read<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| match mend(json) {
        Some(json) => serde_json::from_str(&json),
        None => Err(error),
    })
}

/// Returns the JSON text with its lone halves replaced, or `None` if it has none.
#[cold]
pub fn mend(json: &str) -> Option<String> {
    let halves = lone(json);
    (!halves.is_empty()).then(|| replace(json, &halves))
}

/// Returns the JSON text with these halves replaced by U+FFFD; its length does not change.
pub fn replace(json: &str, halves: &[Half]) -> String {
    let mut text = json.to_owned();
    for half in halves {
        text.replace_range(half.at..half.at + ESCAPE, REPLACEMENT);
    }
    text
}

/// Returns the lone halves of a JSON text, in order.
pub fn lone(json: &str) -> Vec<Half> {
    let (bytes, mut halves) = (json.as_bytes(), Vec::new());
    let unit = |at: usize| {
        let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut at, mut last_end) = (0, 0);
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        let (first, second) = (unit(at), unit(at + ESCAPE));
        let length = match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(half @ 0xd800..=0xdfff), _) => {
                let is_high = half < 0xdc00;
                let is_outer = if is_high {
                    bytes.get(at + ESCAPE) == Some(&b'"')
                } else {
                    at > last_end && bytes[at - 1] == b'"'
                };
                halves.push(Half {
                    at,
                    is_high,
                    is_outer,
                });
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            (None, _) => 2,
        };
        at += length;
        last_end = at;
        if at >= bytes.len() {
            break;
        }
    }
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_halves_are_replaced_when_json_holds_them() {
        let table = [
            (r#""a\ud83d\ude00b""#, None),
            (r#""\\ud83d""#, None),
            (r#""\u00e9\n\u12""#, None),
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\uDE00a""#, Some(r#""\ufffda""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#""\\\ud83dx""#, Some(r#""\\\ufffdx""#)),
            (r#"{"\ud83d":"\"\ude00"}"#, Some(r#"{"\ufffd":"\"\ufffd"}"#)),
        ];
        for (json, expect) in table {
            assert_eq!(mend(json).as_deref(), expect, "{json}");
            let is_json = serde_json::from_str::<serde_json::Value>(json).is_ok();
            assert_eq!(
                read::<serde_json::Value>(json).is_ok(),
                is_json || expect.is_some()
            );
        }
        for cut in 0..20 {
            mend(&r#""\\ud83d\u\ud8\ude00"é"#.chars().take(cut).collect::<String>());
        }
    }

    #[test]
    fn half_is_outer_when_it_touches_the_end_of_its_string() {
        let outer = |json| lone(json).iter().map(|it| it.is_outer).collect::<Vec<_>>();
        assert_eq!(outer(r#"{"a":"x\ud83d","b":"\ude00x"}"#), [true, true]);
        assert_eq!(outer(r#"{"a":"x\ud83dx","b":"x\ude00"}"#), [false, false]);
        assert_eq!(outer(r#"{"a":"\"\ude00"}"#), [false]);
    }
}
