//! The effect `token_budget`: how many tokens a run may use.

use adjutant_core::Limit;
use async_trait::async_trait;
use serde::Deserialize;

use super::spending::{WARN, judge};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Ends a run before another request once it has used its tokens; tells the model once before.
///
/// Everything counts that the run, its children and its helpers used, input and output, from the run's beginning. An
/// answer is never taken back. If someone lets the run go on, it may use as much again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenBudget {
    /// The number of tokens; 0 for no budget, the default.
    pub max_tokens: u64,
    /// The share of them at which the model is told; 0.8. At 0, and at 1 and more, it is never told.
    pub warn: f64,
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self {
            max_tokens: 0,
            warn: WARN,
        }
    }
}

#[async_trait]
impl Effect for TokenBudget {
    fn kind(&self) -> &str {
        "token_budget"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let ledger = cx.ledger;
        let spent = ledger.usage.total().saturating_add(ledger.spent.total());
        let notice = |allowed| format!("the {allowed} tokens that this work may use are used up");
        Ok(judge(
            &cx,
            spent,
            self.max_tokens,
            self.warn,
            Limit::Tokens,
            notice,
        ))
    }
}
