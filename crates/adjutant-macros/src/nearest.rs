//! The search for the known word that was probably meant.

/// The nearest of the known words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|it| (strsim::osa_distance(word, it), *it)).min()?;
    (near.0 <= 1 + word.len() / 3).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_answers_when_a_word_is_near() {
        let known = ["name", "title", "timeout_secs"];
        assert_eq!(nearest("tittle", &known), Some("title"));
        assert_eq!(nearest("nmae", &["image", "name"]), Some("name"));
        assert_eq!(nearest("timeout", &known), None);
        assert_eq!(nearest("timeout_sec", &known), Some("timeout_secs"));
        assert_eq!(nearest("colour", &known), None);
    }
}
