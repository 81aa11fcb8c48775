//! The weight of a text by its scripts, in quarters of a token.

/// The number of bytes that are processed together; a run of ASCII of this length costs one comparison.
const RUN: usize = 16;
/// The weight of a character by its first byte; continuation bytes weigh nothing.
const WEIGHTS: [u8; 256] = weights();

/// Returns the weight of a text, in quarters of a token.
pub(super) fn quarters(text: &str) -> u64 {
    let bytes = text.as_bytes();
    if bytes.is_ascii() {
        return bytes.len() as u64;
    }
    let mut sum = 0;
    for (at, run) in bytes.chunks(RUN).enumerate() {
        sum += if run.is_ascii() {
            run.len() as u64
        } else {
            weigh_mixed(bytes, at * RUN, run)
        };
    }
    sum
}

/// Returns the weight of the characters that start in `run`, which is located in `bytes` at `start`.
fn weigh_mixed(bytes: &[u8], start: usize, run: &[u8]) -> u64 {
    let weigh = |(at, byte): (usize, &u8)| match byte {
        0xE1 | 0xE2 | 0xEF => u64::from(by_second(
            *byte,
            bytes.get(start + at + 1).copied().unwrap_or_default(),
        )),
        byte => u64::from(WEIGHTS[usize::from(*byte)]),
    };
    run.iter().enumerate().map(weigh).sum()
}

/// Returns the weight of a character whose first byte is shared by several scripts.
fn by_second(first: u8, second: u8) -> u8 {
    match (first, second) {
        // Latin letters with two diacritics, as Vietnamese has them: U+1E00 to U+1EFF.
        (0xE1, 0xB8..=0xBB) => 1,
        // Pictures among the symbols, U+2600 to U+27BF; radicals of Chinese characters, U+2E80 to U+2FFF.
        (0xE2, 0x98..=0x9E) => 8,
        (0xE2, 0xBA..=0xBF) => 4,
        // Variation selectors change the character before them: U+FE00 to U+FE3F.
        (0xEF, 0xB8) => 1,
        (0xEF, _) => 4,
        _ => 2,
    }
}

const fn weights() -> [u8; 256] {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        weights[byte] = match byte {
            0x00..=0x7F => 1,
            // Latin with diacritics, and combining diacritics: U+0080 to U+027F, U+0300 to U+036F.
            0xC2..=0xC9 | 0xCC..=0xCD => 1,
            // The scripts of two bytes and the first of three: Greek, Cyrillic, Hebrew, Arabic, Indic, Thai.
            0xC0..=0xE0 => 2,
            // Kana, Chinese characters, Hangul, and what few texts hold: U+3000 to U+FFFF.
            0xE3..=0xEF => 4,
            // Emoji and rare Chinese characters: from U+10000 on.
            0xF0..=0xF7 => 8,
            _ => 0,
        };
        byte += 1;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: u64) {
        assert_eq!(quarters(text), expect, "{text}");
    }

    #[test]
    fn quarters_weigh_each_script_apart_when_mixed() {
        check("", 0);
        check("abcd", 4);
        check("déjà vu", 7);
        check("cà phê sữa đá", 13);
        check("日本", 8);
        check("ab日本", 10);
        check("ひらがな カタカナ", 33);
        check("안녕", 8);
        check("привет", 12);
        check("שלום", 8);
        check("नमस्ते", 12);
        check("สวัสดี", 12);
        check("👍", 8);
        check("☀\u{fe0f}", 9);
        check("“a”", 5);
    }

    #[test]
    fn quarters_are_the_same_when_a_character_crosses_a_run() {
        for shift in 0..4 {
            let text = format!("{}日本語{}", "a".repeat(RUN - shift), "b".repeat(RUN));
            assert_eq!(quarters(&text), (RUN - shift + RUN + 12) as u64);
        }
    }
}
