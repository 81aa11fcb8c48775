//! The effect `offload`: long results of earlier turns leave the context, and a tool brings them back. No files.

mod recall;

use std::sync::LazyLock;

use adjutant_tool::{Bound, Toolset};
use async_trait::async_trait;
use serde::Deserialize;

use super::{
    clip::preview,
    shrink::{MIN_GAIN, ShrinkStep, Spared, with_text},
};
use crate::effect::{Action, Effect, EffectContext, EffectError};

const KIND: &str = "offload";

/// Takes long successful results of earlier turns out of the context, once it fills its window, and offers `recall`.
///
/// The tool is offered from the first turn on, so that the tools of a run stay the same. Many results are removed at
/// once, so that requests share a prefix in between. Errors and pinned results stay, and so do images and documents.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Offload {
    /// The share of the window that must be full; 0.5, and 0 for never.
    pub threshold: f64,
    /// The number of characters that a result must have; 2,000.
    pub min_chars: usize,
    /// The number of latest turns with results that stay unchanged; 6.
    pub recent: usize,
    /// The number of characters of a result that stay in sight; 200.
    pub preview: usize,
    /// The minimum gain of a step, as a share of the content from its first change on, 0 to 1; 0.3.
    pub min_gain: f64,
}

/// The tool that brings results back; the same for all runs.
static TOOLS: LazyLock<Toolset> = LazyLock::new(|| Toolset::new([Bound::new(recall::tool())]));

impl Default for Offload {
    fn default() -> Self {
        Self {
            threshold: 0.5,
            min_chars: 2_000,
            recent: 6,
            preview: 200,
            min_gain: MIN_GAIN,
        }
    }
}

#[async_trait]
impl Effect for Offload {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Turns(self.recent);
        let step = ShrinkStep {
            kind: KIND,
            threshold: Some(self.threshold),
            min_gain: self.min_gain,
            spared,
        };
        let mut actions = step.act(&cx, |call, result| {
            let text = result.text();
            let chars = text.chars().count();
            if chars < self.min_chars {
                return None;
            }
            let line = format!(
                "[result of {}, {chars} characters, taken out; {} with id \"{}\" shows it; it begins: {}]",
                call.name,
                recall::NAME,
                call.id,
                preview(&text, self.preview)
            );
            (line.len() < text.len()).then(|| with_text(result, line))
        });
        actions.push(Action::Offer(TOOLS.clone()));
        Ok(actions)
    }

    fn needs(&self) -> Option<Toolset> {
        Some(TOOLS.clone())
    }
}
