//! The effort of a model's thinking: one scale for all models.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effort of a model's thinking before it answers. Without one, the model's own default holds.
///
/// A request may name any of them; [`ModelInfo::effort`](crate::ModelInfo::effort) finds the nearest that a model has.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// Not at all.
    Off,
    /// As little as there is.
    Minimal,
    /// A little.
    Low,
    /// Moderately.
    Medium,
    /// Much.
    High,
    /// More than `High`, for long work: Anthropic, OpenAI, xAI and others call it `xhigh`.
    Xhigh,
    /// As much as there is.
    Max,
}

/// Text that is not an effort.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not one of off, minimal, low, medium, high, xhigh, max: {0:?}")]
pub struct EffortError(pub String);

impl Effort {
    /// All of them, ascending.
    pub const ALL: [Effort; 7] = [
        Effort::Off,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::Xhigh,
        Effort::Max,
    ];

    /// The name, for example `minimal`.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Off => "off",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Effort {
    type Err = EffortError;

    fn from_str(text: &str) -> Result<Self, EffortError> {
        let found = Self::ALL.into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| EffortError(text.chars().take(80).collect()))
    }
}
