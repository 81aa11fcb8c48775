//! The effect `offload`: long results of earlier turns leave the context, and a tool brings them back. No files.

mod recall;

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
/// The tool is offered from the first turn on, so that the tools of a run stay the same. Many results are taken out at
/// a time, so that requests begin alike in between. Errors and pinned results stay, and so do pictures and documents.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Offload {
    threshold: f64,
    min_chars: usize,
    recent: usize,
    preview: usize,
    min_gain: f64,
    #[serde(skip, default = "tools")]
    tools: Toolset,
}

impl Offload {
    /// Acts from half of the window on, on results of 2,000 characters or more, and spares the newest 6 turns.
    ///
    /// 200 characters of a result stay in sight; a step gains at least 0.3 of what has to be read anew for it.
    pub fn new() -> Self {
        Self { threshold: 0.5, min_chars: 2_000, recent: 6, preview: 200, min_gain: MIN_GAIN, tools: tools() }
    }

    /// Sets which share of the window must be full; 0 for never.
    #[must_use]
    pub fn threshold(mut self, share: f64) -> Self {
        self.threshold = share;
        self
    }

    /// Sets how many characters a result must have.
    #[must_use]
    pub fn min_chars(mut self, chars: usize) -> Self {
        self.min_chars = chars;
        self
    }

    /// Sets how many of the newest turns with results are shown as they are.
    #[must_use]
    pub fn recent(mut self, turns: usize) -> Self {
        self.recent = turns;
        self
    }

    /// Sets how many characters of a result stay in sight.
    #[must_use]
    pub fn preview(mut self, chars: usize) -> Self {
        self.preview = chars;
        self
    }

    /// Sets how much a step must gain, as a share of what stands from its first change on.
    #[must_use]
    pub fn min_gain(mut self, share: f64) -> Self {
        self.min_gain = share;
        self
    }
}

fn tools() -> Toolset {
    Toolset::new([Bound::new(recall::tool())])
}

impl Default for Offload {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Effect for Offload {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Turns(self.recent);
        let step = ShrinkStep { kind: KIND, threshold: Some(self.threshold), min_gain: self.min_gain, spared };
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
        actions.push(Action::Offer(self.tools.clone()));
        Ok(actions)
    }
}
