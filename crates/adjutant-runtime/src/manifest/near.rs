//! The word that someone may have meant.

/// Longer words are compared by their beginnings.
const MAX_CHARS: usize = 64;

/// The nearest of these words, if one is near.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let far = (length * 2 / 3).min(length.div_ceil(3).max(2));
    let ranked = known.into_iter().map(|other| (steps(word, other), other));
    ranked.filter(|(steps, _)| *steps <= far).min().map(|(_, other)| other)
}

/// A hint that names the nearest word, or else all of them.
pub(crate) fn hint(word: &str, known: &[&str]) -> Option<String> {
    match nearest(word, known.iter().copied()) {
        Some(near) => Some(format!("the nearest is `{near}`")),
        None if known.is_empty() => None,
        None => Some(format!("there is {}", list(known))),
    }
}

/// Words in a row, a dozen at most.
pub(crate) fn list(words: &[&str]) -> String {
    let shown: Vec<String> = words.iter().take(12).map(|word| format!("`{word}`")).collect();
    let more = if words.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

/// The field of serde's message about one that there is not, and those that there are.
pub(crate) fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (field, rest) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known = rest.trim_start_matches(", expected ").trim_start_matches("one of ");
    let known = known.split([',', ' ']).map(|word| word.trim_matches('`')).filter(|word| !word.is_empty());
    Some((field, known.filter(|word| *word != "or").collect()))
}

/// How many characters must be added, removed or replaced to make one of the other; case does not count.
fn steps(one: &str, other: &str) -> usize {
    let chars = |text: &str| text.chars().take(MAX_CHARS).map(|c| c.to_ascii_lowercase()).collect::<Vec<_>>();
    let (one, other) = (chars(one), chars(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, from) in one.iter().enumerate() {
        let mut corner = at;
        let mut left = at + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&other) {
            let replaced = corner + usize::from(from != to);
            corner = *cell;
            left = replaced.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_the_word_with_the_fewest_changes_when_one_is_near() {
        let known = ["instructions", "include", "toolboxes", "tools", "two"];
        let cases = [("instrctions", Some("instructions")), ("tool", Some("tools")), ("tow", Some("two"))];
        for (word, expect) in cases.into_iter().chain([("Include", Some("include")), ("zzz", None), ("", None)]) {
            assert_eq!(nearest(word, known), expect, "{word}");
        }
    }

    #[test]
    fn steps_are_counted_when_words_differ() {
        assert_eq!([steps("", "abc"), steps("kitten", "sitting"), steps("ABC", "abd"), steps("abc", "")], [3, 3, 1, 3]);
    }
}
