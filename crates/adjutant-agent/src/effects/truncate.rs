//! The effect `truncate`: omits whole turns, oldest first, and cuts pieces that are still too long. The history keeps
//! all.

mod pieces;

use adjutant_llm::{Edit, Transcript};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::cut::Cut;
use crate::effect::{Action, Effect, EffectContext, EffectError, Phase};

const KIND: &str = "truncate";
/// The fraction of the remaining content for pinned entries: one of this number.
const PINNED_PART: u64 = 5;

/// Shrinks a request that does not fit, without a model: a note replaces the oldest turns, and long pieces are cut.
///
/// It acts as a step of the [`Floor`](crate::Floor), and when the provider reports that the request does not fit.
/// Calls keep their results; the latest prompt and the latest entry stay, but keep only their start and end if they
/// are too long.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Truncate {
    /// The share of what fits that it leaves full, 0 to 1; 0.75. So it does not act again in the next turn.
    pub fill: f64,
}

impl Default for Truncate {
    fn default() -> Self {
        Self { fill: 0.75 }
    }
}

#[async_trait]
impl Effect for Truncate {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let Phase::Overflow(overflow) = cx.phase else {
            return Ok(Vec::new());
        };
        let most = overflow.limit.unwrap_or(u64::MAX).min(cx.room);
        let budget = self.budget(
            &cx,
            if most < cx.tokens {
                most
            } else {
                share(cx.tokens, self.fill)
            },
        );
        let mut view = cx.view.clone();
        let fold = fold(view.items(), budget);
        if let Some(fold) = &fold {
            view.apply(fold)
                .map_err(|error| EffectError::new(error.to_string()))?;
        }
        let cut = pieces::cut(view.items(), budget);
        if fold.is_none() && cut.is_empty() {
            return Ok(Vec::new());
        }
        let report = json!({ "before": cx.view.items().len(), "after": view.items().len(), "cut": cut.len() });
        Ok(fold
            .into_iter()
            .chain(cut)
            .map(Action::Edit)
            .chain([Action::Report(report)])
            .collect())
    }
}

impl Truncate {
    /// Returns the estimated size that the view should have, so that the request has room to grow.
    fn budget(&self, cx: &EffectContext<'_>, most: u64) -> u64 {
        let overhead = cx.overhead();
        let filled = share(most, self.fill).saturating_sub(overhead);
        let entries = filled.max(most.saturating_sub(overhead) / 2);
        // The provider may count an entry for more or less than it is estimated at.
        let (counted, estimate) = (
            cx.tokens.saturating_sub(overhead).max(1),
            cx.view.items().tokens(),
        );
        let budget = u128::from(entries) * u128::from(estimate) / u128::from(counted);
        u64::try_from(budget).unwrap_or(u64::MAX)
    }
}

/// The fold that leaves entries of about this size, if there are more.
fn fold(items: &Transcript, budget: u64) -> Option<Edit> {
    if items.tokens() <= budget {
        return None;
    }
    // A long prompt is cut to its half at most: the newest turns are wanted too.
    let kept = Cut::select(items, 0, 0).map_or(0, |cut| {
        let kept = cut
            .entries
            .iter()
            .filter(|stored| cut.keep.contains(&stored.id));
        kept.map(|stored| stored.tokens).sum()
    });
    let cut = Cut::select(items, budget - kept.min(budget / 2), budget / PINNED_PART)?;
    let note = cut.note();
    (cut.gain(&note) > 0).then(|| cut.into_fold(note))
}

fn share(of: u64, share: f64) -> u64 {
    (of as f64 * share.clamp(0.0, 1.0)) as u64
}
