//! Spans and metrics of model calls, agents and tools, as `tracing` knows them, under the names of OpenTelemetry.
//!
//! Nothing is exported here, and nothing is paid where no subscriber is interested.

mod messages;
mod metrics;
pub mod semconv;
mod spans;
mod traced;

use serde::{Deserialize, Serialize};

pub use metrics::{METRICS_TARGET, unit_of};
pub use spans::{agent_span, record_error, record_result, record_usage, tool_span};
pub use traced::Traced;

/// The choice of whether spans hold messages. Messages are likely to hold data that only their author should read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Contents {
    /// They do not.
    #[default]
    Omitted,
    /// They do: messages, arguments and results, without the bytes of pictures and documents.
    Recorded,
}
