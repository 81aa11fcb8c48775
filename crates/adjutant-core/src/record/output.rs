//! The output of a run, in addition to its text.

use std::sync::Arc;

use adjutant_llm::Format;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The requested answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputWish {
    /// The name and the JSON schema of the answer.
    pub format: Format,
    /// The number of times that the model may be sent back.
    pub repairs: u32,
    /// True if the application checks answers too, beyond the schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_checked: bool,
}

/// The judgement about an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputVerdict {
    /// It is valid, with this value.
    Accepted {
        /// The value, without its wrapper for the model.
        value: Arc<Value>,
    },
    /// It does not fit.
    Refused {
        /// The reason, as sent to the model.
        reason: Arc<str>,
        /// The number of times that the model may still be sent back; the run fails at 0.
        left: u32,
    },
}
