//! The words that a text is found by: its runs of letters and digits, in small letters.
//!
//! The server's parser treats paths, hosts and numbers as single words and depends on the locale, so it is not used.

use std::{collections::BTreeMap, fmt::Write as _};

/// The largest number of significant bytes of a word.
const MAX_WORD: usize = 200;

/// The most words of a query that count.
const MAX_ASKED: usize = 32;

/// The most places of one word that count.
const MAX_PLACES: usize = 64;

/// The limit for the searchable part of a text, in bytes of its index entry: the server stores up to 1 MiB.
const MAX_VECTOR: usize = 512 * 1024;

/// The highest number of a place that the server knows.
const LAST_PLACE: usize = 16_383;

/// The scores of the words of a query in a table, for `$3` words: rarer ones weigh more.
///
/// It is put between the condition that narrows the rows and the query that joins `weights`.
macro_rules! weights {
    ($table:literal, $condition:literal) => {
        concat!(
            "with asked as (select quote_literal(word)::tsquery as query from unnest($1::text[]) as word), ",
            "whole as (select count(*)::float8 as rows from ",
            $table,
            " as one where ",
            $condition,
            "), ",
            "weights as (select query, ln(1 + (rows - found + 0.5) / (found + 0.5)) as weight from (",
            "select query, (select count(*)::float8 from ",
            $table,
            " as one where ",
            $condition,
            " and one.words @@ query) as found from asked) as counted, whole) ",
        )
    };
}
pub(super) use weights;

/// Returns the text that the server stores to find a text by: the words with their places.
pub(super) fn vector(text: &str) -> String {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut size = 0;
    for (place, word) in (1..).zip(words(text)) {
        let length = word.len();
        let known = places.entry(word).or_default();
        size += if known.is_empty() { length + 8 } else { 2 };
        if size > MAX_VECTOR {
            break;
        }
        if known.len() < MAX_PLACES {
            known.push(usize::min(place, LAST_PLACE));
        }
    }
    let mut vector = String::new();
    for (word, places) in &places {
        let mut separator = ':';
        let _ = write!(vector, "'{word}'");
        for place in places {
            let _ = write!(vector, "{separator}{place}");
            separator = ',';
        }
        vector.push(' ');
    }
    vector
}

/// The different words of a query.
pub(super) fn query_words(query: &str) -> Vec<String> {
    let mut asked: Vec<String> = Vec::new();
    for word in words(query) {
        if asked.len() == MAX_ASKED {
            break;
        }
        if !asked.contains(&word) {
            asked.push(word);
        }
    }
    asked
}

/// Neither quotes nor backslashes are in a word.
fn words(text: &str) -> impl Iterator<Item = String> {
    let runs = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|run| !run.is_empty());
    runs.map(|run| {
        let mut word = run.to_lowercase();
        word.truncate(word.floor_char_boundary(MAX_WORD));
        word
    })
}
