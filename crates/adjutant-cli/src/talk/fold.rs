//! `/compact`: compacts the conversation before the next request.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use adjutant::{
    agent::{Action, Effect, EffectContext, EffectError},
    context::Compact,
};
use async_trait::async_trait;

/// The number of tokens of the latest entries that are not compacted.
const KEEP: u64 = 2_000;

/// Compacts once for each request.
#[derive(Debug)]
pub(crate) struct Fold {
    wished: Arc<AtomicBool>,
    compact: Compact,
}

impl Fold {
    pub(crate) fn new(wished: Arc<AtomicBool>) -> Self {
        let mut compact = Compact::default();
        (
            compact.threshold,
            compact.min_gain,
            compact.keep_recent_tokens,
        ) = (0.0, 0.0, KEEP);
        Self { wished, compact }
    }
}

#[async_trait]
impl Effect for Fold {
    fn kind(&self) -> &'static str {
        "fold"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if self.wished.swap(false, Relaxed) {
            self.compact.act(cx).await
        } else {
            Ok(Vec::new())
        }
    }
}
