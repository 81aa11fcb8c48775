//! A query in words as FTS5 reads it: each word quoted, so that nothing in it is syntax.

use std::fmt::Write as _;

/// The largest number of words of a query that count.
const MAX_WORDS: usize = 64;

/// Returns a query for the texts of one owner that have one of the words; `None` if there are no words.
pub(super) fn one_of(query: &str, owner: i64) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    for word in query
        .split(|letter| !is_of_word(letter))
        .filter(|word| !word.is_empty())
    {
        if found.len() < MAX_WORDS && !found.contains(&word) {
            found.push(word);
        }
    }
    let first = found.first()?;
    let mut sql = format!("owner:\"{}\" AND text:(\"{first}\"", owner_word(owner));
    for word in found.iter().skip(1) {
        // Writing to a text does not fail.
        let _ = write!(sql, " OR \"{word}\"");
    }
    sql.push(')');
    Some(sql)
}

/// The word that represents the owner in the index, which limits a search to it.
pub(super) fn owner_word(owner: i64) -> String {
    format!("o{owner}")
}

/// Turns the rank that FTS5 gives, where lower is better, into a score above 0.
pub(super) fn score(rank: f64) -> f64 {
    (-rank).max(f64::MIN_POSITIVE)
}

/// A letter, a digit, or an accent that is a separate character.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&letter)
}
