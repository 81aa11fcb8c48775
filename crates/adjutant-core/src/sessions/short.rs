//! Texts in one line, cut where they get long.

/// The text in one line, of at most `most` characters, with a mark if it was cut.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut words = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    let mut line: String = words.by_ref().take(most).collect();
    if words.next().is_some() {
        line.push('…');
    }
    line
}

/// Returns the text with at most this many characters, and the number of omitted ones.
pub(super) fn text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let (head, rest) = text.split_at(at);
            format!("{head}… ({} more bytes)", rest.len())
        }
    }
}

/// The text in one line, from a little before this byte on.
pub(super) fn around(text: &str, at: usize, most: usize) -> String {
    let wanted = at.saturating_sub(most / 3);
    let from = (0..=wanted)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let mark = if from > 0 { "…" } else { "" };
    format!("{mark}{}", line(&text[from..], most))
}
