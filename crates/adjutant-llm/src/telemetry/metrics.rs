//! Metrics of model calls: one `tracing` event for each call, in the form that `tracing-opentelemetry` counts.

use std::time::Duration;

use tracing::Level;

use super::{semconv, spans::int};
use crate::Usage;

/// The target of the events. Their fields begin with `monotonic_counter.`, `histogram.` and `gauge.`; the level is debug.
pub const METRICS_TARGET: &str = "adjutant::metrics";

/// Returns the unit of one of our metrics, which events cannot contain. `None` for other metrics.
///
/// Source: open-telemetry/semantic-conventions-genai, `docs/gen-ai/client-inference.md` (2026); units by UCUM.
pub fn unit_of(metric: &str) -> Option<&'static str> {
    if let Some(name) = metric.strip_prefix("adjutant.fleet.") {
        return Some(if name == "oldest_due" {
            "s"
        } else {
            "{session}"
        });
    }
    let name = metric.strip_prefix("gen_ai.client.inference.")?;
    if name.starts_with("usage.") {
        Some("{token}")
    } else {
        Some("s")
    }
}

/// True if a subscriber is interested. Subscribers that filter events by field names, such as
/// `tracing-opentelemetry`, are queried with one of these fields.
pub(super) fn is_enabled() -> bool {
    tracing::event_enabled!(target: METRICS_TARGET, Level::DEBUG, histogram.gen_ai.client.inference.duration)
}

/// The measures of one call of a model.
pub(super) struct Measured<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) took: Duration,
    pub(super) to_first_chunk: Option<Duration>,
    pub(super) usage: Usage,
    pub(super) error: Option<&'static str>,
}

impl Measured<'_> {
    /// Source: open-telemetry/semantic-conventions-genai, `docs/gen-ai/client-inference.md` (2026).
    pub(super) fn emit(&self) {
        let some = |tokens: u64| (tokens > 0).then(|| int(tokens));
        tracing::event!(
            target: METRICS_TARGET,
            Level::DEBUG,
            { semconv::OPERATION_NAME } = semconv::CHAT,
            { semconv::PROVIDER_NAME } = self.provider,
            { semconv::REQUEST_MODEL } = self.model,
            { semconv::ERROR_TYPE } = self.error,
            { "histogram.gen_ai.client.inference.duration" } = self.took.as_secs_f64(),
            { "histogram.gen_ai.client.inference.time_to_first_chunk" } =
                self.to_first_chunk.map(|it| it.as_secs_f64()),
            { "monotonic_counter.gen_ai.client.inference.usage.input_tokens" } = some(self.usage.input()),
            { "monotonic_counter.gen_ai.client.inference.usage.output_tokens" } = some(self.usage.output),
            { "monotonic_counter.gen_ai.client.inference.usage.cache_read.input_tokens" } =
                some(self.usage.cache_read),
            { "monotonic_counter.gen_ai.client.inference.usage.cache_write.input_tokens" } =
                some(self.usage.cache_write),
            { "monotonic_counter.gen_ai.client.inference.usage.reasoning.output_tokens" } =
                some(self.usage.reasoning),
        );
    }
}
