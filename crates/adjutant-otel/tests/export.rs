//! What a traced model call leaves at a collector, and what happens without one.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use adjutant_agent::{Flush, Journal, MemoryJournal, Owner, Work};
use adjutant_fleet::Fleet;
use adjutant_llm::{Options, Request, Script, ScriptedModel, Usage, complete, telemetry::Traced};
use adjutant_otel::{ErrorKind, Otel};
use adjutant_tool::Cancel;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{Metric, metric, number_data_point},
    trace::v1::span::SpanKind,
};
use prost::Message;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::filter_fn,
    layer::{Context, SubscriberExt},
};

/// One request that the collector got: its path, a header of ours, and its body.
type Got = (String, Option<String>, Vec<u8>);

/// A collector that takes everything; the address, and what it got.
fn collector() -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            let mut line = String::new();
            let sender = sender.clone();
            thread::spawn(move || {
                while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                    let path = line.split(' ').nth(1).expect("a request line").to_owned();
                    let (mut length, mut key) = (0, None);
                    loop {
                        line.clear();
                        reader.read_line(&mut line).expect("a header");
                        let Some((name, value)) = line.trim_end().split_once(": ") else {
                            break;
                        };
                        match name.to_ascii_lowercase().as_str() {
                            "content-length" => length = value.parse().expect("a number"),
                            "x-key" => key = Some(value.to_owned()),
                            _ => {}
                        }
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).expect("the body");
                    sender.send((path, key, body)).expect("the test listens");
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .expect("an answer");
                    line.clear();
                }
            });
        }
    });
    (address, receiver)
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => format!("{number:?}"),
        Some(Value::BoolValue(is)) => is.to_string(),
        Some(Value::ArrayValue(list)) => {
            let texts: Vec<_> = list
                .values
                .iter()
                .map(|it| text(it.value.as_ref()))
                .collect();
            format!("[{}]", texts.join(", "))
        }
        other => unreachable!("an attribute of another kind: {other:?}"),
    }
}

fn attributes(of: &[KeyValue]) -> BTreeMap<String, String> {
    let pair = |it: &KeyValue| {
        (
            it.key.clone(),
            text(it.value.as_ref().and_then(|it| it.value.as_ref())),
        )
    };
    of.iter().map(pair).collect()
}

fn expect(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

async fn ask() {
    let usage = Usage {
        input_uncached: 12,
        output: 5,
        ..Usage::default()
    };
    let model = Traced::new(ScriptedModel::new([Script::new()
        .text("Good morning.")
        .usage(usage)]));
    let options = Options {
        max_output_tokens: Some(64),
        stop: vec!["END".into(), "FIN".into()],
        ..Options::default()
    };
    complete(&model, Request::new().user("Hello!").options(options))
        .await
        .expect("the scripted model answers");
}

/// Takes what the exports of one program have sent.
fn take(got: &Receiver<Got>) -> (ExportTraceServiceRequest, ExportMetricsServiceRequest) {
    let mut bodies: BTreeMap<String, (Option<String>, Vec<u8>)> = BTreeMap::new();
    for (path, key, body) in got.try_iter() {
        assert_eq!(
            bodies.insert(path, (key, body)),
            None,
            "one request of each kind"
        );
    }
    assert_eq!(
        bodies.keys().collect::<Vec<_>>(),
        ["/v1/metrics", "/v1/traces"]
    );
    assert!(
        bodies
            .values()
            .all(|(key, _)| key.as_deref() == Some("abc")),
        "the header is sent"
    );
    let spans = ExportTraceServiceRequest::decode(&*bodies["/v1/traces"].1).expect("protobuf");
    (
        spans,
        ExportMetricsServiceRequest::decode(&*bodies["/v1/metrics"].1).expect("protobuf"),
    )
}

#[tokio::test]
async fn shutdown_sends_span_and_metrics_when_a_traced_model_was_asked() {
    let (address, got) = collector();
    let otel =
        Otel::new(format!("{address}/"), "clerk").attribute("deployment.environment.name", "test");
    let otel = otel
        .header("x-key", "abc")
        .flush_limit(Duration::from_secs(60));
    let (layer, exporting) = otel.layer().expect("an export");
    {
        let _listening =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        ask().await;
        tracing::info_span!(target: "hyper_util::client", "below").in_scope(|| {});
        tracing::debug_span!("too fine").in_scope(|| {});
    }
    exporting.shutdown().expect("the collector takes it");
    let (spans, metrics) = take(&got);

    let [of_program] = &spans.resource_spans[..] else {
        panic!("one program: {spans:?}")
    };
    let program = attributes(&of_program.resource.as_ref().expect("a program").attributes);
    assert_eq!(
        program,
        expect(&[
            ("service.name", "clerk"),
            ("deployment.environment.name", "test")
        ])
    );
    let [of_scope] = &of_program.scope_spans[..] else {
        panic!("one scope: {spans:?}")
    };
    let [span] = &of_scope.spans[..] else {
        panic!("one span: {spans:?}")
    };
    assert_eq!(
        (&*span.name, span.kind, &span.events),
        ("chat model", SpanKind::Client as i32, &Vec::new())
    );
    let mut said = attributes(&span.attributes);
    assert!(
        said.remove("gen_ai.response.time_to_first_chunk").is_some(),
        "the time is measured"
    );
    let names = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "scripted"),
        ("gen_ai.request.max_tokens", "64"),
        ("gen_ai.request.model", "model"),
        ("gen_ai.request.stop_sequences", "[END, FIN]"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.response.finish_reasons", "[stop]"),
        ("gen_ai.response.model", "model"),
        ("gen_ai.usage.input_tokens", "12"),
        ("gen_ai.usage.output_tokens", "5"),
    ];
    assert_eq!(said, expect(&names));

    let [of_scope] = &metrics.resource_metrics[0].scope_metrics[..] else {
        panic!("one scope: {metrics:?}")
    };
    let mut sums = BTreeMap::new();
    let mut others = Vec::new();
    for metric in &of_scope.metrics {
        let unit = if metric.name.contains(".usage.") {
            "{token}"
        } else {
            "s"
        };
        assert_eq!(metric.unit, unit, "{}", metric.name);
        match metric.data.as_ref().expect("data") {
            metric::Data::Sum(sum) => {
                let point = &sum.data_points[0];
                let names = [
                    ("gen_ai.operation.name", "chat"),
                    ("gen_ai.provider.name", "scripted"),
                    ("gen_ai.request.model", "model"),
                ];
                assert_eq!(attributes(&point.attributes), expect(&names));
                sums.insert(metric.name.as_str(), point.value);
            }
            _ => others.push(metric.name.as_str()),
        }
    }
    others.sort_unstable();
    let input = number_data_point::Value::AsInt(12);
    let output = number_data_point::Value::AsInt(5);
    let expect = [
        ("gen_ai.client.inference.usage.input_tokens", Some(input)),
        ("gen_ai.client.inference.usage.output_tokens", Some(output)),
    ];
    assert_eq!(sums.into_iter().collect::<Vec<_>>(), expect);
    let histograms = [
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
    ];
    assert_eq!(others, histograms);
}

#[tokio::test(start_paused = true)]
async fn worker_tells_what_there_is_to_do_when_metrics_are_exported() {
    let journal = MemoryJournal::default();
    for (log, work) in [
        ("due", Work::Open),
        (
            "waits",
            Work::Parked {
                on: "a word".into(),
                until_ms: None,
            },
        ),
    ] {
        let mut log = journal
            .own(&log.into(), &Owner::default())
            .await
            .expect("it is made");
        log.mark(work);
        log.append(&[], Flush::Lazy).await.expect("it is kept");
    }
    let (address, got) = collector();
    // In virtual time no thread is waited for: the limit is never reached.
    let (layer, exporting) = Otel::new(address, "worker").layer().expect("an export");
    {
        let _listening =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let stop = Cancel::new();
        let fleet = Fleet::new(journal, |_| Err("nobody is there".into()));
        let worker = tokio::spawn(fleet.run(stop.clone()));
        // It has counted once more since what was due was set aside.
        tokio::time::sleep(Duration::from_secs(20)).await;
        stop.cancel();
        worker.await.expect("no panic").expect("it ends");
    }
    exporting.shutdown().expect("the collector takes it");
    let body = got
        .try_iter()
        .find(|(path, ..)| path == "/v1/metrics")
        .expect("metrics are sent")
        .2;
    let metrics = ExportMetricsServiceRequest::decode(&*body).expect("protobuf");
    let gauge = |metric: &Metric| match metric.data.as_ref().expect("data") {
        metric::Data::Gauge(gauge) => (
            metric.name.clone(),
            metric.unit.clone(),
            gauge.data_points[0].value,
        ),
        other => unreachable!("another kind: {other:?}"),
    };
    let mut gauges: Vec<_> = metrics.resource_metrics[0].scope_metrics[0]
        .metrics
        .iter()
        .map(gauge)
        .collect();
    gauges.sort_by(|one, other| one.0.cmp(&other.0));
    let sessions = |name: &str, number| {
        let value = Some(number_data_point::Value::AsInt(number));
        (
            format!("adjutant.fleet.{name}"),
            "{session}".to_owned(),
            value,
        )
    };
    let none = Some(number_data_point::Value::AsDouble(0.0));
    let oldest = ("adjutant.fleet.oldest_due".to_owned(), "s".to_owned(), none);
    let expect = vec![
        sessions("aside", 1),
        sessions("at_work", 0),
        sessions("due", 0),
        oldest,
        sessions("parked", 1),
    ];
    assert_eq!(gauges, expect);
}

/// Counts what it is told.
struct Told(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Told {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn worker_tells_its_numbers_when_nothing_but_metrics_is_wanted() {
    let told = Arc::new(AtomicU64::new(0));
    // As the layer of `tracing-opentelemetry` for metrics chooses.
    let metrics = filter_fn(|it| {
        it.is_event()
            && it
                .fields()
                .iter()
                .any(|field| field.name().starts_with("gauge."))
    });
    let layer = Told(Arc::clone(&told)).with_filter(metrics);
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let worker =
        Fleet::new(MemoryJournal::default(), |_| Err("nothing is due".into())).run(Cancel::new());
    assert!(
        tokio::time::timeout(Duration::from_secs(20), worker)
            .await
            .is_err(),
        "it has no end of its own"
    );
    assert_eq!(told.load(Ordering::Relaxed), 2, "at once, and 15 s later");
}

#[tokio::test]
async fn shutdown_gives_up_when_the_collector_does_not_answer_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", silent.local_addr().expect("it listens"));
    let (layer, exporting) = Otel::new(address, "clerk")
        .flush_limit(Duration::ZERO)
        .layer()
        .expect("an export");
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    ask().await;
    let error = exporting.flush().expect_err("nobody answers");
    assert_eq!(error.message(), "telemetry was not sent within 0ns");
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Export, true)
    );
    let error = exporting.shutdown().expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Export);
    ask().await;
}

#[test]
fn layer_refuses_when_the_endpoint_is_no_http_address() {
    for endpoint in ["", "localhost:4318", "file:///tmp"] {
        let layer = Otel::new(endpoint, "clerk").layer::<tracing_subscriber::Registry>();
        let error = layer.map(|_| ()).expect_err("it is refused");
        assert_eq!(
            (error.kind(), error.message()),
            (
                ErrorKind::Endpoint,
                &*format!("not an HTTP address: {endpoint:?}")
            )
        );
    }
    let shown = format!(
        "{:?}",
        Otel::new("http://a.example", "clerk").header("x-key", "secret")
    );
    assert!(
        shown.contains("x-key") && !shown.contains("secret"),
        "{shown}"
    );
}
