//! The effect `trim_tool_results`: long results of earlier turns are cut. The history keeps them whole.

use adjutant_llm::{CallResult, Content, Edit, Stored};
use async_trait::async_trait;
use serde::Deserialize;

use super::{
    clip::clip,
    shrink::{MIN_GAIN, ShrinkStep, Spared, TRIM, shortened, with_text},
};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Cuts long successful results of earlier turns, whatever the context holds.
///
/// Many are cut at a time, so that requests begin alike in between; nothing is cut twice. Errors and pinned results
/// stay, and so do pictures and documents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrimResults {
    max_chars: usize,
    recent: usize,
    min_gain: f64,
}

impl TrimResults {
    /// Keeps 500 characters, and spares the newest 4 turns with results.
    ///
    /// A step gains at least 0.3 of what has to be read anew for it.
    pub fn new() -> Self {
        Self { max_chars: 500, recent: 4, min_gain: MIN_GAIN }
    }

    /// Sets how many characters of a result stay.
    #[must_use]
    pub fn max_chars(mut self, chars: usize) -> Self {
        self.max_chars = chars;
        self
    }

    /// Sets how many of the newest turns with results are shown as they are.
    #[must_use]
    pub fn recent(mut self, turns: usize) -> Self {
        self.recent = turns;
        self
    }

    /// Sets how much a step must gain, as a share of what stands from its first change on.
    #[must_use]
    pub fn min_gain(mut self, share: f64) -> Self {
        self.min_gain = share;
        self
    }
}

impl Default for TrimResults {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Effect for TrimResults {
    fn kind(&self) -> &str {
        TRIM
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Turns(self.recent);
        let step = ShrinkStep { kind: TRIM, threshold: None, min_gain: self.min_gain, spared };
        Ok(step.act(&cx, |_, result| trimmed(result, self.max_chars)))
    }
}

/// The edit that shows a turn with this many characters of each long successful result, and how many tokens that saves;
/// `None` if it saves nothing. `by` is the kind of effect that wants it: what another one shortened stays.
pub fn shorten_results(stored: &Stored, by: &str, max_chars: usize) -> Option<(Edit, u64)> {
    shortened(stored, by, |_, result| trimmed(result, max_chars))
}

/// The first characters of a result's text, and everything that is no text; `None` if that is not less.
fn trimmed(result: &CallResult, max_chars: usize) -> Option<Vec<Content>> {
    let text = result.text();
    let head = clip(&text, max_chars);
    if head.len() == text.len() {
        return None;
    }
    let shown = format!("{head}\n[cut: {max_chars} of {} characters are shown]", text.chars().count());
    (shown.len() < text.len()).then(|| with_text(result, shown))
}
