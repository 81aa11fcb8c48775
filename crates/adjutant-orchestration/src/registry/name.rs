//! Names of instances: the name of the entry, a word of the task, a number.

/// The largest number of characters in the word of the task.
const MAX_SLUG_CHARS: usize = 12;
/// The smallest number of characters of a significant word.
const MIN_SLUG_CHARS: usize = 3;
/// The word of a task that has none.
const NO_SLUG: &str = "task";

/// Words that carry no information about a task.
const STOP_WORDS: [&str; 32] = [
    "about", "all", "and", "any", "are", "can", "could", "for", "from", "has", "have", "her",
    "his", "how", "into", "its", "just", "not", "our", "out", "please", "should", "some", "that",
    "the", "their", "then", "this", "what", "with", "you", "your",
];

/// The name of an instance.
pub(super) fn instance(config: &str, task: &str, worker: &str, number: u64) -> String {
    let slug = slug(task);
    if worker.is_empty() {
        format!("{config}-{slug}-{number}")
    } else {
        format!("{config}-{slug}-{worker}-{number}")
    }
}

/// A text as one word of a name.
pub(super) fn word(text: &str) -> String {
    plain(text).chars().take(MAX_SLUG_CHARS).collect()
}

/// The number at the end of an instance's name.
pub(super) fn number(instance: &str) -> Option<u64> {
    instance.rsplit_once('-')?.1.parse().ok()
}

/// The first significant word of a task.
fn slug(task: &str) -> String {
    let words = task.split_whitespace().map(plain);
    let says_something = |word: &String| {
        word.chars().count() >= MIN_SLUG_CHARS && !STOP_WORDS.contains(&word.as_str())
    };
    let word = words
        .into_iter()
        .find(says_something)
        .unwrap_or_else(|| NO_SLUG.to_owned());
    word.chars().take(MAX_SLUG_CHARS).collect()
}

/// A word in lower case, without marks: a name is part of paths.
fn plain(word: &str) -> String {
    let marked: String = word
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .collect();
    marked.trim_matches(['-', '_']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{number, slug};

    #[track_caller]
    fn check(task: &str, expected: &str) {
        assert_eq!(slug(task), expected, "{task:?}");
    }

    #[test]
    fn slug_is_the_first_word_that_says_something() {
        check("Refactor the parser", "refactor");
        check("Please do not go: REVIEW it", "review");
        check("of it, to be", "task");
        check("", "task");
        check("the and for", "task");
    }

    #[test]
    fn slug_is_cut_when_its_word_is_long() {
        check("internationalisation of dates", "internationa");
        check("ÜBERSETZUNGSFEHLER finden", "übersetzungs");
    }

    #[test]
    fn slug_has_no_marks_when_its_word_has_some() {
        check("`src/main.rs` is wrong", "srcmainrs");
        check("--dry-run it", "dry-run");
        check("</task> now", "task");
    }

    #[test]
    fn number_is_what_stands_last() {
        assert_eq!(
            (number("coder-fix-12"), number("coder-fix"), number("")),
            (Some(12), None, None)
        );
    }
}
