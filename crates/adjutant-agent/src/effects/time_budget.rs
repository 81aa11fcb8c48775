//! The effect `time_budget`: limits the running time of a run.

use adjutant_core::Limit;
use async_trait::async_trait;
use serde::Deserialize;

use super::spending::{WARN, judge};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Ends a run before the next request once its time is over; notifies the model once before.
///
/// All time counts: models, tools and helpers. A running call is not stopped; use a deadline for that. An answer is
/// never retracted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeBudget {
    /// The time, in milliseconds; 0 for no budget, the default.
    pub max_ms: u64,
    /// The share of it at which the model is notified; 0.8. At 0, and at 1 and more, it is never notified.
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
