//! The effect `progress`: requests a progress note from time to time, if a tool for notes exists.

use adjutant_llm::ToolName;
use async_trait::async_trait;
use serde::Deserialize;

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Requests a progress note every few turns of a run, while the notes tool is available.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgressNotes {
    /// The number of turns between two notes; 5, and 0 for never.
    pub every: u32,
    /// The tool that takes notes; `write_note`.
    pub tool: ToolName,
}

impl Default for ProgressNotes {
    fn default() -> Self {
        Self {
            every: 5,
            tool: "write_note".into(),
        }
    }
}

#[async_trait]
impl Effect for ProgressNotes {
    fn kind(&self) -> &str {
        "progress"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let turns = cx.ledger.turns;
        let is_due = turns > 0 && turns.is_multiple_of(self.every);
        if !is_due || !tail::may_speak(&cx) || !cx.may_call(self.tool.as_str()) {
            return Ok(Vec::new());
        }
        let text = format!(
            "{turns} steps lie behind you. Write a short note with {}: what is done, what you found out, what comes \
             next. Then go on.",
            self.tool
        );
        Ok(vec![Action::Remind(text.into())])
    }
}
