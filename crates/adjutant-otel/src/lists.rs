//! Makes lists of attributes that `tracing`, which knows no lists, holds as JSON text.

use std::time::Duration;

use adjutant_llm::telemetry::semconv;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

/// The attributes that the conventions define as lists of texts.
const LISTS: [&str; 2] = [
    semconv::REQUEST_STOP_SEQUENCES,
    semconv::RESPONSE_FINISH_REASONS,
];

/// An exporter whose spans hold lists where the conventions want them.
#[derive(Debug)]
pub(crate) struct Lists<E>(pub(crate) E);

impl<E: SpanExporter> SpanExporter for Lists<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        batch
            .iter_mut()
            .flat_map(|span| &mut span.attributes)
            .for_each(spread);
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn spread(attribute: &mut KeyValue) {
    if !LISTS.contains(&attribute.key.as_str()) {
        return;
    }
    let Value::String(text) = &attribute.value else {
        return;
    };
    if let Ok(texts) = serde_json::from_str::<Vec<String>>(text.as_str()) {
        let texts = texts.into_iter().map(StringValue::from).collect();
        attribute.value = Value::Array(Array::String(texts));
    }
}
