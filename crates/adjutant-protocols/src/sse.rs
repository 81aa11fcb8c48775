//! A run as the text of an answer of server-sent events.

use adjutant_agent::Running;
use adjutant_core::Event;
use futures_core::Stream;
use futures_util::stream;
use serde_json::Value;

/// What makes frames of events.
pub(crate) trait Encode: Send + 'static {
    /// What follows the last frame.
    const END: &str;

    fn tell(&mut self, event: &Event) -> Vec<Value>;

    fn broken(&mut self, message: &str) -> Vec<Value>;
}

/// The frames of a run, each a text that can be sent as it is; what follows the last one with them.
pub(crate) fn stream<E: Encode>(running: Running, encoder: E) -> impl Stream<Item = String> + Send + 'static {
    stream::unfold(Some((running, encoder)), async |state| {
        let (mut running, mut encoder) = state?;
        while let Some(event) = running.next().await {
            let text = written(&encoder.tell(&event));
            if !text.is_empty() {
                return Some((text, Some((running, encoder))));
            }
        }
        let why = match running.finish().await {
            Err(error) => error.to_string(),
            Ok(_) => "the run ended without a result".to_owned(),
        };
        Some((written(&encoder.broken(&why)) + E::END, None))
    })
}

fn written(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("data: {frame}\n\n")).collect()
}
