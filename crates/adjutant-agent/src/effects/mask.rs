//! The effect `observation_mask`: what tools gave long ago is shown as a line each. The history keeps it.

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
    threshold: f64,
    recent: usize,
    min_gain: f64,
}

impl ObservationMask {
    /// Masks from 0.6 of the window on, and keeps the newest 10 entries.
    ///
    /// A step gains at least 0.3 of what has to be read anew for it.
    pub fn new() -> Self {
        Self { threshold: 0.6, recent: 10, min_gain: MIN_GAIN }
    }

    /// Sets which share of the window must be full; 0 for never.
    #[must_use]
    pub fn threshold(mut self, share: f64) -> Self {
        self.threshold = share;
        self
    }

    /// Sets how many of the newest entries are shown as they are.
    #[must_use]
    pub fn recent(mut self, entries: usize) -> Self {
        self.recent = entries;
        self
    }

    /// Sets how much a step must gain, as a share of what stands from its first change on.
    #[must_use]
    pub fn min_gain(mut self, share: f64) -> Self {
        self.min_gain = share;
        self
    }
}

impl Default for ObservationMask {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Effect for ObservationMask {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Entries(self.recent);
        let step = ShrinkStep { kind: KIND, threshold: Some(self.threshold), min_gain: self.min_gain, spared };
        Ok(step.act(&cx, |call, result| {
            let text = result.text();
            let line =
                format!("[earlier result of {}, left out; it began: {}]", call.name, preview(&text, PREVIEW_CHARS));
            let has_more = result.content.iter().any(|content| content.as_text().is_none());
            (has_more || line.len() < text.len()).then(|| vec![Content::text(line)])
        }))
    }
}
