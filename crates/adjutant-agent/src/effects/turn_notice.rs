//! The effect `turn_notice`: notifies the model that its run is near its last turn.

use adjutant_core::RunNo;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::tail;
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Notifies the model once a run that it is near the limit of its turns. It sets no limit itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnNotice {
    /// The number of requests after which the model is notified; 0 for never, the default.
    pub warn_at: u32,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct TurnNoticeMemo {
    run: RunNo,
}

#[async_trait]
impl Effect for TurnNotice {
    fn kind(&self) -> &str {
        "turn_notice"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let (turns, told) = (cx.ledger.turns, TurnNoticeMemo { run: cx.run });
        let is_due = self.warn_at > 0 && turns >= self.warn_at && tail::may_speak(&cx);
        if !is_due
            || cx
                .memo::<TurnNoticeMemo>()
                .is_some_and(|before| before == told)
        {
            return Ok(Vec::new());
        }
        let text = format!(
            "{turns} steps lie behind you, and you are approaching the limit of this work. Finish what matters most, \
             then give your answer."
        );
        Ok(vec![
            Action::Remember(json!(told)),
            Action::Remind(text.into()),
        ])
    }
}
