//! Text search without an index: splits texts into words, and ranks texts for a query. For collections that are small
//! enough to read.

use std::collections::HashMap;

/// The weight of a repeated word; the usual value.
const K1: f64 = 1.2;
/// The weight of the length of a text; the usual value.
const B: f64 = 0.75;

/// The words of a text, in small letters: runs of letters and digits, and each sign of a script without spaces.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(is_of_word)?;
        let first = rest[start..].chars().next()?;
        let end = if stands_alone(first) {
            start + first.len_utf8()
        } else {
            let goes_on = |letter: char| is_of_word(letter) && !stands_alone(letter);
            rest[start..]
                .find(|letter| !goes_on(letter))
                .map_or(rest.len(), |end| start + end)
        };
        let word = rest[start..end].to_lowercase();
        rest = &rest[end..];
        Some(word)
    })
}

/// The texts that have one of the words of a query, best first (BM25), and of equal ones the first.
///
/// Scores are above 0, and can be compared within one search only.
pub fn best<T>(
    query: &str,
    texts: impl IntoIterator<Item = (T, impl AsRef<str>)>,
    limit: usize,
) -> Vec<(T, f64)> {
    let wanted: HashMap<String, usize> = words(query).zip(0..).collect();
    let mut lengths = 0;
    let mut holders: HashMap<usize, u32> = HashMap::new();
    let mut counted = 0;
    let mut fitting = Vec::new();
    for (item, text) in texts {
        let (mut length, mut times) = (0, HashMap::<usize, u32>::new());
        for word in words(text.as_ref()) {
            length += 1;
            if let Some(word) = wanted.get(&word) {
                *times.entry(*word).or_default() += 1;
            }
        }
        counted += 1;
        lengths += length;
        times
            .keys()
            .for_each(|word| *holders.entry(*word).or_default() += 1);
        if !times.is_empty() {
            fitting.push((item, length, times));
        }
    }
    let mean = f64::from(lengths) / f64::from(counted.max(1));
    let weight = |word: &usize| {
        let holders = f64::from(holders.get(word).copied().unwrap_or_default());
        (1.0 + (f64::from(counted) - holders + 0.5) / (holders + 0.5)).ln()
    };
    let score = |length: u32, times: &HashMap<usize, u32>| -> f64 {
        let norm = K1 * (1.0 - B + B * f64::from(length) / mean);
        // In the order of the words: sums of equal texts are equal to the last bit.
        let mut times: Vec<_> = times.iter().collect();
        times.sort_unstable();
        times
            .iter()
            .map(|(word, times)| {
                weight(word) * f64::from(**times) * (K1 + 1.0) / (f64::from(**times) + norm)
            })
            .sum()
    };
    let mut scored: Vec<(T, f64)> = fitting
        .into_iter()
        .map(|(item, length, times)| (item, score(length, &times)))
        .collect();
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scored.truncate(limit);
    scored
}

/// Letters, digits, and the marks that stand above and below letters.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric()
        || matches!(letter, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Signs of Chinese and Japanese, which are written without spaces.
fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::{best, words};

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        assert_eq!(words(text).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check("", &[]);
        check(" -- \0 ", &[]);
        check(
            "Hello, World! x_2 it's",
            &["hello", "world", "x", "2", "it", "s"],
        );
        check("ÄRGER café ПРИВЕТ", &["ärger", "café", "привет"]);
        check("e\u{301}a", &["e\u{301}a"]);
        check("日本go語", &["日", "本", "go", "語"]);
    }

    #[test]
    fn best_puts_rare_words_and_short_texts_first() {
        let texts = [
            ("a", "tea tea"),
            ("b", "tea with milk"),
            ("c", "milk"),
            ("d", "tea"),
            ("e", "nothing"),
        ];
        let found = |query, limit| {
            best(query, texts, limit)
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("TEA", 9), ["a", "d", "b"]);
        assert_eq!(found("milk tea", 9), ["b", "c", "a", "d"]);
        assert_eq!(found("milk tea", 1), ["b"]);
        assert_eq!(found("wine, please", 9), [""; 0]);
        assert!(best("tea", texts, 9).iter().all(|(_, score)| *score > 0.0));
    }
}
