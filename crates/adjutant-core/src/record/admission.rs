//! What is decided about a call before it runs.

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_tool::Replay;
use serde::{Deserialize, Serialize};

use crate::pause::Pause;

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "admission", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Admission {
    /// It may run.
    Allow {
        /// The arguments it runs with, as JSON text.
        args: Arc<str>,
        /// Whether they differ from what the model wrote.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
        /// What people are shown instead of the tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Arc<str>>,
        /// What may happen to it after a crash.
        replay: Replay,
        /// Whether the whole batch runs one call after the other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sequential: bool,
    },
    /// It may not; this is its result.
    Refuse {
        /// The result.
        result: Arc<CallResult>,
    },
    /// Someone is asked first, or runs it elsewhere; it is admitted again with the answer.
    Ask {
        /// What is asked.
        pause: Arc<Pause>,
        /// Whether the whole batch runs one call after the other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sequential: bool,
    },
    /// It was run elsewhere; this is its result.
    Supplied {
        /// The result, whole.
        result: Arc<CallResult>,
        /// What the model is shown of it, if that is less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Arc<CallResult>>,
    },
}
