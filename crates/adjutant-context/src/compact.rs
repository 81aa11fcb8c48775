//! Compaction: when the context window fills up, the beginning of the view is replaced with a summary.
//!
//! The history keeps all entries; only the view is compacted. A `Cut` selects the entries; the summary is in
//! `summary.rs`.

pub(super) mod summary;

use std::{fmt, sync::Arc};

use adjutant_agent::{Action, Effect, EffectContext, EffectError, Phase, effects::Cut};
use adjutant_llm::{Edit, EntryId, Model, Usage};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// At which share of the window the view is compacted.
const THRESHOLD: f64 = 0.8;
/// The number of tokens of the newest entries that stay as they are.
const KEEP_RECENT: u64 = 20_000;
/// The share of the window that pinned entries may keep.
const PINNED_SHARE: f64 = 0.2;
/// The share of the window that a compaction must gain.
const MIN_GAIN: f64 = 0.1;
/// The largest number of tokens of a summary.
const MAX_SUMMARY: u64 = 4_096;
/// The number of failures in a run after which the summary is abandoned.
const MAX_FAILURES: u32 = 3;
/// The largest ratio of a provider's count to the estimate.
const MAX_RATIO: f64 = 4.0;

/// Replaces the oldest entries of the view with a summary when the window fills up, or when the provider reports that
/// it is full.
///
/// The newest entries stay, and so do the newest prompt and pinned entries. Shape of its parameters: an object with any
/// of `threshold`, `reserve_tokens`, `keep_recent_tokens`, `pinned_share`, `min_gain`, `max_summary_tokens`,
/// `max_failures`, `strategy` (`"summarise"` or `"truncate"`).
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Compact {
    /// The share of the window at which it acts, 0 to 1; 0.8.
    pub threshold: f64,
    /// The number of tokens of the window that stay free for the reply; by default as many as the floor leaves free,
    /// see [`EffectContext::room`].
    pub reserve_tokens: Option<u64>,
    /// The number of tokens of the newest entries that stay, at most a quarter of the window; 20,000.
    pub keep_recent_tokens: u64,
    /// The share of the window that pinned entries may keep, the newest first; 0.2. Others are summarised.
    pub pinned_share: f64,
    /// The share of the window that it must gain, and that must fill again before it acts again; 0.1.
    pub min_gain: f64,
    /// The number of tokens that a summary may have; 4,096.
    pub max_summary_tokens: u64,
    /// The number of failures in a run after which it waits for the next run, or for real growth; 3.
    pub max_failures: u32,
    /// The kind of text that replaces the removed entries; a summary.
    pub strategy: Strategy,
    /// The model that writes summaries; the agent's own by default.
    #[serde(skip)]
    pub model: Option<Arc<dyn Model>>,
}

/// The kind of text that replaces the removed entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// A summary that a model writes.
    #[default]
    Summarise,
    /// A note with their number; no model is called.
    Truncate,
}

/// The state that is remembered from turn to turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    run: u64,
    /// The number of failures in this run, in a row.
    failures: u32,
    /// The newest entry when it acted last.
    newest: Option<EntryId>,
    /// The number of tokens that must be added since then before it acts again.
    growth: u64,
}

impl Compact {
    /// True if the window is so full that it should act; a window of nothing is not known.
    fn is_full(&self, cx: &EffectContext<'_>) -> bool {
        let window = cx.window();
        let room = self
            .reserve_tokens
            .map_or(cx.room, |reserve| window.saturating_sub(reserve));
        window > 0 && cx.tokens >= share(window, self.threshold).min(room)
    }

    /// The entries to remove now.
    fn cut(&self, cx: &EffectContext<'_>, ratio: f64) -> Option<Cut> {
        let window = window(cx);
        let recent = self.keep_recent_tokens.min(window / 4);
        let tight = matches!(cx.phase, Phase::Overflow(_));
        let recent = unscale_tokens(if tight { recent / 2 } else { recent }, ratio);
        Cut::select(
            cx.view.items(),
            recent,
            unscale_tokens(share(window, self.pinned_share), ratio),
        )
    }

    /// Returns the text that replaces the removed entries, its author, and its usage.
    async fn text(&self, cx: &EffectContext<'_>, cut: &Cut, ratio: f64) -> Result<Written, String> {
        if self.strategy == Strategy::Truncate {
            return Ok(Written {
                text: cut.note(),
                usage: None,
                model: None,
            });
        }
        let model = self.model.as_ref().unwrap_or(cx.model);
        let window = if self.model.is_some() {
            model.info().context_window
        } else {
            window(cx)
        };
        let ask = summary::Ask {
            window,
            max_tokens: self.max_summary_tokens,
        };
        let reply = ask.summarise(cx, model, cut, ratio).await?;
        let (usage, model) = (Some(reply.usage), Some(reply.model.to_string()));
        Ok(Written {
            text: reply.text().trim().into(),
            usage,
            model,
        })
    }

    /// The summary failed: the view stays, and the next attempt waits until enough was added.
    fn failure_actions(
        &self,
        cx: &EffectContext<'_>,
        state: State,
        why: &str,
        growth: u64,
    ) -> Vec<Action> {
        let failures = state.failures.saturating_add(1);
        let gain = share(cx.window(), self.min_gain);
        let given_up = failures >= self.max_failures;
        let state = State {
            failures,
            newest: cx.view.items().last().map(|stored| stored.id),
            growth: if given_up { gain.max(growth) } else { growth },
            ..state
        };
        let report =
            json!({"failed": why, "failures": failures, "given_up": given_up, "before": cx.tokens});
        vec![remember(&state), Action::Report(report)]
    }

    /// The view is folded; the next time waits for real growth.
    fn fold_actions(
        &self,
        cx: &EffectContext<'_>,
        state: State,
        cut: Cut,
        written: Written,
        ratio: f64,
    ) -> Vec<Action> {
        let gained = scale_estimate(cut.gain(&written.text), ratio);
        let report = json!({
            "before": cx.tokens,
            "after": cx.tokens.saturating_sub(gained),
            "folded": cut.folded,
            "kept": cut.keep.len(),
            "model": written.model,
            "usage": written.usage,
        });
        let state = State {
            failures: 0,
            newest: cx.view.items().last().map(|stored| stored.id),
            growth: share(cx.window(), self.min_gain),
            ..state
        };
        let fold: Edit = cut.into_fold(written.text);
        vec![Action::Edit(fold), remember(&state), Action::Report(report)]
    }

    async fn in_time(&self, cx: EffectContext<'_>, state: State, ratio: f64) -> Vec<Action> {
        if !state.has_grown(&cx, ratio) {
            return Vec::new();
        }
        let Some(cut) = self.cut(&cx, ratio) else {
            return Vec::new();
        };
        let gain = share(cx.window(), self.min_gain);
        // The summary needs space too, so a fold with little more than the minimum gain is not worth a request.
        let cost = self.max_summary_tokens.min(cx.window() / 16);
        if scale_estimate(cut.tokens, ratio) < gain.saturating_add(cost) {
            return Vec::new();
        }
        match self.text(&cx, &cut, ratio).await {
            Ok(written) if scale_estimate(cut.gain(&written.text), ratio) >= gain => {
                self.fold_actions(&cx, state, cut, written, ratio)
            }
            Ok(_) => {
                let why = format!("the summary of {} entries gains too little", cut.folded);
                self.failure_actions(&cx, state, &why, gain)
            }
            Err(why) => self.failure_actions(&cx, state, &why, 1),
        }
    }

    /// Something must go, or the run fails: a summary if there is one, and if not a note, unless another step makes room.
    async fn at_once(&self, cx: EffectContext<'_>, state: State, ratio: f64) -> Vec<Action> {
        // A failed strategy is not paid for in every turn: the next step is cheaper.
        let is_idle = state.failures >= self.max_failures || !state.has_grown(&cx, ratio);
        if cx.falls_back && self.strategy == Strategy::Summarise && is_idle {
            return Vec::new();
        }
        let Some(cut) = self.cut(&cx, ratio) else {
            return Vec::new();
        };
        let why = match self.text(&cx, &cut, ratio).await {
            Ok(written) if cut.gain(&written.text) > 0 => {
                return self.fold_actions(&cx, state, cut, written, ratio);
            }
            Ok(_) => format!("the summary of {} entries gains nothing", cut.folded),
            Err(why) => why,
        };
        if cx.falls_back {
            return self.failure_actions(&cx, state, &why, 1);
        }
        let written = Written {
            text: cut.note(),
            usage: None,
            model: None,
        };
        self.fold_actions(&cx, state, cut, written, ratio)
    }
}

impl State {
    /// True if enough was added since it acted last.
    fn has_grown(&self, cx: &EffectContext<'_>, ratio: f64) -> bool {
        let Some(newest) = self.newest else {
            return true;
        };
        let added = cx
            .view
            .items()
            .iter()
            .rev()
            .take_while(|stored| stored.id > newest);
        scale_estimate(added.map(|stored| stored.tokens).sum(), ratio) >= self.growth
    }
}

/// The text that replaces the removed entries.
struct Written {
    text: Arc<str>,
    usage: Option<Usage>,
    model: Option<String>,
}

#[async_trait]
impl Effect for Compact {
    fn kind(&self) -> &str {
        "compact"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let known: State = cx.memo().unwrap_or_default();
        let run = cx.run.0;
        let state = match known.run == run {
            true => known,
            // Failures are forgotten, growth since the last fold is not.
            false if known.failures > 0 => State {
                run,
                ..State::default()
            },
            false => State { run, ..known },
        };
        Ok(match cx.phase {
            Phase::Overflow(_) => self.at_once(cx, state, ratio(&cx)).await,
            Phase::Preview if self.strategy == Strategy::Summarise => Vec::new(),
            Phase::Request | Phase::Preview if self.is_full(&cx) => {
                self.in_time(cx, state, ratio(&cx)).await
            }
            Phase::Request | Phase::Preview => Vec::new(),
        })
    }
}

fn remember(state: &State) -> Action {
    Action::Remember(serde_json::to_value(state).unwrap_or(Value::Null))
}

/// Returns the ratio of the provider's count to the estimate of the view.
fn ratio(cx: &EffectContext<'_>) -> f64 {
    let counted = cx.tokens.saturating_sub(cx.overhead());
    (counted as f64 / cx.view.items().tokens().max(1) as f64).clamp(1.0, MAX_RATIO)
}

/// Returns the number of tokens that the model accepts, as learned from requests that it refused as too large.
fn window(cx: &EffectContext<'_>) -> u64 {
    match cx.phase {
        Phase::Overflow(overflow) => {
            let known = if cx.window() > 0 {
                cx.window()
            } else {
                u64::MAX
            };
            known.min(overflow.limit.unwrap_or(cx.tokens))
        }
        Phase::Request | Phase::Preview => cx.window(),
    }
}

/// A fraction of a number of tokens; NaN and negative fractions count as 0.
fn share(of: u64, share: f64) -> u64 {
    (of as f64 * share.clamp(0.0, 1.0)) as u64
}

/// Returns the number of tokens for an estimate.
fn scale_estimate(estimate: u64, ratio: f64) -> u64 {
    (estimate as f64 * ratio) as u64
}

/// The estimate for a number of tokens.
fn unscale_tokens(tokens: u64, ratio: f64) -> u64 {
    (tokens as f64 / ratio) as u64
}

impl Default for Compact {
    fn default() -> Self {
        Self {
            threshold: THRESHOLD,
            reserve_tokens: None,
            keep_recent_tokens: KEEP_RECENT,
            pinned_share: PINNED_SHARE,
            min_gain: MIN_GAIN,
            max_summary_tokens: MAX_SUMMARY,
            max_failures: MAX_FAILURES,
            strategy: Strategy::default(),
            model: None,
        }
    }
}

impl fmt::Debug for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compact")
            .field("threshold", &self.threshold)
            .field("strategy", &self.strategy)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
