//! AG-UI, the Agent-User Interaction Protocol, 1.0: runs as its events, its input as prompts and answers.
//!
//! Source: <https://docs.ag-ui.com/spec/1.0>, and the schemas of `@ag-ui/core` 1.0.0 (2026-11).

mod encode;
mod input;

use std::fmt::Display;

use adjutant_agent::Running;
use adjutant_core::Event;
use futures_core::Stream;

pub use encode::Encoder;
pub use input::{Resume, RunAgentInput};

use crate::sse;

/// The headers of the answer that [`stream`] is the body of.
pub const HEADERS: [(&str, &str); 2] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
];

/// A run as server-sent events that a client of AG-UI reads: the last one is `RUN_FINISHED` or `RUN_ERROR`.
///
/// Cancel: dropping it cancels the run, as a client does that aborts its request.
pub fn stream(
    running: Running,
    input: &RunAgentInput,
) -> impl Stream<Item = String> + Send + use<> {
    sse::stream(running, Encoder::new(input))
}

/// Converts events from another source: a log, or an agent in another process. They belong to one run or its end; an
/// error gives the reason why they broke off.
///
/// Cancel: as for the stream of events.
pub fn tell<S, E: Display>(
    events: S,
    input: &RunAgentInput,
) -> impl Stream<Item = String> + Send + use<S, E>
where
    S: Stream<Item = Result<Event, E>> + Send + 'static,
{
    sse::told(events, Encoder::new(input))
}
