//! Cuts texts between characters, never within one.

/// The first characters of a text.
pub(super) fn clip(text: &str, max_chars: usize) -> &str {
    text.char_indices()
        .nth(max_chars)
        .map_or(text, |(end, _)| &text[..end])
}

/// Returns the first characters of a text in one line, with an ellipsis if it was cut.
pub(super) fn preview(text: &str, max_chars: usize) -> String {
    // White space is bounded too, so that a long text is not read to its end.
    let head = clip(text, max_chars.saturating_mul(4).saturating_add(4));
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = clip(&line, max_chars);
    let whole = shown.len() == line.len() && head.len() == text.len();
    if whole {
        line
    } else {
        format!("{}…", shown.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_keeps_characters_whole_when_it_cuts() {
        assert_eq!(clip("aé日🦀b", 3), "aé日");
        assert_eq!(preview("aé日🦀b", 4), "aé日🦀…");
        assert_eq!(preview("a\n\n b", 3), "a b");
        assert_eq!(preview("  ", 3), "");
        assert_eq!(preview("ab", 0), "…");
    }
}
