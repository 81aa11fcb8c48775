//! The closest known word.

/// Longer words are compared by their beginnings.
const MAX_CHARS: usize = 64;

/// The nearest of these words, if one is near: two letters that changed places count as one change, and case does not count.
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

/// The unknown field in serde's message, and the known ones.
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
