//! The effect `progress`: asks now and then for a note of what was reached, if there is a tool for notes.

use adjutant_llm::ToolName;
use async_trait::async_trait;
use serde::Deserialize;

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Asks for a note of progress every few turns of a run, as long as the tool that takes notes is there.
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
