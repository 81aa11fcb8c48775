//! The limits of a run.

use adjutant_llm::NanoUsd;
use serde::{Deserialize, Serialize};

/// The default number of requests of a run.
const MAX_TURNS: u32 = 50;
/// The default maximum number of calls that run at the same time.
const MAX_PARALLEL_TOOLS: u32 = 8;

/// The limits of a run, recorded when it begins.
///
/// Time in which a run is not running does not count for any of them: while it is parked, and between a crash and the
/// resume. A deadline moves by that time, and [`Caps::wall_ms`] and the middleware `Timeout` pause. `parked_counts`
/// changes this for the first two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The number of requests that the run may make; `None` for no limit.
    pub max_turns: Option<u32>,
    /// The largest number of calls that run at the same time; at least 1.
    pub max_parallel_tools: u32,
    /// True if calls run one after the other whatever their tools allow.
    pub sequential: bool,
    /// The time by which the run must have ended, in milliseconds since 1970-01-01 UTC. A run that is past it ends as
    /// cancelled by its deadline, also if it is resumed only then.
    pub deadline_ms: Option<u64>,
    /// True if the time in which the run is not running counts for the deadline and `wall_ms`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parked_counts: bool,
    /// True if no one can answer: a call that needs an approval is refused immediately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// The reaction when a limit is reached.
    #[serde(skip_serializing_if = "AtLimit::is_end")]
    pub at_limit: AtLimit,
    /// The limits on the spending of the run and everything under it.
    #[serde(skip_serializing_if = "Caps::is_none")]
    pub caps: Caps,
}

/// The reaction when a limit of a run is reached. A run always ends when its time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AtLimit {
    /// The run ends.
    #[default]
    End,
    /// The model gets one more turn, without tools, for its result; then the run ends.
    LastTurn,
    /// The run requests an approval to continue; without it, it ends after a last turn without tools.
    Ask,
}

/// The limits on the spending of a run and everything under it; an unset field means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Tokens, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
    /// Requests to models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Running time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// The number of agents that may stand above one another, the first not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// The number of agents that may run at a time, the first not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: Some(MAX_TURNS),
            max_parallel_tools: MAX_PARALLEL_TOOLS,
            sequential: false,
            deadline_ms: None,
            parked_counts: false,
            unattended: false,
            at_limit: AtLimit::End,
            caps: Caps::default(),
        }
    }
}

impl AtLimit {
    fn is_end(&self) -> bool {
        *self == AtLimit::End
    }
}

impl Caps {
    /// Returns the caps that keep within both.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            requests: least(self.requests, other.requests),
            tool_calls: least(self.tool_calls, other.tool_calls),
            wall_ms: least(self.wall_ms, other.wall_ms),
            depth: least(self.depth, other.depth),
            agents: least(self.agents, other.agents),
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
