//! When a model fails, the next one that may help answers, and the reader is told.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{
    Chunk, ChunkStream, Collector, Error, ErrorKind, Fallback, Model, ModelInfo, NanoUsd, Price,
    Request, Retry, Script, ScriptedModel, Usage, WarningKind,
};
use futures_util::StreamExt;

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, format!("{kind:?}"))
}

fn used(output: u64) -> Usage {
    Usage {
        output,
        ..Usage::default()
    }
}

fn model(name: &str, window: u64, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts).info(ModelInfo {
        context_window: window,
        ..ModelInfo::new(name)
    }))
}

fn fails(kind: ErrorKind) -> Script {
    Script::new().usage(Usage::default()).fail(error(kind))
}

fn says(text: &str) -> Script {
    Script::new().text(text).usage(used(1))
}

/// The chunks in short; each passes the grammar.
async fn drain(mut stream: ChunkStream) -> Vec<String> {
    let mut collector = Collector::default();
    let mut seen = Vec::new();
    while let Some(item) = stream.next().await {
        let chunk = match item {
            Ok(chunk) => chunk,
            Err(error) => {
                seen.push(format!("error {error}"));
                continue;
            }
        };
        collector.push(&chunk).expect("the grammar holds");
        match chunk {
            Chunk::Start {
                attempt,
                model,
                warnings,
                ..
            } => {
                assert!(
                    warnings
                        .iter()
                        .all(|warning| warning.kind == WarningKind::FellBack)
                );
                let warnings: Vec<String> = warnings.iter().map(|it| format!(", {it}")).collect();
                seen.push(format!("start {attempt} {model}{}", warnings.concat()));
            }
            Chunk::Delta { text, .. } => seen.push(text),
            Chunk::Retracted {
                attempt,
                cause,
                usage,
            } => {
                seen.push(format!(
                    "retracted {attempt}: {cause}, used {}",
                    usage.output
                ));
            }
            Chunk::Done(reply) => seen.push(format!("done {}", reply.text())),
            _ => {}
        }
    }
    assert!(stream.next().await.is_none(), "nothing follows the end");
    seen
}

#[tokio::test]
async fn fallback_asks_the_next_model_when_the_kind_of_error_says_so() {
    use ErrorKind::*;
    for kind in [
        RateLimited,
        Overloaded,
        Network,
        Timeout,
        Protocol,
        Auth,
        Config,
    ] {
        let both =
            Fallback::new(model("a/1", 10, [fails(kind)])).or(model("b/2", 10, [says("ok")]));
        let start = format!("start 1 b/2, a/1 failed: {kind:?}");
        assert_eq!(
            drain(both.stream(Request::new())).await,
            [start.as_str(), "ok", "done ok"]
        );
    }
    for kind in [Invalid, Overflow, Refused, Cancelled] {
        let next = model("b/2", 10, [says("never")]);
        let both = Fallback::new(model("a/1", 10, [fails(kind)])).or(Arc::clone(&next));
        assert_eq!(
            drain(both.stream(Request::new())).await,
            ["start 0 a/1".into(), format!("error {kind:?}")]
        );
        assert_eq!(next.requests().len(), 0);
    }
    let both = Fallback::new(model("a/1", 10, [fails(Refused), fails(Network)])).or(model(
        "b/2",
        10,
        [says("ok")],
    ));
    let both = Fallback {
        kinds: [Refused].into(),
        ..both
    };
    let expect = ["start 1 b/2, a/1 failed: Refused", "ok", "done ok"];
    assert_eq!(drain(both.stream(Request::new())).await, expect);
    assert_eq!(
        drain(both.stream(Request::new())).await,
        ["start 0 a/1", "error Network"]
    );
}

#[tokio::test]
async fn fallback_skips_smaller_models_when_the_request_is_too_large() {
    let smaller = model("b/2", 5, [says("never")]);
    let models = Fallback::new(model("a/1", 10, [fails(ErrorKind::Overflow)]))
        .or(Arc::clone(&smaller))
        .or(model("c/3", 10, []))
        .or(model("d/4", 11, [says("ok")]));
    let expect = ["start 1 d/4, a/1 failed: Overflow", "ok", "done ok"];
    assert_eq!(drain(models.stream(Request::new())).await, expect);
    assert_eq!(smaller.requests().len(), 0);
}

#[tokio::test]
async fn fallback_numbers_through_and_ends_with_the_last_error_when_all_fail() {
    let models = ["a/1", "b/2", "c/3"].map(|name| model(name, 10, [fails(ErrorKind::Overloaded)]));
    let [a, b, c] = models.clone();
    let mut request = Request::new().user("Hi!");
    request.attempt = 4;
    let seen = drain(Fallback::new(a).or(b).or(c).stream(request.clone())).await;
    assert_eq!(
        seen,
        [
            "start 6 c/3, a/1 failed: Overloaded, b/2 failed: Overloaded",
            "error Overloaded"
        ]
    );
    for (attempt, model) in (4..).zip(models) {
        request.attempt = attempt;
        assert_eq!(model.requests(), [request.clone()]);
    }
}

#[tokio::test]
async fn fallback_takes_back_what_was_shown_when_it_may() {
    let models = || {
        let half = Script::new()
            .text("half")
            .usage(used(3))
            .fail(error(ErrorKind::Network));
        Fallback::new(model("a/1", 10, [half])).or(model("b/2", 10, [says("whole")]))
    };
    assert_eq!(
        drain(models().stream(Request::new())).await,
        ["start 0 a/1", "half", "error Network"]
    );
    let expect = [
        "start 0 a/1",
        "half",
        "retracted 0: Network, used 3",
        "start 1 b/2, a/1 failed: Network",
        "whole",
        "done whole",
    ];
    assert_eq!(
        drain(
            Fallback {
                retract: true,
                ..models()
            }
            .stream(Request::new())
        )
        .await,
        expect
    );
}

#[tokio::test(start_paused = true)]
async fn fallback_tells_the_failures_when_models_are_tried_again_first() {
    let silent = || {
        Script::new()
            .usage(used(2))
            .fail(error(ErrorKind::Overloaded))
    };
    let first = Retry::new(model("a/1", 10, [silent(), silent(), silent()]));
    let second = Retry::new(model("b/2", 10, [silent(), says("ok")]));
    let began = tokio::time::Instant::now();
    let seen = drain(Fallback::new(first).or(second).stream(Request::new())).await;
    let expect = [
        "start 0 a/1",
        "retracted 0: Overloaded, used 2",
        "start 1 a/1",
        "retracted 1: Overloaded, used 2",
        "start 2 a/1",
        "retracted 2: Overloaded, used 2",
        "start 3 b/2, a/1 failed: Overloaded",
        "retracted 3: Overloaded, used 2",
        "start 4 b/2, a/1 failed: Overloaded",
        "ok",
        "done ok",
    ];
    assert_eq!(seen, expect);
    assert!(
        began.elapsed() <= Duration::from_millis(500 + 1_000 + 500),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn fallback_knows_the_model_that_answered_when_it_is_nested() {
    let priced = |name: &str, output| {
        let info = ModelInfo {
            price: Some(Price::dollars(0.0, output, 0.0, 0.0)),
            ..ModelInfo::new(name)
        };
        ScriptedModel::new([]).info(info)
    };
    let inner = Fallback::new(priced("b/2", 2.0)).or(priced("c/3", 3.0));
    let models = Fallback::new(priced("a/1", 1.0)).or(Retry::new(inner));
    let cost = |name: &str| models.info_of(&name.into()).cost(&used(1_000_000));
    let dollars = |it: u64| Some(NanoUsd(it * 1_000_000_000));
    assert_eq!(
        ["a/1", "b/2", "c/3", "d/4"].map(cost),
        [dollars(1), dollars(2), dollars(3), dollars(1)]
    );
    assert_eq!(models.info().id.as_str(), "a/1");
}

#[tokio::test]
async fn fallback_bounds_the_warning_when_the_error_is_long() {
    let long = Script::new()
        .usage(Usage::default())
        .fail(Error::new(ErrorKind::Network, "é".repeat(1_000)));
    let models = Fallback::new(model("a/1", 10, [long])).or(model("b/2", 10, [says("ok")]));
    let start = drain(models.stream(Request::new())).await.swap_remove(0);
    assert_eq!(
        start,
        format!("start 1 b/2, a/1 failed: {}", "é".repeat(300))
    );
}
