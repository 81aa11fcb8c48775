//! Finds the most similar known word.

/// Longer words are compared by their first characters.
const MAX_CHARS: usize = 64;

/// Returns the most similar of these words, if one is similar enough: a transposition of two letters counts as one
/// change, and case is ignored.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let far = (length * 2 / 3).min(length.div_ceil(3).max(2));
    let start = |text: &str| {
        text.chars()
            .take(MAX_CHARS)
            .collect::<String>()
            .to_ascii_lowercase()
    };
    let word = start(word);
    let ranked = known
        .into_iter()
        .map(|other| (strsim::osa_distance(&word, &start(other)), other));
    ranked
        .filter(|(steps, _)| *steps <= far)
        .min()
        .map(|(_, other)| other)
}

/// Returns a hint with the most similar word, or else with all of them.
pub(crate) fn hint(word: &str, known: &[&str]) -> Option<String> {
    match nearest(word, known.iter().copied()) {
        Some(near) => Some(format!("the nearest is `{near}`")),
        None if known.is_empty() => None,
        None => Some(format!("there is {}", list(known))),
    }
}

/// Formats a list of at most twelve words.
pub(crate) fn list(words: &[&str]) -> String {
    let shown: Vec<String> = words
        .iter()
        .take(12)
        .map(|word| format!("`{word}`"))
        .collect();
    let more = if words.len() > shown.len() {
        ", …"
    } else {
        ""
    };
    shown.join(", ") + more
}

/// Returns the unknown field in serde's message, and the known ones.
pub(crate) fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let (field, rest) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known = rest
        .trim_start_matches(", expected ")
        .trim_start_matches("one of ");
    let known = known
        .split([',', ' '])
        .map(|word| word.trim_matches('`'))
        .filter(|word| !word.is_empty());
    Some((field, known.filter(|word| *word != "or").collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_the_word_with_the_fewest_changes_when_one_is_near() {
        let known = [
            "instructions",
            "include",
            "name",
            "toolboxes",
            "tools",
            "two",
        ];
        let cases = [
            ("instrctions", Some("instructions")),
            ("tool", Some("tools")),
            ("tow", Some("two")),
            ("nmae", Some("name")),
        ];
        for (word, expect) in
            cases
                .into_iter()
                .chain([("Include", Some("include")), ("zzz", None), ("", None)])
        {
            assert_eq!(nearest(word, known), expect, "{word}");
        }
    }
}
