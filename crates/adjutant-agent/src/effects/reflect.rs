//! The effect `reflection`: prompts the model to think when all its attempts fail.

use adjutant_core::RunNo;
use adjutant_llm::{CallResult, EntryId, Turn};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// The number of examined turns: a longer row of failures is no longer reported.
const MAX_ROW: usize = 100;

/// Prompts the model to reflect when all calls of several turns in a row failed, and again with each further such
/// turn.
///
/// A success resets the count, and so do a message from outside the framework, and another run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reflection {
    /// The number of failed turns in a row that it takes; 2, and 0 for never.
    pub failures: usize,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct ReflectMemo {
    run: RunNo,
    /// The latest turn when the reminder was sent.
    at: EntryId,
}

impl Default for Reflection {
    fn default() -> Self {
        Self { failures: 2 }
    }
}

#[async_trait]
impl Effect for Reflection {
    fn kind(&self) -> &str {
        "reflection"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if self.failures == 0 || !tail::may_speak(&cx) {
            return Ok(Vec::new());
        }
        let failed = tail::turns_since_input(cx.history)
            .take(MAX_ROW)
            .take_while(|(_, turn)| has_failed(turn));
        let failed: Vec<EntryId> = failed.map(|(id, _)| id).collect();
        let Some(at) = failed
            .first()
            .filter(|_| failed.len() >= self.failures && failed.len() < MAX_ROW)
        else {
            return Ok(Vec::new());
        };
        let told = ReflectMemo {
            run: cx.run,
            at: *at,
        };
        if cx
            .memo::<ReflectMemo>()
            .is_some_and(|before| before == told)
        {
            return Ok(Vec::new());
        }
        let text = format!(
            "Everything failed in the last {} steps. Before you call another tool: 1. Say in a sentence what went \
             wrong, going by the messages of the errors. 2. Name what you took for granted and have not checked. \
             3. Choose a way that differs in that point; if there is none, tell the user what is missing.",
            failed.len()
        );
        Ok(vec![
            Action::Remember(json!(told)),
            Action::Remind(text.into()),
        ])
    }
}

fn has_failed(turn: &Turn) -> bool {
    turn.results()
        .iter()
        .all(|result| CallResult::is_error(result))
}
