//! The effect `observation_mask`: shows each old tool result as one line. The history keeps it.

use adjutant_llm::Content;
use async_trait::async_trait;
use serde::Deserialize;

use super::{
    clip::preview,
    shrink::{MIN_GAIN, ShrinkStep, Spared},
};
use crate::effect::{Action, Effect, EffectContext, EffectError};

const KIND: &str = "observation_mask";
/// The number of characters of a result that its placeholder shows.
const PREVIEW_CHARS: usize = 80;

/// Shows a line in the place of successful results of earlier turns, once the context fills its window.
///
/// Many are masked at a time, so that requests begin alike in between; nothing is masked twice. Errors and pinned
/// results stay. Without a known window it does nothing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservationMask {
    /// The share of the window that must be full; 0.6, and 0 for never.
    pub threshold: f64,
    /// The number of latest entries that stay unchanged; 10.
    pub recent: usize,
    /// The minimum gain of a step, as a share of the content from its first change on, 0 to 1; 0.3.
    pub min_gain: f64,
}

impl Default for ObservationMask {
    fn default() -> Self {
        Self {
            threshold: 0.6,
            recent: 10,
            min_gain: MIN_GAIN,
        }
    }
}

#[async_trait]
impl Effect for ObservationMask {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Entries(self.recent);
        let step = ShrinkStep {
            kind: KIND,
            threshold: Some(self.threshold),
            min_gain: self.min_gain,
            spared,
        };
        Ok(step.act(&cx, |call, result| {
            let text = result.text();
            let line = format!(
                "[earlier result of {}, left out; it began: {}]",
                call.name,
                preview(&text, PREVIEW_CHARS)
            );
            let has_more = result
                .content
                .iter()
                .any(|content| content.as_text().is_none());
            (has_more || line.len() < text.len()).then(|| vec![Content::text(line)])
        }))
    }
}
