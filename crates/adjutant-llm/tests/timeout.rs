//! A stream that takes too long ends in an error, and only then.

use std::time::Duration;

use adjutant_llm::{
    Chunk, Error, ErrorKind, Gate, Model, ModelInfo, Request, Script, ScriptedModel, Timeout,
    TimeoutLimits, Usage, model_fn,
};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, advance, sleep};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A model whose start, first delta and end come after these many seconds each.
fn slow(waits: [u64; 3]) -> impl Model + 'static {
    model_fn(ModelInfo::new("slow/model"), move |request| {
        let whole =
            ScriptedModel::new([Script::new().text("hi").usage(Usage::default())]).stream(request);
        let waits = [waits[0], 0, waits[1], 0, 0, waits[2]].map(secs);
        whole
            .zip(stream::iter(waits))
            .then(async |(item, wait)| {
                sleep(wait).await;
                item
            })
            .boxed()
    })
}

/// How long the stream takes, how many chunks it gives, and the error that it ends in.
#[track_caller]
fn check(model: Timeout, expect: (u64, usize, Option<&str>)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let began = Instant::now();
        let mut stream = model.stream(Request::new());
        let (mut chunks, mut failure) = (0, None);
        while let Some(item) = stream.next().await {
            match item {
                Ok(_) => chunks += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Timeout);
                    failure = Some(error.to_string());
                }
            }
        }
        assert!(stream.next().await.is_none(), "nothing follows the end");
        assert_eq!(
            (began.elapsed().as_secs(), chunks, failure.as_deref()),
            expect
        );
    });
}

#[test]
fn timeout_ends_the_stream_when_a_limit_is_passed() {
    check(
        Timeout::new(slow([9, 9, 9]), TimeoutLimits::default()),
        (27, 6, None),
    );
    check(
        Timeout::new(
            slow([9, 9, 9]),
            TimeoutLimits {
                total: Some(secs(28)),
                first_chunk: Some(secs(10)),
                idle: Some(secs(10)),
            },
        ),
        (27, 6, None),
    );
    let late = "slow/model did not begin to answer within 8s";
    check(
        Timeout::new(
            slow([9, 0, 0]),
            TimeoutLimits {
                first_chunk: Some(secs(8)),
                ..TimeoutLimits::default()
            },
        ),
        (8, 0, Some(late)),
    );
    check(
        Timeout::new(
            slow([9, 1, 1]),
            TimeoutLimits {
                idle: Some(secs(8)),
                ..TimeoutLimits::default()
            },
        ),
        (11, 6, None),
    );
    let stalled = "nothing more came from slow/model within 8s";
    check(
        Timeout::new(
            slow([0, 9, 0]),
            TimeoutLimits {
                idle: Some(secs(8)),
                ..TimeoutLimits::default()
            },
        ),
        (8, 2, Some(stalled)),
    );
    check(
        Timeout::new(
            slow([7, 7, 9]),
            TimeoutLimits {
                idle: Some(secs(8)),
                ..TimeoutLimits::default()
            },
        ),
        (22, 5, Some(stalled)),
    );
    let soon = "nothing more came from slow/model within 2s";
    check(
        Timeout::new(
            slow([1, 9, 0]),
            TimeoutLimits {
                first_chunk: Some(secs(10)),
                idle: Some(secs(2)),
                ..TimeoutLimits::default()
            },
        ),
        (3, 2, Some(soon)),
    );
    let long = "slow/model did not finish within 20s";
    check(
        Timeout::new(
            slow([7, 7, 9]),
            TimeoutLimits {
                total: Some(secs(20)),
                idle: Some(secs(10)),
                ..TimeoutLimits::default()
            },
        ),
        (20, 5, Some(long)),
    );
    check(
        Timeout::new(
            slow([7, 7, 9]),
            TimeoutLimits {
                total: Some(Duration::MAX),
                idle: Some(Duration::MAX),
                ..TimeoutLimits::default()
            },
        ),
        (23, 6, None),
    );
}

#[tokio::test(start_paused = true)]
async fn timeout_does_not_count_when_the_reader_takes_its_time() {
    let gate = Gate::default();
    let scripted = ScriptedModel::new([Script::new()
        .text("hi")
        .wait_at(0, &gate)
        .usage(Usage::default())]);
    let mut stream = Timeout::new(
        scripted,
        TimeoutLimits {
            first_chunk: Some(secs(5)),
            idle: Some(secs(5)),
            ..TimeoutLimits::default()
        },
    )
    .stream(Request::new());
    advance(secs(60)).await;
    for _ in 0..2 {
        assert!(matches!(
            stream.next().await,
            Some(Ok(Chunk::Start { .. } | Chunk::Open { .. }))
        ));
        advance(secs(60)).await;
    }
    let reading =
        tokio::spawn(async move { stream.map(|item| item.is_ok()).collect::<Vec<_>>().await });
    gate.wait_until_reached().await;
    advance(secs(4)).await;
    gate.open();
    assert_eq!(reading.await.expect("nothing panics"), [true; 4]);
}

#[tokio::test(start_paused = true)]
async fn timeout_ends_the_stream_when_it_never_pauses() {
    let endless = model_fn(ModelInfo::new("endless/model"), |_| {
        stream::repeat_with(|| {
            Ok(Chunk::Usage {
                usage: Usage::default(),
                raw: Default::default(),
            })
        })
        .boxed()
    });
    let mut stream = Timeout::new(
        endless,
        TimeoutLimits {
            total: Some(secs(10)),
            ..TimeoutLimits::default()
        },
    )
    .stream(Request::new());
    let mut failure = None;
    for _ in 0..100 {
        if let Some(Err(error)) = stream.next().await {
            failure = Some(error);
            break;
        }
        advance(secs(1)).await;
    }
    let expect = Error::new(
        ErrorKind::Timeout,
        "endless/model did not finish within 10s",
    );
    assert_eq!(failure, Some(expect));
}

#[tokio::test(start_paused = true)]
async fn timeout_ends_the_request_when_a_limit_is_passed() {
    let held = std::sync::Arc::new(());
    let seen = std::sync::Arc::downgrade(&held);
    let stalls = model_fn(ModelInfo::new("stalls/model"), move |_| {
        let held = held.clone();
        let until_dropped = move |_: &mut std::task::Context<'_>| {
            let _ = &held;
            std::task::Poll::Pending
        };
        stream::poll_fn(until_dropped).boxed()
    });
    let mut stream = Timeout::new(
        stalls,
        TimeoutLimits {
            total: Some(secs(1)),
            ..TimeoutLimits::default()
        },
    )
    .stream(Request::new());
    assert_eq!(seen.strong_count(), 1, "the stream runs");
    assert_eq!(stream.next().await.map(|item| item.is_err()), Some(true));
    assert_eq!(seen.strong_count(), 0, "the stream is gone");
}
