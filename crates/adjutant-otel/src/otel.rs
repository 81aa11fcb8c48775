//! The set-up: where telemetry goes, under which name, and what of it.

use std::{collections::HashMap, fmt, thread, time::Duration};

use adjutant_llm::telemetry::{METRICS_TARGET, unit_of};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument, SdkMeterProvider, Stream},
    trace::SdkTracerProvider,
};
use reqwest::blocking::Client;
use tracing::{Level, Metadata, Subscriber};
use tracing_opentelemetry::MetricsLayer;
use tracing_subscriber::{
    Layer,
    filter::filter_fn,
    layer::SubscriberExt,
    registry::{LookupSpan, Registry},
    util::SubscriberInitExt,
};

use crate::{
    Error, ErrorKind,
    exporting::{Exporting, Providers},
    lists::Lists,
};

/// The longest time that one request to the endpoint may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The longest time that the end of an export may take, unless it is set.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// The name of the instrumentation.
const SCOPE: &str = "adjutant";
/// The crates whose telemetry is never exported: the export itself would make more of it.
const BELOW: [&str; 10] = [
    "h2",
    "hyper",
    "hyper_rustls",
    "hyper_util",
    "opentelemetry",
    "opentelemetry_http",
    "opentelemetry_otlp",
    "opentelemetry_sdk",
    "reqwest",
    "rustls",
];

/// An export of spans and metrics over OTLP/HTTP, in protobuf.
///
/// Spans and events of level info and above are exported from all crates except the HTTP stack, and metrics in the
/// form of `tracing-opentelemetry`. Full queues and failed requests lose only telemetry. Headers, compression and
/// batch sizes follow the variables of the OpenTelemetry SDK unless the program sets them.
#[must_use]
pub struct Otel {
    endpoint: String,
    service: String,
    attributes: Vec<KeyValue>,
    headers: HashMap<String, String>,
    flush_limit: Duration,
}

impl Otel {
    /// An export to a collector, for example `http://localhost:4318`; `/v1/traces` and `/v1/metrics` are added.
    pub fn new(endpoint: impl Into<String>, service: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            service: service.into(),
            attributes: Vec::new(),
            headers: HashMap::new(),
            flush_limit: FLUSH_LIMIT,
        }
    }

    /// Adds an attribute of the program, for example `deployment.environment.name`.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes
            .push(KeyValue::new(name.into(), value.into()));
        self
    }

    /// Adds an HTTP header, for example a key of the collector. It is never printed.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets how long a flush and the end may take; 2 seconds without it.
    pub fn flush_limit(mut self, limit: Duration) -> Self {
        self.flush_limit = limit;
        self
    }

    /// Makes this the subscriber of the whole program.
    ///
    /// # Errors
    /// `Installed` if the program has one already; else as [`layer`](Self::layer).
    pub fn install(self) -> Result<Exporting, Error> {
        let (layer, exporting) = self.layer::<Registry>()?;
        let installed = tracing_subscriber::registry().with(layer).try_init();
        installed.map_err(|error| {
            Error::new(
                ErrorKind::Installed,
                "the program has a subscriber; hint: add the layer to it",
            )
            .with_source(error)
        })?;
        Ok(exporting)
    }

    /// Creates a layer, for a program with its own subscriber.
    ///
    /// # Errors
    /// `Endpoint` if it is no HTTP address, `Start` if the exporters could not be made.
    pub fn layer<S>(self) -> Result<(impl Layer<S> + Send + Sync, Exporting), Error>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let providers = self.providers()?;
        let tracer = providers.spans.tracer(SCOPE);
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_exported));
        let metrics = MetricsLayer::new(providers.metrics.clone());
        Ok((
            spans.and_then(metrics),
            Exporting::new(providers, self.flush_limit),
        ))
    }

    fn providers(&self) -> Result<Providers, Error> {
        let base = self.endpoint.trim_end_matches('/');
        let url = reqwest::Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() {
            return Err(Error::new(
                ErrorKind::Endpoint,
                format!("not an HTTP address: {:?}", self.endpoint),
            ));
        }
        let client = client()?;
        let failed =
            |error| Error::new(ErrorKind::Start, "could not make an exporter").with_source(error);
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client.clone())
            .with_endpoint(format!("{base}/v1/traces"))
            .with_headers(self.headers.clone())
            .build()
            .map_err(failed)?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{base}/v1/metrics"))
            .with_headers(self.headers.clone())
            .build()
            .map_err(failed)?;
        let about = Resource::builder_empty()
            .with_service_name(self.service.clone())
            .with_attributes(self.attributes.clone())
            .build();
        Ok(Providers {
            spans: SdkTracerProvider::builder()
                .with_resource(about.clone())
                .with_batch_exporter(Lists(spans))
                .build(),
            metrics: SdkMeterProvider::builder()
                .with_resource(about)
                .with_periodic_exporter(metrics)
                .with_view(|metric: &Instrument| {
                    Stream::builder()
                        .with_unit(unit_of(metric.name())?)
                        .build()
                        .ok()
                })
                .build(),
        })
    }
}

/// The client of both exporters, created on a separate thread because that blocks, which is not allowed on a
/// runtime's thread.
fn client() -> Result<Client, Error> {
    // Fails only if the program chose a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = || {
        Error::new(
            ErrorKind::Start,
            "could not make an HTTP client for telemetry",
        )
    };
    let made = thread::Builder::new()
        .name("adjutant-otel-start".into())
        .spawn(|| {
            Client::builder()
                .timeout(REQUEST_LIMIT)
                .redirect(reqwest::redirect::Policy::none())
                .build()
        })
        .map_err(|error| failed().with_source(error))?;
    made.join()
        .map_err(|_| failed())?
        .map_err(|error| failed().with_source(error))
}

fn is_exported(about: &Metadata<'_>) -> bool {
    let target = about.target();
    let crate_name = target.split("::").next().unwrap_or(target);
    *about.level() <= Level::INFO && target != METRICS_TARGET && !BELOW.contains(&crate_name)
}

impl fmt::Debug for Otel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otel")
            .field("endpoint", &self.endpoint)
            .field("service", &self.service)
            .field("attributes", &self.attributes)
            .field("headers", &self.headers.keys())
            .field("flush_limit", &self.flush_limit)
            .finish()
    }
}
