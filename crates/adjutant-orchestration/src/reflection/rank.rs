//! The ranking of reflections for a task: how well their words fit it, times how likely they are to help.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_agent::search;

use super::Reflection;
use crate::text;

/// Words in nearly every task, which carry no information.
const COMMON: [&str; 83] = [
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "did", "do", "does", "don", "each", "for", "from", "had", "has", "have", "he",
    "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "make", "me", "must",
    "my", "need", "no", "not", "of", "on", "or", "our", "please", "s", "she", "should", "so",
    "such", "t", "task", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "use", "was", "we", "were", "what", "when", "where", "which", "who", "will",
    "with", "would", "you", "your", "ve",
];
/// The largest number of bytes of a task that are used.
const MAX_QUERY_BYTES: usize = 8 * 1024;
/// The smallest number of significant words that a reflection must share with a task; all of them if the task has
/// fewer.
const MIN_SHARED: usize = 2;
/// The smallest share of the smaller set of significant words that both sets must have in common.
const MIN_OVERLAP: f64 = 0.15;

/// The significant words of a text, each once, in order.
pub(crate) fn telling(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = search::words(text).filter(|word| !COMMON.contains(&word.as_str()));
    words.filter(|word| seen.insert(word.clone())).collect()
}

/// The reflections that fit a task, best first; of equal ones the most helpful, then the newest.
///
/// The rank is the relevance (BM25 of the significant words, over the reflections that are not dropped) times
/// [`Reflection::helpfulness`]. The reflections must be sorted, newest first.
pub(super) fn best(task: &str, reflections: Vec<Reflection>, limit: usize) -> Vec<Reflection> {
    let wanted = telling(text::cut(task, MAX_QUERY_BYTES));
    let known: Vec<Reflection> = reflections
        .into_iter()
        .filter(|it| !it.is_dropped())
        .collect();
    let texts: Vec<String> = known.iter().map(search_text).collect();
    let fits = |at: usize| texts.get(at).is_some_and(|text| is_related(&wanted, text));
    let scored = search::best(&wanted.join(" "), texts.iter().enumerate(), usize::MAX);
    let scores: BTreeMap<usize, f64> = scored.into_iter().filter(|(at, _)| fits(*at)).collect();
    let ranked = known
        .into_iter()
        .enumerate()
        .filter_map(|(at, it)| Some((scores.get(&at)? * it.helpfulness(), it)));
    let mut ranked: Vec<(f64, Reflection)> = ranked.collect();
    // Stable: the newest one stays first.
    ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    ranked.into_iter().take(limit).map(|(_, it)| it).collect()
}

/// Returns the text that a reflection is found by.
fn search_text(it: &Reflection) -> String {
    let caveats = it.caveats.as_deref().unwrap_or_default();
    // The task counts twice: it is what another task is compared with.
    format!("{}\n{}\n{}\n{caveats}", it.task, it.task, it.summary)
}

/// True if a text shares more with the wanted words than chance explains.
fn is_related(wanted: &[String], text: &str) -> bool {
    let has: BTreeSet<String> = telling(text).into_iter().collect();
    let shared = wanted.iter().filter(|word| has.contains(*word)).count();
    let smaller = wanted.len().min(has.len());
    shared >= MIN_SHARED.min(wanted.len()).max(1) && shared as f64 >= MIN_OVERLAP * smaller as f64
}
