//! The text that lists the errors of a value for a model: every place, bounded.

use adjutant_llm::Violation;

/// The maximum number of violations in a message.
const MAX_SHOWN: usize = 20;
/// The maximum number of bytes of one problem in a message.
const MAX_PROBLEM: usize = 400;

/// The first violations, a line for each.
pub(crate) fn list(violations: &[Violation]) -> String {
    let mut lines: String = violations
        .iter()
        .take(MAX_SHOWN)
        .map(|it| line(&it.path, &it.message))
        .collect();
    if let Some(more @ 1..) = violations.len().checked_sub(MAX_SHOWN) {
        lines.push_str(&format!("  - and {more} more\n"));
    }
    lines
}

/// Returns the problem at a place, on a line.
pub(crate) fn line(path: &str, problem: &str) -> String {
    let path = if path.is_empty() { "(root)" } else { path };
    format!(
        "  - {}: {}\n",
        cut(path, MAX_PROBLEM),
        cut(problem, MAX_PROBLEM)
    )
}

/// Returns the beginning of a text, with a note if it was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(limit)];
    format!("{kept}… ({} bytes in all)", text.len())
}
