//! The effect `time_budget`: how long a run may be at work.

use adjutant_core::Limit;
use async_trait::async_trait;
use serde::Deserialize;

use super::spending::{WARN, judge};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Ends a run before another request once its time is over; tells the model once before.
///
/// Everything counts that takes time, models, tools and helpers. A call that is at work is not stopped: a deadline does
/// that. An answer is never taken back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeBudget {
    /// The time, in milliseconds; 0 for no budget, the default.
    pub max_ms: u64,
    /// The share of it at which the model is told; 0.8. At 0, and at 1 and more, it is never told.
    pub warn: f64,
}

impl Default for TimeBudget {
    fn default() -> Self {
        Self {
            max_ms: 0,
            warn: WARN,
        }
    }
}

#[async_trait]
impl Effect for TimeBudget {
    fn kind(&self) -> &str {
        "time_budget"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let notice = |allowed| format!("the {allowed} ms that this work may take are over");
        Ok(judge(
            &cx,
            cx.ledger.wall_ms,
            self.max_ms,
            self.warn,
            Limit::Time,
            notice,
        ))
    }
}
