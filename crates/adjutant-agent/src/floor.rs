//! The floor under every agent: a request that would not fit the model's window is made to fit before it is sent.
//!
//! The steps, and the size that fits. They are run in `executor/fit.rs`.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
};

use adjutant_llm::{ModelId, ModelInfo, Options, Overflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    effect::Effect,
    effects::{ObservationMask, Offload, Truncate},
};

/// The key of what the floor remembers; the name under which it reports.
pub(crate) const KEY: &str = "floor";
/// The number of tokens that stay free for additions after the last check, such as a budget notice.
const MARGIN: u64 = 64;
/// The fraction of a window that is reserved for the reply of a model without a known output limit: one of this
/// number.
const OUTPUT_PART: u64 = 8;

/// The steps by which a request is made to fit: each is an effect that acts as if the provider had refused the request.
///
/// Every agent has one. If the estimate of a request exceeds the window minus the output, the steps act in order,
/// until it fits; after a failed step the next one acts. By default old results are masked, long ones are removed,
/// and finally whole turns are omitted, oldest first, and long pieces are cut. Everything is recorded and reported
/// under `floor`; the history keeps everything. [`Compact`] can be a step: see [`Floor::with_step`].
///
/// [`Compact`]: https://docs.rs/adjutant-context/latest/adjutant_context/struct.Compact.html
#[derive(Clone)]
pub struct Floor {
    pub(crate) steps: Arc<Vec<Arc<dyn Effect>>>,
}

/// The default steps; shared by all agents.
static STEPS: LazyLock<Arc<Vec<Arc<dyn Effect>>>> = LazyLock::new(|| {
    let mask = ObservationMask::default();
    // Of itself it takes nothing out: only here.
    let offload = Offload {
        threshold: 0.0,
        recent: 2,
        ..Offload::default()
    };
    Arc::new(vec![
        Arc::new(mask),
        Arc::new(offload),
        Arc::new(Truncate::default()),
    ])
});

impl Default for Floor {
    fn default() -> Self {
        Self {
            steps: Arc::clone(&STEPS),
        }
    }
}

impl Floor {
    /// A floor of these steps alone, in this order.
    pub fn new(steps: impl IntoIterator<Item = Arc<dyn Effect>>) -> Self {
        Self {
            steps: Arc::new(steps.into_iter().collect()),
        }
    }

    /// No context fitting: requests are sent unchanged, and one that is too large fails with the provider's error.
    pub fn off() -> Self {
        Self::new([])
    }

    /// Adds a step before the last one.
    #[must_use]
    pub fn with_step(self, step: impl Effect + 'static) -> Self {
        let step: Arc<dyn Effect> = Arc::new(step);
        let (before, last) = self.steps.split_at(self.steps.len().saturating_sub(1));
        Self::new(before.iter().chain([&step]).chain(last).cloned())
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.steps.is_empty()
    }
}

/// The state that is remembered from turn to turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FloorMemo {
    /// True if a step took something out that a tool brings back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) offers: bool,
    /// The window of a model that accepts less than its data says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) learned: Option<LearnedWindow>,
}

/// The window of a model, as its provider showed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearnedWindow {
    pub(crate) model: ModelId,
    pub(crate) tokens: u64,
    /// The window in the model's data when this was learned; another window there replaces it.
    #[serde(default)]
    pub(crate) instead_of: u64,
}

impl LearnedWindow {
    fn is_of(&self, info: &ModelInfo) -> bool {
        self.model == info.id && [0, info.context_window].contains(&self.instead_of)
    }
}

impl FloorMemo {
    /// Reads the memo of a run.
    pub(crate) fn read(memos: &BTreeMap<Arc<str>, Value>) -> Self {
        memos
            .get(KEY)
            .and_then(|memo| Self::deserialize(memo).ok())
            .unwrap_or_default()
    }

    /// Learns the window of a model that accepts less than its data says: from a refusal, or from a truncated
    /// request.
    pub(crate) fn learn(&mut self, info: &ModelInfo, refused: Option<Overflow>, cut: Option<u64>) {
        let is_known = self.learned.as_ref().is_some_and(|it| it.is_of(info));
        let cut = cut.filter(|_| refused.is_none() && !is_known);
        let tokens = refused
            .and_then(|refused| refused.limit)
            .or(cut)
            .filter(|tokens| self.window(info).is_none_or(|window| *tokens < window));
        if let Some(tokens) = tokens {
            self.learned = Some(LearnedWindow {
                model: info.id.clone(),
                tokens,
                instead_of: info.context_window,
            });
        }
    }

    /// Returns the window of a model, request and reply together, or `None` if it is unknown.
    pub(crate) fn window(&self, info: &ModelInfo) -> Option<u64> {
        let learned = self
            .learned
            .as_ref()
            .filter(|learned| learned.is_of(info))
            .map(|learned| learned.tokens);
        [info.window(), learned].into_iter().flatten().min()
    }
}

/// Returns the number of tokens of a window that a request may fill: the reply's share stays free, but at most half.
/// An unknown window has no limit.
pub(crate) fn room(window: Option<u64>, info: &ModelInfo, options: &Options) -> u64 {
    let Some(window) = window else {
        return u64::MAX;
    };
    let most = info.output_limit().unwrap_or(window / OUTPUT_PART);
    let output = options
        .max_output_tokens
        .map_or(most, |asked| asked.min(most));
    window
        .saturating_sub(output.min(window / 2))
        .saturating_sub(MARGIN)
}

impl fmt::Debug for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.steps.iter().map(|step| step.kind()))
            .finish()
    }
}
