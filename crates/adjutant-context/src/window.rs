//! The effect `sliding_window`: full entries at the end, entries with short results before them, and a summary of the
//! rest.

use std::sync::Arc;

use adjutant_agent::{
    Action, Effect, EffectContext, EffectError, Phase, RunNo,
    effects::{Cut, shorten_results},
};
use adjutant_llm::{Edit, Entry, Estimate, Model, Summary};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::compact::summary::Ask;

const KIND: &str = "sliding_window";
/// The number of characters of a result that are kept in the middle zone.
const MEDIUM_CHARS: usize = 200;
/// The smallest gain of a step, as a fraction of the view.
const MIN_GAIN: f64 = 0.25;
/// The largest number of tokens of a summary.
const MAX_SUMMARY_TOKENS: u64 = 4_096;
/// The largest number of failed summaries in one run.
const MAX_FAILURES: u32 = 3;
/// Pinned entries stay while they fill at most this fraction of the window, the newest first: one of this number.
const PINNED_PART: u64 = 5;

/// Moves a window over the conversation, once it fills the model's.
///
/// The newest entries stay unchanged. The ones before them keep 200 characters of each successful result. Older
/// entries are replaced by a summary that a model writes, including earlier summaries; the user's newest message and
/// pinned entries stay. If the model fails, the old entries stay; after three failures it is not called again in the
/// run. Results never lose their calls. The view changes only if the gain is large enough.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlidingWindow {
    /// The share of the window that must be full; 0.7, and 0 for never.
    pub threshold: f64,
    /// The number of newest entries that stay unchanged; 10.
    pub recent: usize,
    /// The number of entries before them that keep short results; 10.
    pub medium: usize,
    /// The smallest gain of a step, as a fraction of the view, 0 to 1; 0.25.
    pub min_gain: f64,
    /// The model that writes summaries; by default, the model of the turn.
    #[serde(skip)]
    pub model: Option<Arc<dyn Model>>,
}

#[derive(Serialize, Deserialize)]
struct Failures {
    run: RunNo,
    count: u32,
}

impl SlidingWindow {
    /// Shows the middle zone with short results.
    fn shorten(&self, cx: &EffectContext<'_>, from: usize, to: usize) -> (Vec<Edit>, u64) {
        let zone = cx.view.items().iter_from(from).take(to - from);
        let shorter = zone.filter_map(|stored| shorten_results(stored, KIND, MEDIUM_CHARS));
        shorter.fold((Vec::new(), 0), |(mut edits, gain), (edit, less)| {
            edits.push(edit);
            (edits, gain + less)
        })
    }

    /// Summarizes the entries before both zones; the error gives the reason why there is no summary.
    async fn fold(&self, cx: &EffectContext<'_>, cut: Cut) -> Result<(Edit, u64), String> {
        let model = self.model.as_ref().unwrap_or(cx.model);
        let ask = Ask {
            window: model.info().context_window,
            max_tokens: MAX_SUMMARY_TOKENS,
        };
        let ratio = (cx.tokens as f64 / cx.view.items().tokens().max(1) as f64).max(1.0);
        let text: Arc<str> = match ask.summarise(cx, model, &cut, ratio).await {
            Ok(reply) => reply.text().trim().into(),
            // Something must go, or the run fails.
            Err(_) if overflows(cx) => cut.note(),
            Err(why) => return Err(why),
        };
        let text = if overflows(cx) && cut.gain(&text) == 0 {
            cut.note()
        } else {
            text
        };
        match cut.gain(&text) {
            0 => Err("the summary is not shorter than the text that it replaces".into()),
            gain => Ok((cut.into_fold(text), gain)),
        }
    }
}

/// True if a gain is at least this share of a whole.
fn is_worth(gain: u64, share: f64, of: u64) -> bool {
    gain > 0 && gain as f64 >= share * of as f64
}

fn overflows(cx: &EffectContext<'_>) -> bool {
    matches!(cx.phase, Phase::Overflow(_))
}

/// Returns the number of tokens that would be folded and are no summary yet.
fn tokens_to_fold(cut: &Cut) -> u64 {
    let earlier = cut.previous().map_or(0, |summary: &Summary| {
        Estimate::entry(&Entry::Summary(summary.clone()))
    });
    cut.tokens.saturating_sub(earlier)
}

impl Default for SlidingWindow {
    fn default() -> Self {
        Self {
            threshold: 0.7,
            recent: 10,
            medium: 10,
            min_gain: MIN_GAIN,
            model: None,
        }
    }
}

#[async_trait]
impl Effect for SlidingWindow {
    fn kind(&self) -> &str {
        KIND
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let (items, share) = (
            cx.view.items(),
            if overflows(&cx) { 0.0 } else { self.min_gain },
        );
        if !overflows(&cx) && !cx.fills(self.threshold) {
            return Ok(Vec::new());
        }
        let recent = items.len().saturating_sub(self.recent);
        let medium = recent.saturating_sub(self.medium);
        let (mut edits, mut gain) = self.shorten(&cx, medium, recent);
        let mut actions = Vec::new();
        let failures = cx
            .memo::<Failures>()
            .filter(|failures| failures.run == cx.run);
        let failed = failures.map_or(0, |failures| failures.count);
        let may_fold = cx.phase != Phase::Preview && (failed < MAX_FAILURES || overflows(&cx));
        let cut = if may_fold {
            // An unknown window is at most what did not fit.
            let window = match cx.window() {
                0 => cx.tokens,
                window => window,
            };
            Cut::before(items, medium, window / PINNED_PART)
        } else {
            None
        };
        if let Some(cut) =
            cut.filter(|cut| is_worth(tokens_to_fold(cut), share, cx.view.items().tokens()))
        {
            let folded = self
                .fold(&cx, cut)
                .await
                .and_then(|(edit, less)| match gain + less {
                    gains if is_worth(gains, share, cx.view.items().tokens()) => Ok((edit, less)),
                    _ => Err("the summary gains too little".into()),
                });
            match folded {
                Ok((edit, less)) => {
                    actions.push(Action::Report(json!({ "folded": true, "tokens": less })));
                    edits.insert(0, edit);
                    gain += less;
                }
                Err(why) => {
                    actions.push(Action::Report(json!({ "folded": false, "failed": why })));
                    actions.push(Action::Remember(json!(Failures {
                        run: cx.run,
                        count: failed + 1
                    })));
                }
            }
        }
        if is_worth(gain, share, cx.view.items().tokens()) {
            actions.extend(edits.into_iter().map(Action::Edit));
        }
        Ok(actions)
    }
}
