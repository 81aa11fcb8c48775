//! The decision about a call before it runs.

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_tool::Replay;
use serde::{Deserialize, Serialize};

use crate::pause::Pause;

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "admission", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Admission {
    /// It may run.
    Allow {
        /// The arguments it runs with, as JSON text.
        args: Arc<str>,
        /// True if they differ from the arguments that the model wrote.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
        /// The title for people, instead of the tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Arc<str>>,
        /// The rule for repeating it after a crash.
        replay: Replay,
        /// True if the whole batch runs one call after the other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sequential: bool,
    },
    /// It may not; this is its result.
    Refuse {
        /// The result.
        result: Arc<CallResult>,
    },
    /// An approval is required, or the application runs it; it is admitted again with the answer.
    Ask {
        /// The pause, with its question.
        pause: Arc<Pause>,
        /// True if the whole batch runs one call after the other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sequential: bool,
    },
    /// It was run elsewhere; this is its result.
    Supplied {
        /// The result, whole.
        result: Arc<CallResult>,
        /// The part of it for the model, if that is less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Arc<CallResult>>,
    },
}
