//! The UI message stream of the AI SDK, v1: runs as its chunks, what `useChat` sends as prompts and answers.
//!
//! Source: <https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol>, and the sources of `ai` 7.0.173 (2026-11). The chunks
//! `reset-step`, `tool-approval-response` and `steering-message` are of version 7: a page needs that one.

mod encode;
mod input;

use std::fmt::Display;

use adjutant_agent::Running;
use adjutant_core::Event;
use futures_core::Stream;

pub use encode::Encoder;
pub use input::{ChatRequest, Given};

use crate::sse;

/// The headers of the answer that [`stream`] is the body of.
pub const HEADERS: [(&str, &str); 4] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-vercel-ai-ui-message-stream", "v1"),
    ("x-accel-buffering", "no"),
];

/// A run as server-sent events that `useChat` reads: the last one is `[DONE]`.
///
/// Cancel: dropping it cancels the run, as `stop` of a page does.
pub fn stream(running: Running, input: &ChatRequest) -> impl Stream<Item = String> + Send + use<> {
    sse::stream(running, Encoder::new(input))
}

/// Converts events from another source: a log, or an agent in another process. They belong to one run or its end; an
/// error gives the reason why they broke off.
///
/// Cancel: as for the stream of events.
pub fn tell<S, E: Display>(
    events: S,
    input: &ChatRequest,
) -> impl Stream<Item = String> + Send + use<S, E>
where
    S: Stream<Item = Result<Event, E>> + Send + 'static,
{
    sse::told(events, Encoder::new(input))
}
