//! The effect `token_budget`: how many tokens a run may use.

use adjutant_core::Limit;
use async_trait::async_trait;
use serde::Deserialize;

use super::spending::{WARN, judge};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Ends a run before the next request once it has used its tokens; notifies the model once before.
///
/// The usage of the run, its children and its helpers counts, input and output, from the run's start. An answer is
/// never retracted. If the run is allowed to continue, it may use the same amount again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenBudget {
    /// The number of tokens; 0 for no budget, the default.
    pub max_tokens: u64,
    /// The share of them at which the model is notified; 0.8. At 0, and at 1 and more, it is never notified.
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
