//! The text for a model whose arguments are refused: every path, and the received arguments, both bounded.

use adjutant_llm::{Error, ToolName, Violation};

use super::Refusal;
use crate::violations::{cut, line, list};

/// The maximum number of bytes of the raw arguments in the text.
const MAX_RECEIVED: usize = 2_000;

impl Refusal {
    /// Arguments that do not fit the schema.
    pub(super) fn new(tool: &ToolName, violations: Vec<Violation>, raw: &str) -> Self {
        let message = head(tool) + &list(&violations) + &format_received(raw);
        Self {
            message,
            violations,
        }
    }

    /// Arguments that are no JSON.
    pub(super) fn unreadable(tool: &ToolName, problem: &str, raw: &str) -> Self {
        Self {
            message: head(tool) + &line("", problem) + &format_received(raw),
            violations: Vec::new(),
        }
    }

    /// A tool that no arguments can fit.
    pub(super) fn broken(tool: &ToolName, error: &Error) -> Self {
        let message = format!(
            "tool {:?} cannot be called, its schema is broken: {error}",
            tool.as_str()
        );
        Self {
            message,
            violations: Vec::new(),
        }
    }
}

fn head(tool: &ToolName) -> String {
    format!("invalid arguments for tool {:?}:\n", tool.as_str())
}

fn format_received(raw: &str) -> String {
    format!("received: {}", cut(raw, MAX_RECEIVED))
}
