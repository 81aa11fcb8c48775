//! Requests wait until the shared limits allow them, in order, and nobody waits for ever.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{
    Chunk, ChunkStream, Error, ErrorKind, Gate, Limiter, Model, ModelInfo, Options, PerMinute,
    RateLimit, RateLimits, Request, Retry, Script, ScriptedModel, Usage, complete, model_fn,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use proptest::prelude::*;
use tokio::time::Instant;

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_uncached: input,
        output,
        ..Usage::default()
    }
}

fn says(input: u64, output: u64) -> Script {
    Script::new().text("ok").usage(usage(input, output))
}

fn scripted(scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts))
}

/// A request whose input is estimated to have this many tokens, at least 5, and whose output one.
fn request(tokens: u64) -> Request {
    let text = "abcd".repeat(usize::try_from(tokens - 4).expect("a small number"));
    let request = Request::new().user(text).options(Options {
        max_output_tokens: Some(1),
        ..Options::default()
    });
    assert_eq!(request.entries.tokens(), tokens);
    request
}

/// When each of the requests has ended, in milliseconds; all are made at once, in this order.
async fn ends(
    model: &impl Model,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<(usize, u64)> {
    let began = Instant::now();
    let all: FuturesUnordered<_> = requests
        .into_iter()
        .enumerate()
        .map(|(number, request)| async move {
            complete(model, request)
                .await
                .expect("every request is answered");
            (number, began.elapsed().as_millis() as u64)
        })
        .collect();
    all.collect().await
}

/// Polls once: whether the stream waits.
fn waits(stream: &mut ChunkStream) -> bool {
    stream.next().now_or_never().is_none()
}

#[tokio::test(start_paused = true)]
async fn limiter_spreads_requests_when_there_are_too_many() {
    let limiter = Limiter::new(PerMinute {
        requests: Some(2),
        ..PerMinute::default()
    });
    let model = RateLimit::new(scripted((0..5).map(|_| says(1, 1))), limiter.clone());
    let ends = ends(&model, (0..5).map(|_| request(5))).await;
    assert_eq!(
        ends,
        [(0, 0), (1, 0), (2, 30_000), (3, 60_000), (4, 90_000)]
    );
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn limiter_spreads_tokens_when_models_and_agents_share_it() {
    let limiter = Limiter::new(PerMinute {
        input_tokens: Some(600),
        ..PerMinute::default()
    });
    let one = RateLimit::new(scripted([says(400, 1), says(100, 1)]), limiter.clone());
    let two = RateLimit::new(scripted([says(400, 1)]), limiter);
    let began = Instant::now();
    let first = complete(&one, request(400));
    let second = complete(&two, request(400));
    let third = complete(&one, request(100));
    let timed =
        async |ask: &mut (dyn Future<Output = Result<Arc<adjutant_llm::Reply>, Error>> + Unpin)| {
            ask.await.expect("every request is answered");
            began.elapsed().as_secs()
        };
    let (mut first, mut second, mut third) = (Box::pin(first), Box::pin(second), Box::pin(third));
    let all =
        futures_util::future::join3(timed(&mut first), timed(&mut second), timed(&mut third)).await;
    // 200 are left at first, so the second waits 20 s for its 400. The third would fit at once and does not overtake.
    assert_eq!(all, (0, 20, 30));
}

#[tokio::test(start_paused = true)]
async fn limiter_corrects_the_estimate_when_the_usage_is_known() {
    let check = async |per_minute: PerMinute, first: Script, expect: u64| {
        let model = RateLimit::new(scripted([first, says(1, 1)]), Limiter::new(per_minute));
        let _ = complete(&model, request(500)).await;
        assert_eq!(ends(&model, [request(500)]).await, [(0, expect)]);
    };
    let input = PerMinute {
        input_tokens: Some(600),
        ..PerMinute::default()
    };
    check(input, says(100, 1), 0).await;
    check(input, says(600, 1), 50_000).await;
    check(input, says(900, 1), 80_000).await;
    // What a server says cannot stop everything: ten minutes' worth is the most that is paid.
    check(input, says(u64::MAX, 1), 650_000).await;
    let cached = || {
        Script::new().usage(Usage {
            cache_read: 600,
            ..Usage::default()
        })
    };
    check(input, cached(), 50_000).await;
    check(
        PerMinute {
            free_cache_reads: true,
            ..input
        },
        cached(),
        0,
    )
    .await;
    // Nothing is known: the estimate stays, and the output is taken for a quarter of its bytes.
    check(input, Script::new().usage(Usage::default()), 40_000).await;
    let output = PerMinute {
        output_tokens: Some(60),
        ..PerMinute::default()
    };
    check(
        output,
        Script::new().text("x".repeat(400)).usage(Usage::default()),
        41_000,
    )
    .await;
    check(output, says(1, 70), 11_000).await;
    let failed = |script: Script| script.fail(Error::new(ErrorKind::Network, "cut off"));
    check(input, failed(says(700, 1)), 60_000).await;
    let voided = || Script::new().usage(usage(300, 1));
    let twice = says(300, 1).after_retracted(voided(), Error::new(ErrorKind::Network, "cut off"));
    check(input, twice, 50_000).await;
}

#[tokio::test(start_paused = true)]
async fn limiter_gives_tokens_back_when_a_request_is_refused() {
    let refuses = model_fn(ModelInfo::new("refuses/model"), |_| {
        futures_util::stream::once(async { Err(Error::new(ErrorKind::Auth, "no such key")) })
            .boxed()
    });
    let limiter = Limiter::new(PerMinute {
        input_tokens: Some(600),
        ..PerMinute::default()
    });
    let refused = complete(&RateLimit::new(refuses, limiter.clone()), request(600)).await;
    assert_eq!(
        refused.map_err(|error| error.kind()).err(),
        Some(ErrorKind::Auth)
    );
    let model = RateLimit::new(scripted([says(1, 1)]), limiter);
    assert_eq!(ends(&model, [request(600)]).await, [(0, 0)]);
}

#[tokio::test(start_paused = true)]
async fn limiter_lets_a_request_pass_when_it_is_bigger_than_the_bucket() {
    let model = RateLimit::new(
        scripted([says(60, 1), says(1_200, 1), says(60, 1)]),
        Limiter::new(PerMinute {
            input_tokens: Some(600),
            ..PerMinute::default()
        }),
    );
    // The second needs a full bucket, the third waits until what it took more is there again.
    let ends = ends(&model, [request(60), request(1_200), request(60)]).await;
    assert_eq!(ends, [(0, 0), (1, 6_000), (2, 72_000)]);
    let none = Limiter::new(PerMinute {
        requests: Some(0),
        ..PerMinute::default()
    });
    let model = RateLimit::new(scripted([says(1, 1), says(1, 1)]), none);
    assert_eq!(ends_of(&model, 2).await, [(0, 0), (1, 60_000)]);
}

async fn ends_of(model: &impl Model, count: usize) -> Vec<(usize, u64)> {
    ends(model, (0..count).map(|_| request(5))).await
}

#[tokio::test(start_paused = true)]
async fn limiter_takes_output_beforehand_when_it_is_limited() {
    let gate = Gate::default();
    let check = |most: u64, asked: Option<u64>, per_minute: u64| {
        let info = ModelInfo {
            max_output_tokens: most,
            ..ModelInfo::new("a/b")
        };
        let model = ScriptedModel::new([says(1, 1).wait_at(9, &gate), says(1, 1)]).info(info);
        let model = RateLimit::new(
            model,
            Limiter::new(PerMinute {
                output_tokens: Some(per_minute),
                ..PerMinute::default()
            }),
        );
        let options = asked.map_or(Options::default(), |asked| Options {
            max_output_tokens: Some(asked),
            ..Options::default()
        });
        let request = Request::new().user("Hi!").options(options);
        let [mut one, mut two] = [model.stream(request.clone()), model.stream(request)];
        [waits(&mut one), waits(&mut two)]
    };
    assert_eq!(check(100, None, 199), [false, true]);
    assert_eq!(check(100, None, 200), [false, false]);
    assert_eq!(check(100, Some(50), 100), [false, false]);
    assert_eq!(check(100, Some(500), 199), [false, true]);
    assert_eq!(check(64_000, None, 2 * 4_096), [false, false]);
    assert_eq!(check(64_000, None, 2 * 4_096 - 1), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn limiter_counts_system_and_tools_when_it_estimates() {
    let declare = |description: &str| adjutant_llm::ToolDecl {
        name: "look".into(),
        description: description.into(),
        schema: Arc::new(serde_json::json!({"type": "object"})),
    };
    // 1 for the name, 2 for the description, 5 for the schema, 3 for the system prompt, 5 for the message.
    let request = || {
        request(5)
            .system("twelve bytes")
            .tools([declare("8 bytes.")])
    };
    for (tokens, expect) in [(32, 0), (31, 1)] {
        let gate = Gate::default();
        let scripts = [says(16, 1).wait_at(9, &gate), says(1, 1)];
        let model = RateLimit::new(
            scripted(scripts),
            Limiter::new(PerMinute {
                input_tokens: Some(tokens),
                ..PerMinute::default()
            }),
        );
        let [mut one, mut two] = [model.stream(request()), model.stream(request())];
        assert_eq!(
            [waits(&mut one), waits(&mut two)],
            [false, expect == 1],
            "{tokens}"
        );
    }
}

/// A model whose start says this about its limits.
fn limited(limits: RateLimits) -> impl Model + 'static {
    model_fn(ModelInfo::new("limited/model"), move |request| {
        let whole = ScriptedModel::new([says(1, 1)]).stream(request);
        whole
            .map(move |item| match item {
                Ok(Chunk::Start {
                    attempt,
                    model,
                    warnings,
                    ..
                }) => Ok(Chunk::Start {
                    attempt,
                    model,
                    limits: Box::new(limits),
                    warnings,
                }),
                other => other,
            })
            .boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn limiter_learns_when_the_server_says_what_is_left() {
    let check =
        async |requests: Option<u64>, tokens: Option<u64>, reset: Option<u64>, expect: [u64; 2]| {
            let mut limits = RateLimits::default();
            (limits.requests_left, limits.tokens_left) = (requests, tokens);
            limits.reset_after = reset.map(Duration::from_secs);
            let limiter = Limiter::new(PerMinute {
                requests: Some(60),
                input_tokens: Some(600),
                ..PerMinute::default()
            });
            complete(
                &RateLimit::new(limited(limits), limiter.clone()),
                request(5),
            )
            .await
            .expect("it is answered");
            let model = RateLimit::new(scripted([says(1, 1), says(1, 1)]), limiter);
            let seconds = ends(&model, [request(101), request(5)])
                .await
                .into_iter()
                .map(|(_, ms)| ms / 1_000);
            assert_eq!(seconds.collect::<Vec<_>>(), expect);
        };
    check(None, None, None, [0, 0]).await;
    check(Some(59), Some(700), Some(30), [0, 0]).await;
    check(Some(1), None, Some(30), [0, 1]).await;
    check(None, Some(97), Some(30), [0, 0]).await;
    check(None, Some(57), Some(30), [4, 4]).await;
    check(Some(0), None, Some(30), [30, 30]).await;
    check(None, Some(0), Some(30), [30, 30]).await;
    check(Some(0), None, None, [1, 2]).await;
    check(Some(0), None, Some(3_600), [60, 60]).await;
}

#[tokio::test(start_paused = true)]
async fn limiter_holds_everyone_when_the_server_asks_to_wait() {
    let check = async |error: Error, expect: u64| {
        let limiter = Limiter::new(PerMinute {
            requests: Some(600),
            ..PerMinute::default()
        });
        let refuses = scripted([Script::new().usage(Usage::default()).fail(error)]);
        let refused = complete(&RateLimit::new(refuses, limiter.clone()), request(5)).await;
        refused.expect_err("it is refused");
        let other = RateLimit::new(scripted([says(1, 1)]), limiter);
        assert_eq!(ends_of(&other, 1).await, [(0, expect)]);
    };
    let limited = |kind, seconds| {
        Error::new(kind, "no").with(|it| it.retry_after = Some(Duration::from_secs(seconds)))
    };
    check(limited(ErrorKind::RateLimited, 7), 7_000).await;
    check(limited(ErrorKind::Overloaded, 7), 7_000).await;
    check(limited(ErrorKind::RateLimited, 3_600), 60_000).await;
    check(limited(ErrorKind::Invalid, 7), 0).await;
    check(Error::new(ErrorKind::RateLimited, "no"), 0).await;
}

#[tokio::test(start_paused = true)]
async fn limiter_holds_for_the_longest_when_several_are_asked_to_wait() {
    let limiter = Limiter::new(PerMinute {
        requests: Some(600),
        ..PerMinute::default()
    });
    let refuses = |seconds| {
        let error = Error::new(ErrorKind::RateLimited, "no")
            .with(|it| it.retry_after = Some(Duration::from_secs(seconds)));
        let script = Script::new().usage(Usage::default()).fail(error);
        RateLimit::new(scripted([script]), limiter.clone()).stream(request(5))
    };
    let mut refused = [refuses(3), refuses(7), refuses(5)];
    for stream in &mut refused {
        assert!(!waits(stream), "all are sent before one is refused");
    }
    for stream in refused {
        stream.for_each(async |_| {}).await;
    }
    let other = RateLimit::new(scripted([says(1, 1)]), limiter);
    assert_eq!(ends_of(&other, 1).await, [(0, 7_000)]);
}

#[tokio::test(start_paused = true)]
async fn limiter_lets_the_next_pass_when_those_before_still_run() {
    let gate = Gate::default();
    let scripts = (0..3).map(|_| says(1, 1).wait_at(0, &gate));
    let model = RateLimit::new(
        scripted(scripts),
        Limiter::new(PerMinute {
            requests: Some(1),
            ..PerMinute::default()
        }),
    );
    let began = Instant::now();
    let starts = (0..3).map(|_| {
        let mut stream = model.stream(request(5));
        tokio::spawn(async move {
            let start = stream.next().await.expect("it starts").is_ok();
            (start, began.elapsed().as_secs(), stream)
        })
    });
    let starts: Vec<_> = starts.collect();
    let all = tokio::time::timeout(
        Duration::from_secs(600),
        futures_util::future::join_all(starts),
    )
    .await;
    let all = all
        .expect("nobody waits for ever")
        .into_iter()
        .map(|it| it.expect("nothing panics"));
    let (seen, _streams): (Vec<_>, Vec<_>) =
        all.map(|(start, at, stream)| ((start, at), stream)).unzip();
    assert_eq!(seen, [(true, 0), (true, 60), (true, 120)]);
}

#[tokio::test(start_paused = true)]
async fn agents_get_through_when_they_share_a_limiter_and_retry() {
    let limiter = Limiter::new(PerMinute {
        requests: Some(600),
        ..PerMinute::default()
    });
    let wait = Error::new(ErrorKind::RateLimited, "no")
        .with(|it| it.retry_after = Some(Duration::from_secs(7)));
    let refused = Script::new().usage(Usage::default()).fail(wait);
    let one = Retry::new(RateLimit::new(
        scripted([refused, says(1, 1)]),
        limiter.clone(),
    ));
    let two = Retry::new(RateLimit::new(scripted([says(1, 1), says(1, 1)]), limiter));
    let began = Instant::now();
    let timed = async |model: &Retry| {
        complete(model, request(5)).await.expect("it is answered");
        began.elapsed().as_secs()
    };
    let both = futures_util::future::join(timed(&one), async {
        [timed(&two).await, timed(&two).await]
    })
    .await;
    assert_eq!(both, (7, [7, 7]));
}

#[tokio::test(start_paused = true)]
async fn limiter_goes_on_with_the_next_when_one_that_waits_is_dropped() {
    let limiter = Limiter::new(PerMinute {
        requests: Some(1),
        input_tokens: Some(600),
        ..PerMinute::default()
    });
    let model = RateLimit::new(scripted([says(1, 1), says(1, 1)]), limiter.clone());
    let [mut first, mut second, mut third] =
        [5, 600, 5].map(|tokens| model.stream(request(tokens)));
    assert_eq!(
        [waits(&mut first), waits(&mut second), waits(&mut third)],
        [false, true, true]
    );
    assert_eq!(limiter.waiting(), 2);
    let began = Instant::now();
    let third = tokio::spawn(async move {
        third
            .map(|item| item.is_ok())
            .collect::<Vec<_>>()
            .await
            .len()
    });
    tokio::task::yield_now().await;
    drop(second);
    assert_eq!(limiter.waiting(), 1);
    assert_eq!(
        (third.await.expect("nothing panics"), began.elapsed()),
        (6, Duration::from_secs(60))
    );
}

#[tokio::test(start_paused = true)]
async fn limiter_settles_when_one_that_runs_is_dropped() {
    let check = async |polls: usize, expect: u64| {
        let script = Script::new()
            .text("x".repeat(80))
            .delta_chars(40)
            .usage(usage(500, 90));
        let limiter = Limiter::new(PerMinute {
            output_tokens: Some(60),
            ..PerMinute::default()
        });
        let model = RateLimit::new(scripted([script, says(1, 1)]), limiter);
        let request = || {
            Request::new().user("Hi!").options(Options {
                max_output_tokens: Some(60),
                ..Options::default()
            })
        };
        let mut stream = model.stream(request());
        for _ in 0..polls {
            stream
                .next()
                .await
                .expect("there is more")
                .expect("it does not fail");
        }
        drop(stream);
        assert_eq!(ends(&model, [request()]).await, [(0, expect)]);
    };
    // Nothing; the start; the first delta of 40 bytes; the second; the reported 90; the end.
    check(0, 0).await;
    check(1, 0).await;
    check(3, 10_000).await;
    check(4, 20_000).await;
    check(6, 90_000).await;
    check(7, 90_000).await;
}

#[test]
fn limiter_gives_an_error_when_there_is_no_runtime_to_wait_in() {
    let limiter = Limiter::new(PerMinute {
        requests: Some(1),
        ..PerMinute::default()
    });
    let model = RateLimit::new(scripted([says(1, 1)]), limiter.clone());
    let [mut first, mut second] = [model.stream(request(5)), model.stream(request(5))];
    assert!(matches!(
        first.next().now_or_never(),
        Some(Some(Ok(Chunk::Start { .. })))
    ));
    let Some(Some(Err(error))) = second.next().now_or_never() else {
        panic!("an error is expected")
    };
    assert_eq!((error.kind(), limiter.waiting()), (ErrorKind::Config, 0));
    assert!(
        second
            .next()
            .now_or_never()
            .is_some_and(|item| item.is_none()),
        "nothing follows the end"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn limiter_never_lets_more_pass_than_the_limits_allow(
        sizes in prop::collection::vec((5_u64..400, 1_u64..400, any::<bool>()), 1..20),
        requests in 1_u64..20,
        tokens in 50_u64..500,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let limiter = Limiter::new(PerMinute { requests: Some(requests), input_tokens: Some(tokens), ..PerMinute::default() });
            let began = Instant::now();
            let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
            let log = Arc::clone(&sent);
            let model = model_fn(ModelInfo::new("a/b"), move |request: Request| {
                let size = request.entries.tokens();
                log.lock().expect("nothing panics").push((began.elapsed().as_secs_f64() / 60.0, size));
                ScriptedModel::new([says(size, 1)]).stream(request)
            });
            let model = RateLimit::new(model, limiter.clone());
            let mut streams: Vec<ChunkStream> = Vec::new();
            let mut kept = Vec::new();
            for (size, _, keep) in &sizes {
                let mut stream = model.stream(request(*size));
                let waiting = waits(&mut stream);
                if *keep || !waiting {
                    kept.push(*size);
                    streams.push(stream);
                }
            }
            let done = streams.into_iter().map(|stream| stream.for_each(async |_| {}));
            futures_util::future::join_all(done).await;
            let sent = sent.lock().expect("nothing panics").clone();
            // Everyone gets through, in order, and after each bucket could have refilled for what went before.
            prop_assert_eq!(sent.iter().map(|(_, size)| *size).collect::<Vec<_>>(), kept);
            let (mut count, mut total) = (0.0, 0.0);
            for (at, size) in sent {
                let (size, tokens, requests) = (size as f64, tokens as f64, requests as f64);
                prop_assert!(count + 1.0 <= requests + requests * at + 1e-6, "{count} requests before {at}");
                prop_assert!(total + size.min(tokens) <= tokens + tokens * at + 1e-6, "{total} tokens before {at}");
                (count, total) = (count + 1.0, total + size);
            }
            prop_assert_eq!(limiter.waiting(), 0);
            Ok(())
        })?;
    }
}
