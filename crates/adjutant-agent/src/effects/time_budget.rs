//! The effect `time_budget`: how long a run may be at work.

use std::time::Duration;

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
    max_ms: u64,
    warn: f64,
}

impl TimeBudget {
    /// So much time, to the millisecond; none for no budget. The model is told at four fifths of it.
    pub fn new(time: Duration) -> Self {
        Self { max_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX), warn: WARN }
    }

    /// Sets the share at which the model is told; 0, or 1 and more, for never.
    #[must_use]
    pub fn warn(mut self, share: f64) -> Self {
        self.warn = share;
        self
    }
}

impl Default for TimeBudget {
    /// No budget.
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

#[async_trait]
impl Effect for TimeBudget {
    fn kind(&self) -> &str {
        "time_budget"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let notice = |allowed| format!("the {allowed} ms that this work may take are over");
        Ok(judge(&cx, cx.ledger().wall_ms, self.max_ms, self.warn, Limit::Time, notice))
    }
}
