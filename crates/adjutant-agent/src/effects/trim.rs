//! The effect `trim_tool_results`: long results of earlier turns are cut. The history keeps them whole.

use adjutant_llm::{CallResult, Content, Edit, Stored};
use async_trait::async_trait;
use serde::Deserialize;

use super::{
    clip::clip,
    shrink::{MIN_GAIN, ShrinkStep, Spared, TRIM, shorten_turn, with_text},
};
use crate::effect::{Action, Effect, EffectContext, EffectError};

/// Cuts long successful results of earlier turns, whatever the context holds.
///
/// Many are cut at a time, so that requests begin alike in between; nothing is cut twice. Errors and pinned results
/// stay, and so do pictures and documents.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrimResults {
    /// The number of characters that stay of a result; 500.
    pub max_chars: usize,
    /// The number of latest turns with results that stay unchanged; 4.
    pub recent: usize,
    /// The minimum gain of a step, as a share of the content from its first change on, 0 to 1; 0.3.
    pub min_gain: f64,
}

impl Default for TrimResults {
    fn default() -> Self {
        Self {
            max_chars: 500,
            recent: 4,
            min_gain: MIN_GAIN,
        }
    }
}

#[async_trait]
impl Effect for TrimResults {
    fn kind(&self) -> &str {
        TRIM
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let spared = Spared::Turns(self.recent);
        let step = ShrinkStep {
            kind: TRIM,
            threshold: None,
            min_gain: self.min_gain,
            spared,
        };
        Ok(step.act(&cx, |_, result| trim_result(result, self.max_chars)))
    }
}

/// The edit that shows a turn with this many characters of each long successful result, and how many tokens that saves;
/// `None` if it saves nothing. `by` is the kind of effect that wants it: what another one shortened stays.
pub fn shorten_results(stored: &Stored, by: &str, max_chars: usize) -> Option<(Edit, u64)> {
    shorten_turn(stored, by, |_, result| trim_result(result, max_chars))
}

/// The first characters of a result's text, and all other content; `None` if that is not less.
fn trim_result(result: &CallResult, max_chars: usize) -> Option<Vec<Content>> {
    let text = result.text();
    let head = clip(&text, max_chars);
    if head.len() == text.len() {
        return None;
    }
    let shown = format!(
        "{head}\n[cut: {max_chars} of {} characters are shown]",
        text.chars().count()
    );
    (shown.len() < text.len()).then(|| with_text(result, shown))
}
