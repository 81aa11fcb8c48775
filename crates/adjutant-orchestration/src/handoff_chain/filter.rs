//! The part of a conversation that an agent sees after a takeover: edits of its view, recorded like the edits of every effect.

use std::sync::Arc;

use adjutant_agent::{Action, Effect, EffectContext, EffectError, Phase};
use adjutant_llm::Entry;
use async_trait::async_trait;

use super::{active, target::Filter};

/// Applies a filter when its agent takes over.
pub(super) struct Filtered {
    pub(super) name: Arc<str>,
    pub(super) filter: Filter,
}

#[async_trait]
impl Effect for Filtered {
    fn kind(&self) -> &str {
        "handoff_filter"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let takes_over = || {
            let said = cx.view.items().iter().rev().map(|stored| &stored.entry);
            let newest = said
                .into_iter()
                .find(|entry| matches!(entry, Entry::Turn(_)));
            newest.and_then(active::find_entry_target) == Some(&*self.name)
        };
        if cx.phase != Phase::Request || cx.ledger.turns > 0 || !takes_over() {
            return Ok(Vec::new());
        }
        Ok((self.filter)(cx.view)
            .into_iter()
            .map(Action::Edit)
            .collect())
    }
}
