//! The significant words of a text, and the overlap between two texts.

use std::collections::BTreeSet;

use adjutant_agent::search;

/// Words in nearly every English text, which carry no information.
const COMMON: [&str; 60] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "in", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "s", "she", "should", "so", "that", "the", "their",
    "them", "they", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "will", "with", "would", "you", "your", "user",
];
/// The largest number of words of a text that are used.
const MAX_WORDS: usize = 400;
/// The largest number of characters by which a word may be longer than its stem, to count as a form of it.
const MAX_ENDING: usize = 2;
/// The smallest number of characters of a stem.
const MIN_STEM: usize = 3;

/// The significant words of a text in lower case, each once.
pub(super) fn telling(text: &str) -> BTreeSet<String> {
    all(text)
        .filter(|word| !COMMON.contains(&word.as_str()))
        .collect()
}

/// Returns the words to search for: the significant ones, or the whole text if it has none.
pub(super) fn query(text: &str) -> String {
    let mut seen = BTreeSet::new();
    let words = all(text).filter(|word| !COMMON.contains(&word.as_str()));
    let words: Vec<String> = words.filter(|word| seen.insert(word.clone())).collect();
    if words.is_empty() {
        text.to_owned()
    } else {
        words.join(" ")
    }
}

fn all(text: &str) -> impl Iterator<Item = String> {
    search::words(text).take(MAX_WORDS)
}

/// Returns the part that two sets of words share, from 0 to 1: the share of the smaller set that the other one has.
pub(super) fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let (few, many) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    if few.is_empty() {
        return 0.0;
    }
    let shared = few
        .iter()
        .filter(|word| many.contains(*word) || many.iter().any(|it| are_forms(word, it)))
        .count();
    shared as f64 / few.len() as f64
}

/// True if one word is the other with a short ending.
fn are_forms(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    long.strip_prefix(short)
        .is_some_and(|ending| ending.chars().count() <= MAX_ENDING)
        && short.chars().nth(MIN_STEM - 1).is_some()
}

/// A text without what does not make it another fact: case, space, and the full stop.
pub(super) fn same(text: &str) -> String {
    let folded: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    folded
        .join(" ")
        .trim_end_matches(['.', '!', ' '])
        .to_owned()
}

/// A text on one line of at most `max` bytes.
pub(super) fn line(text: &str, max: usize) -> String {
    let words: Vec<&str> = text
        .split(|it: char| it.is_whitespace() || it.is_control())
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match cut(&line, max) {
        whole if whole.len() == line.len() => line,
        part => format!("{part}…"),
    }
}

/// The beginning of a text, of at most `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expect: f64) {
        assert_eq!(
            overlap(&telling(one), &telling(other)),
            expect,
            "{one} / {other}"
        );
    }

    #[test]
    fn overlap_is_the_share_of_the_smaller_set_when_forms_count_as_equal() {
        check(
            "What do I feed my dogs?",
            "The user has a dog named Rex.",
            0.5,
        );
        check(
            "dog",
            "A very long text about one dog, two cats, and what they had.",
            1.0,
        );
        check("the weather", "tea", 0.0);
        check("", "tea", 0.0);
        check("日本に住んでいます", "日本", 1.0);
        check("Müller wohnt", "MÜLLER wohnte in Bern", 1.0);
    }

    #[test]
    fn query_keeps_the_text_when_no_word_tells_anything() {
        assert_eq!(query("Who are you?"), "Who are you?");
        assert_eq!(query("Who is Ada? Ada!"), "ada");
    }

    #[test]
    fn line_cannot_be_left_when_a_text_holds_breaks_and_many_bytes() {
        assert_eq!(line("a\n- [id:x]\u{0}b\r\n", 100), "a - [id:x] b");
        assert_eq!(line("ääää", 5), "ää…");
    }
}
