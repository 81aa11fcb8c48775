//! What a model is shown when its arguments are refused: every place, and what was received, both bounded.

use adjutant_llm::{Error, ToolName, Violation};

use super::Refusal;

/// How many violations are shown.
const MAX_SHOWN: usize = 20;
/// How many bytes of one problem are shown.
const MAX_PROBLEM: usize = 400;
/// How many bytes of the raw arguments are shown.
const MAX_RECEIVED: usize = 2_000;

impl Refusal {
    /// Arguments that do not fit the schema.
    pub(super) fn new(tool: &ToolName, violations: Vec<Violation>, raw: &str) -> Self {
        let message = head(tool) + &list(&violations) + &received(raw);
        Self { message, violations }
    }

    /// Arguments that are no JSON.
    pub(super) fn unreadable(tool: &ToolName, problem: &str, raw: &str) -> Self {
        Self { message: head(tool) + &line("", problem) + &received(raw), violations: Vec::new() }
    }

    /// A tool that no arguments can fit.
    pub(super) fn broken(tool: &ToolName, error: &Error) -> Self {
        let message = format!("tool {:?} cannot be called, its schema is broken: {error}", tool.as_str());
        Self { message, violations: Vec::new() }
    }
}

/// The first violations, a line for each.
pub(crate) fn list(violations: &[Violation]) -> String {
    let mut lines: String = violations.iter().take(MAX_SHOWN).map(|it| line(&it.path, &it.message)).collect();
    if let Some(more @ 1..) = violations.len().checked_sub(MAX_SHOWN) {
        lines.push_str(&format!("  - and {more} more\n"));
    }
    lines
}

fn head(tool: &ToolName) -> String {
    format!("invalid arguments for tool {:?}:\n", tool.as_str())
}

fn line(path: &str, problem: &str) -> String {
    let path = if path.is_empty() { "(root)" } else { path };
    format!("  - {}: {}\n", cut(path, MAX_PROBLEM), cut(problem, MAX_PROBLEM))
}

fn received(raw: &str) -> String {
    format!("received: {}", cut(raw, MAX_RECEIVED))
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(limit)];
    format!("{kept}… ({} bytes in all)", text.len())
}
