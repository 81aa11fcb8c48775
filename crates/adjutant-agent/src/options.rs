//! The limits of a run, and how one run may differ from its agent.

use std::{sync::Arc, time::Duration};

use adjutant_llm::Model;
use adjutant_tool::Cancel;
use serde::{Deserialize, Serialize};

/// How many requests a run may make, unless it is said otherwise.
const MAX_TURNS: u32 = 50;
/// How many calls run together, unless it is said otherwise.
const MAX_PARALLEL_TOOLS: u32 = 8;

/// The limits of a run, recorded when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// How many requests the run may make; `None` for no limit.
    pub max_turns: Option<u32>,
    /// How many calls run together; at least 1.
    pub max_parallel_tools: u32,
    /// Whether calls run one after the other whatever their tools say.
    pub sequential: bool,
    /// When the run must have ended, in milliseconds since 1970-01-01 UTC.
    pub deadline_ms: Option<u64>,
}

/// How one run differs from its agent; what is unset stays the agent's.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    pub(crate) max_turns: Option<Option<u32>>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) cancel: Option<Cancel>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: Some(MAX_TURNS),
            max_parallel_tools: MAX_PARALLEL_TOOLS,
            sequential: false,
            deadline_ms: None,
        }
    }
}

impl Limits {
    /// 50 turns, 8 parallel calls, no deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many requests the run may make.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Lets the run make any number of requests.
    #[must_use]
    pub fn unlimited_turns(mut self) -> Self {
        self.max_turns = None;
        self
    }

    /// Sets how many calls run together; 0 counts as 1.
    #[must_use]
    pub fn max_parallel_tools(mut self, calls: u32) -> Self {
        self.max_parallel_tools = calls.max(1);
        self
    }

    /// Makes calls run one after the other whatever their tools say.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    /// Sets when the run must have ended, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn deadline_ms(mut self, at_ms: u64) -> Self {
        self.deadline_ms = Some(at_ms);
        self
    }
}

impl RunOptions {
    /// Everything as the agent has it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many requests this run may make.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(Some(turns));
        self
    }

    /// Lets this run make any number of requests.
    #[must_use]
    pub fn unlimited_turns(mut self) -> Self {
        self.max_turns = Some(None);
        self
    }

    /// Sets how long this run may take.
    #[must_use]
    pub fn deadline(mut self, within: Duration) -> Self {
        self.deadline = Some(within);
        self
    }

    /// Sets the model of this run.
    #[must_use]
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Cancels this run when someone wishes to stop.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }
}
