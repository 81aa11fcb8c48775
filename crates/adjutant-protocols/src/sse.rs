//! Events as the text of an answer of server-sent events: of a live run, or of any other source.

use std::fmt::Display;

use adjutant_agent::Running;
use adjutant_core::Event;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use serde_json::Value;

/// Converts events to frames.
pub(crate) trait Encode: Send + 'static {
    /// The text after the last frame.
    const END: &str;

    fn tell(&mut self, event: &Event) -> Vec<Value>;

    fn broken(&mut self, message: &str) -> Vec<Value>;
}

/// The frames of a run, each a text that can be sent as it is; what follows the last one with them.
pub(crate) fn stream<E: Encode>(
    running: Running,
    encoder: E,
) -> impl Stream<Item = String> + Send + 'static {
    let events = stream::unfold(Some(running), async |running| {
        let mut running = running?;
        match running.next().await {
            Some(event) => Some((Ok(event), Some(running))),
            None => running.finish().await.err().map(|error| (Err(error), None)),
        }
    });
    told(events, encoder)
}

/// The same of events from elsewhere.
pub(crate) fn told<E: Encode, F: Display>(
    events: impl Stream<Item = Result<Event, F>> + Send + 'static,
    encoder: E,
) -> impl Stream<Item = String> + Send + 'static {
    stream::unfold(Some((Box::pin(events), encoder)), async |state| {
        let (mut events, mut encoder) = state?;
        let why = loop {
            match events.next().await {
                Some(Ok(event)) => {
                    let text = written(&encoder.tell(&event));
                    if !text.is_empty() {
                        return Some((text, Some((events, encoder))));
                    }
                }
                Some(Err(error)) => break error.to_string(),
                None => break "the run ended without a result".to_owned(),
            }
        };
        Some((written(&encoder.broken(&why)) + E::END, None))
    })
}

fn written(frames: &[Value]) -> String {
    frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect()
}
