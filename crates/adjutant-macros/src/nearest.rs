//! The search for the known word that was probably meant.

/// The nearest of the known words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|it| (strsim::osa_distance(word, it), *it))
        .min()?;
    (near.0 <= 1 + word.len() / 3).then_some(near.1)
}
