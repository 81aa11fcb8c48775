//! Merges the results of word search and vector search: order by reciprocal rank, score by similarity.

use std::{cmp::Ordering, collections::BTreeMap};

use adjutant_agent::memory::{Fact, FactId, ScoredFact};

use super::words;

/// The constant that lowers the weight of the first ranks.
///
/// Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion" (SIGIR 2009).
const RANK_CONSTANT: f64 = 60.0;

/// A fact that matches a query.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Remembered {
    /// The fact.
    pub fact: Fact,
    /// The similarity, from 0 to 1: the larger of two numbers. For vectors it is their cosine, with negative values
    /// as 0; for words it is the share of the significant words of the shorter text that the longer one contains.
    pub score: f64,
}

/// One fact on its way through the ranks.
struct Ranked {
    fact: Fact,
    rank: f64,
    score: f64,
}

/// The best facts of both searches that fit well enough, best first.
///
/// The order depends only on ranks, because scores of different stores are not comparable. A match
/// depends only on the score, because a rank has no information about it.
pub(super) fn fuse(
    query: &str,
    by_words: Vec<ScoredFact>,
    by_vector: Vec<ScoredFact>,
    limit: usize,
    min_score: f64,
) -> Vec<Remembered> {
    let query = words::telling(query);
    let mut ranked = BTreeMap::new();
    let near = by_vector.into_iter().filter(|found| found.score > 0.0);
    place(&mut ranked, near, |found| found.score.min(1.0));
    place(&mut ranked, by_words.into_iter(), |found| {
        words::overlap(&query, &words::telling(&found.fact.text))
    });
    let mut best: Vec<Ranked> = ranked
        .into_values()
        .filter(|it| it.score >= min_score)
        .collect();
    best.sort_by(|a, b| {
        falling(a.rank, b.rank)
            .then(falling(a.score, b.score))
            .then(a.fact.id.cmp(&b.fact.id))
    });
    best.into_iter()
        .take(limit)
        .map(|it| Remembered {
            fact: it.fact,
            score: it.score,
        })
        .collect()
}

fn place(
    ranked: &mut BTreeMap<FactId, Ranked>,
    found: impl Iterator<Item = ScoredFact>,
    score: impl Fn(&ScoredFact) -> f64,
) {
    for (at, found) in found.enumerate() {
        let (rank, score) = (1.0 / (RANK_CONSTANT + at as f64 + 1.0), score(&found));
        let entry = ranked.entry(found.fact.id.clone());
        let known = entry.or_insert_with(|| Ranked {
            fact: found.fact,
            rank: 0.0,
            score: 0.0,
        });
        known.rank += rank;
        known.score = known.score.max(score);
    }
}

fn falling(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use adjutant_agent::memory::Metadata;

    fn found(list: &[(&str, f64)]) -> Vec<ScoredFact> {
        let fact = |text: &str| Fact::new(text.into(), text, Metadata::new(), 0);
        list.iter()
            .map(|(text, score)| ScoredFact {
                fact: fact(text),
                score: *score,
            })
            .collect()
    }

    fn shown(best: Vec<Remembered>) -> Vec<(String, f64)> {
        best.into_iter()
            .map(|it| (it.fact.text.to_string(), it.score))
            .collect()
    }

    #[test]
    fn fuse_puts_first_what_both_found_when_neither_had_it_first() {
        let (by_words, by_vector) = (
            found(&[("red tea", 9.0), ("tea pot", 8.0)]),
            found(&[("cup", 0.9), ("tea pot", 0.4)]),
        );
        let expect = [
            ("tea pot".to_owned(), 1.0),
            ("red tea".to_owned(), 1.0),
            ("cup".to_owned(), 0.9),
        ];
        let best = shown(fuse("the tea", by_words, by_vector, 5, 0.0));
        assert_eq!(best[0], expect[0]);
        assert_eq!(best.len(), 3);
    }

    #[test]
    fn fuse_leaves_out_what_does_not_fit_when_its_rank_is_good() {
        let by_vector = found(&[
            ("near", 0.8),
            ("odd", f64::NAN),
            ("far", 0.1),
            ("away", -0.5),
        ]);
        let by_words = found(&[("tea and milk", 0.001)]);
        let best = shown(fuse("green tea leaves", by_words, by_vector, 5, 0.3));
        assert_eq!(
            best,
            [("near".to_owned(), 0.8), ("tea and milk".to_owned(), 0.5)]
        );
    }
}
