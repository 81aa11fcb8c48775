//! Which known word was probably meant.

/// The nearest of the known words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|it| (distance(word, it), *it)).min()?;
    (near.0 <= 1 + word.len() / 3).then_some(near.1)
}

/// How many letters must be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.chars().enumerate() {
        let mut next = vec![n + 1];
        for ((y, replaced), removed) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let inserted = next.last().map_or(0, |it| it + 1);
            next.push(inserted.min(removed + 1).min(replaced + usize::from(x != *y)));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_answers_when_a_word_is_near() {
        let known = ["name", "title", "timeout_secs"];
        assert_eq!(nearest("tittle", &known), Some("title"));
        assert_eq!(nearest("timeout", &known), None);
        assert_eq!(nearest("timeout_sec", &known), Some("timeout_secs"));
        assert_eq!(nearest("colour", &known), None);
    }
}
