//! A failed attempt is tried again after the right wait, and a reader never sees a word twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_llm::{
    Block, Chunk, ChunkStream, Collector, Error, ErrorKind, Fallback, Gate, Model, ModelInfo,
    Request, Retry, RetryPolicy, Script, ScriptedModel, Thinking, Timeout, TimeoutLimits, Usage,
    World, model_fn,
};
use futures_util::StreamExt;
use proptest::prelude::*;
use tokio::time::Instant;

/// A world whose chance is always the same.
#[derive(Debug)]
struct Chance(f64);

impl World for Chance {
    fn now_ms(&self) -> u64 {
        0
    }

    fn id(&self) -> u128 {
        0
    }

    fn unit(&self) -> f64 {
        self.0
    }
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, format!("{kind:?}"))
}

fn used(output: u64) -> Usage {
    Usage {
        output,
        ..Usage::default()
    }
}

/// Fails before anything was said or used.
fn fails(error: Error) -> Script {
    Script::new().usage(Usage::default()).fail(error)
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
            Chunk::Start { attempt, .. } => seen.push(format!("start {attempt}")),
            Chunk::Delta { text, .. } => seen.push(text),
            Chunk::Usage { usage, .. } => seen.push(format!("used {}", usage.output)),
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

/// The model fails in these ways and then answers: the time that takes, in milliseconds, and the last item.
#[track_caller]
fn check(policy: RetryPolicy, chance: f64, failures: &[Error], expect: (u64, &str)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let (took, last) = runtime.expect("a runtime").block_on(async {
        let scripts = failures.iter().cloned().map(fails);
        let model = ScriptedModel::new(scripts.chain([Script::new().text("ok").usage(used(1))]));
        let model = Retry {
            policy,
            world: Arc::new(Chance(chance)),
            ..Retry::new(model)
        };
        let began = Instant::now();
        let seen = drain(model.stream(Request::new())).await;
        (
            began.elapsed().as_millis() as u64,
            seen.last().cloned().unwrap_or_default(),
        )
    });
    assert_eq!((took, last.as_str()), expect);
}

#[test]
fn retry_waits_as_the_policy_says_when_an_attempt_fails() {
    use ErrorKind::*;
    let policy = RetryPolicy::default;
    let limited = |wait: u64| {
        error(RateLimited).with(|it| it.retry_after = Some(Duration::from_millis(wait)))
    };
    check(policy(), 0.0, &[], (0, "done ok"));
    check(policy(), 0.0, &[error(Overloaded)], (500, "done ok"));
    check(policy(), 0.4, &[error(Overloaded)], (450, "done ok"));
    check(policy(), f64::NAN, &[error(Overloaded)], (500, "done ok"));
    check(
        policy(),
        0.0,
        &[error(Network), error(Timeout)],
        (1_500, "done ok"),
    );
    check(
        policy(),
        0.0,
        &[error(Network), error(Timeout), error(Protocol)],
        (1_500, "error Protocol"),
    );
    check(policy(), 0.4, &[limited(1_500)], (1_500, "done ok"));
    check(policy(), 0.4, &[limited(0)], (450, "done ok"));
    check(
        policy(),
        0.0,
        &[limited(60_000), limited(20)],
        (60_020, "done ok"),
    );
    let too_long =
        "error RateLimited; the provider asks to wait 60.001s, and a retry waits 60s at most";
    check(policy(), 0.0, &[limited(60_001)], (0, too_long));
    check(
        RetryPolicy {
            longest_asked_wait: Duration::from_secs(120),
            ..policy()
        },
        0.0,
        &[limited(60_001)],
        (60_001, "done ok"),
    );
    let six = vec![error(Overloaded); 6];
    check(
        RetryPolicy {
            max_retries: 6,
            ..policy()
        },
        0.0,
        &six,
        (500 + 1_000 + 2_000 + 4_000 + 8_000 + 8_000, "done ok"),
    );
    check(
        RetryPolicy {
            first_wait: Duration::from_secs(3),
            longest_wait: Duration::from_secs(2),
            ..policy()
        },
        0.0,
        &[error(Network)],
        (2_000, "done ok"),
    );
    check(
        RetryPolicy {
            max_retries: 0,
            ..policy()
        },
        0.0,
        &[error(Overloaded)],
        (0, "error Overloaded"),
    );
}

#[test]
fn retry_asks_once_more_when_a_generation_failed() {
    use ErrorKind::*;
    let policy = RetryPolicy::default;
    check(policy(), 0.0, &[error(Generation)], (500, "done ok"));
    let twice = [error(Generation), error(Generation)];
    check(policy(), 0.0, &twice, (500, "error Generation"));
    let mixed = [error(Generation), error(Overloaded)];
    check(policy(), 0.0, &mixed, (1_500, "done ok"));
    let never = RetryPolicy {
        max_retries: 0,
        ..policy()
    };
    check(never, 0.0, &twice[..1], (0, "error Generation"));
}

#[tokio::test(start_paused = true)]
async fn retry_asks_once_more_when_a_reply_is_empty() {
    let empty = || Script::new().usage(used(3));
    let said = || Script::new().text("ok");
    let thought = || Script::new().thinking(Thinking::new("Hm.")).usage(used(3));
    let void = "retracted 0: scripted/model returned an empty reply, used 3";
    for (retract, scripts, expect) in [
        (
            true,
            [empty(), said()],
            &["start 0", void, "start 1", "ok", "used 10", "done ok"][..],
        ),
        (
            false,
            [empty(), said()],
            &["start 0", void, "start 1", "ok", "used 10", "done ok"],
        ),
        (
            true,
            [empty(), empty()],
            &["start 0", void, "start 1", "used 3", "done "],
        ),
        (
            true,
            [thought(), said()],
            &[
                "start 0", "Hm.", "used 3", void, "start 1", "ok", "used 10", "done ok",
            ],
        ),
        (
            false,
            [thought(), said()],
            &["start 0", "Hm.", "used 3", "done "],
        ),
    ] {
        let model = Retry {
            retract,
            ..Retry::new(ScriptedModel::new(scripts))
        };
        assert_eq!(drain(model.stream(Request::new())).await, expect);
    }
}

#[test]
fn retry_goes_by_the_kind_unless_the_provider_said_what_to_do() {
    use ErrorKind::*;
    for kind in [Config, Auth, Invalid, Overflow, Refused, Cancelled] {
        check(
            RetryPolicy::default(),
            0.0,
            &[error(kind)],
            (0, &format!("error {kind:?}")),
        );
        check(
            RetryPolicy::default(),
            0.0,
            &[error(kind).with(|it| it.should_retry = Some(true))],
            (500, "done ok"),
        );
        check(
            RetryPolicy {
                kinds: [kind].into(),
                ..RetryPolicy::default()
            },
            0.0,
            &[error(kind)],
            (500, "done ok"),
        );
    }
    for kind in [RateLimited, Overloaded, Network, Timeout, Protocol] {
        check(
            RetryPolicy::default(),
            0.0,
            &[error(kind)],
            (500, "done ok"),
        );
        let no = error(kind).with(|it| it.should_retry = Some(false));
        assert!(!no.is_retryable());
        check(
            RetryPolicy::default(),
            0.0,
            &[no],
            (0, &format!("error {kind:?}")),
        );
        check(
            RetryPolicy {
                kinds: [].into(),
                ..RetryPolicy::default()
            },
            0.0,
            &[error(kind)],
            (0, &format!("error {kind:?}")),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn retry_keeps_the_error_when_it_is_the_last() {
    let last = error(ErrorKind::RateLimited).with(|it| {
        it.status = Some(429);
        it.code = Some("rate_limit_error".into());
        it.retry_after = Some(Duration::from_secs(30));
    });
    let model = Retry {
        policy: RetryPolicy {
            max_retries: 1,
            ..RetryPolicy::default()
        },
        ..Retry::new(ScriptedModel::new([
            fails(error(ErrorKind::Overloaded)),
            fails(last.clone()),
        ]))
    };
    let items: Vec<_> = model.stream(Request::new()).collect().await;
    assert_eq!(items.last(), Some(&Err(last)));
}

#[tokio::test(start_paused = true)]
async fn retry_leaves_no_trace_when_nothing_was_said_and_used() {
    let scripted = Arc::new(ScriptedModel::new([
        fails(error(ErrorKind::Overloaded)),
        fails(error(ErrorKind::Network)),
        Script::new().text("ok").usage(used(1)),
    ]));
    let mut request = Request::new();
    request.attempt = 3;
    let seen = drain(Retry::new(Arc::clone(&scripted)).stream(request)).await;
    assert_eq!(seen, ["start 5", "ok", "used 1", "done ok"]);
    let attempts: Vec<u32> = scripted
        .requests()
        .iter()
        .map(|request| request.attempt)
        .collect();
    assert_eq!(attempts, [3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn retry_tells_what_was_used_when_nothing_was_said() {
    let failure = Script::new()
        .usage(used(7))
        .fail(error(ErrorKind::Overloaded));
    let model = Retry::new(ScriptedModel::new([
        failure,
        Script::new().text("ok").usage(used(1)),
    ]));
    let seen = drain(model.stream(Request::new())).await;
    assert_eq!(
        seen,
        [
            "start 0",
            "retracted 0: Overloaded, used 7",
            "start 1",
            "ok",
            "used 1",
            "done ok"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_ends_with_the_error_when_something_was_shown() {
    let scripts = || {
        let half = Script::new()
            .text("half")
            .usage(used(2))
            .fail(error(ErrorKind::Network));
        ScriptedModel::new([half, Script::new().text("whole").usage(used(3))])
    };
    let seen = drain(Retry::new(scripts()).stream(Request::new())).await;
    assert_eq!(seen, ["start 0", "half", "used 2", "error Network"]);
    let seen = drain(
        Retry {
            retract: true,
            ..Retry::new(scripts())
        }
        .stream(Request::new()),
    )
    .await;
    let expect = [
        "start 0",
        "half",
        "used 2",
        "retracted 0: Network, used 2",
        "start 1",
        "whole",
        "used 3",
        "done whole",
    ];
    assert_eq!(seen, expect);
}

#[tokio::test(start_paused = true)]
async fn retry_shows_the_start_when_the_last_attempt_said_nothing() {
    let model = Retry::new(ScriptedModel::new([Script::new()
        .usage(used(4))
        .fail(error(ErrorKind::Auth))]));
    assert_eq!(
        drain(model.stream(Request::new())).await,
        ["start 0", "used 4", "error Auth"]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_makes_other_call_ids_when_an_attempt_is_taken_back() {
    let call = || Script::new().call("look", serde_json::json!({}));
    let model = Retry {
        retract: true,
        ..Retry::new(ScriptedModel::new([
            call().fail(error(ErrorKind::Network)),
            call(),
        ]))
    };
    let ids: Vec<String> = model
        .stream(Request::new())
        .filter_map(
            async |item| match item.expect("the second attempt succeeds") {
                Chunk::Close { content, .. } => match &*content {
                    Block::Call(call) => Some(call.id.to_string()),
                    _ => None,
                },
                _ => None,
            },
        )
        .collect()
        .await;
    assert_eq!(ids, ["c0_0_0", "c0_1_0"]);
}

#[tokio::test(start_paused = true)]
async fn retry_numbers_on_when_the_model_takes_back_itself() {
    let script = Script::new()
        .after_retracted(
            Script::new().text("a").usage(used(1)),
            error(ErrorKind::Overloaded),
        )
        .usage(Usage::default())
        .fail(error(ErrorKind::Network));
    let model = Retry::new(ScriptedModel::new([
        script,
        Script::new().text("b").usage(used(2)),
    ]));
    let seen = drain(model.stream(Request::new())).await;
    let expect = [
        "start 0",
        "a",
        "used 1",
        "retracted 0: Overloaded, used 1",
        "start 2",
        "b",
        "used 2",
        "done b",
    ];
    assert_eq!(seen, expect);
}

#[tokio::test(start_paused = true)]
async fn retry_tries_again_when_the_model_stalls_or_is_cut_off() {
    let stalls = ScriptedModel::new([
        Script::new()
            .wait_at(0, &Gate::default())
            .text("never")
            .usage(Usage::default()),
        Script::new().text("ok").usage(used(1)),
    ]);
    let timed = Timeout::new(
        stalls,
        TimeoutLimits {
            idle: Some(Duration::from_secs(5)),
            ..TimeoutLimits::default()
        },
    );
    let began = Instant::now();
    let seen = drain(
        Retry {
            world: Arc::new(Chance(0.0)),
            retract: true,
            ..Retry::new(timed)
        }
        .stream(Request::new()),
    )
    .await;
    let expect = [
        "start 0",
        "retracted 0: nothing more came from scripted/model within 5s, used 0",
    ];
    assert_eq!(
        (&seen[..2], seen.last().map(String::as_str)),
        (&expect.map(String::from)[..], Some("done ok"))
    );
    assert_eq!(began.elapsed(), Duration::from_millis(5_500));

    let asked = AtomicUsize::new(0);
    let cut = model_fn(ModelInfo::new("cut/off"), move |request| {
        asked.fetch_add(1, Ordering::Relaxed);
        let whole = ScriptedModel::new([Script::new().text("ok").usage(used(1))]).stream(request);
        if asked.load(Ordering::Relaxed) == 1 {
            whole.take(1).boxed()
        } else {
            whole
        }
    });
    assert_eq!(
        drain(Retry::new(cut).stream(Request::new())).await,
        ["start 1", "ok", "used 1", "done ok"]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_asks_no_more_when_it_is_dropped_while_it_waits() {
    let scripted = Arc::new(ScriptedModel::new([
        fails(error(ErrorKind::Overloaded)),
        Script::new().text("never"),
    ]));
    let mut stream = Retry::new(Arc::clone(&scripted)).stream(Request::new());
    assert!(
        tokio::time::timeout(Duration::from_millis(100), stream.next())
            .await
            .is_err()
    );
    drop(stream);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(scripted.requests().len(), 1);
}

#[test]
fn retry_gives_the_error_when_there_is_no_runtime_to_wait_in() {
    let model = Retry::new(ScriptedModel::new([
        fails(error(ErrorKind::Overloaded)),
        Script::new().text("never"),
    ]));
    let mut stream = model.stream(Request::new());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut last = None;
    while let std::task::Poll::Ready(Some(item)) = stream.poll_next_unpin(&mut cx) {
        last = Some(item);
    }
    assert_eq!(last, Some(Err(error(ErrorKind::Overloaded))));
}

/// How one attempt goes: its text, what it used, and how it fails, if it does.
fn plan() -> impl Strategy<Value = (String, u64, Option<ErrorKind>)> {
    use ErrorKind::*;
    let failure = prop_oneof![
        2 => Just(None),
        5 => prop::sample::select(vec![Overloaded, RateLimited, Network, Timeout, Protocol, Auth, Invalid]).prop_map(Some),
    ];
    ("[a-z]{0,20}", 0_u64..3, failure)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn reader_sees_no_delta_twice_whatever_fails(
        one in prop::collection::vec(plan(), 1..5),
        two in prop::collection::vec(plan(), 1..5),
        (inner, outer, falls) in any::<(bool, bool, bool)>(),
        retries in 0_u32..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let scripted = |plans: &[(String, u64, Option<ErrorKind>)]| {
                ScriptedModel::new(plans.iter().map(|(text, output, failure)| {
                    let script = Script::new().delta_chars(3).usage(used(*output));
                    let script = if text.is_empty() { script } else { script.text(text.as_str()) };
                    match failure {
                        Some(kind) => script.fail(error(*kind)),
                        None => script,
                    }
                }))
            };
            let (first, second) = (Arc::new(scripted(&one)), Arc::new(scripted(&two)));
            let policy = RetryPolicy { max_retries: retries, ..RetryPolicy::default() };
            let retry = |model: Arc<ScriptedModel>| {
                let retry = Retry { policy: policy.clone(), ..Retry::new(model) };
                if inner { Retry { retract: true, ..retry } } else { retry }
            };
            let fallback = Fallback::new(retry(first.clone())).or(retry(second.clone()));
            let fallback = if falls { Fallback { retract: true, ..fallback } } else { fallback };
            let model = Retry { policy: RetryPolicy { max_retries: 1, ..RetryPolicy::default() }, ..Retry::new(fallback) };
            let model = if outer { Retry { retract: true, ..model } } else { model };

            let mut stream = model.stream(Request::new());
            let mut collector = Collector::default();
            let (mut text, mut starts, mut spent, mut last) = (String::new(), Vec::new(), 0, None);
            while let Some(item) = stream.next().await {
                prop_assert!(last.is_none(), "nothing follows the end");
                let chunk = match item {
                    Ok(chunk) => chunk,
                    Err(error) => { last = Some(Err(error)); continue; }
                };
                collector.push(&chunk).expect("the grammar holds");
                match chunk {
                    Chunk::Start { attempt, .. } => starts.push(attempt),
                    Chunk::Delta { text: delta, .. } => text.push_str(&delta),
                    Chunk::Retracted { usage, attempt, .. } => {
                        prop_assert_eq!(Some(&attempt), starts.last());
                        prop_assert!(text.is_empty() || inner || outer || falls, "nothing is taken back unasked");
                        text.clear();
                        spent += usage.output;
                    }
                    Chunk::Done(reply) => last = Some(Ok(reply)),
                    _ => {}
                }
            }
            prop_assert!(starts.is_sorted_by(|a, b| a < b), "attempts grow: {:?}", starts);
            let last = last.expect("the stream has an end");
            if let Ok(reply) = &last {
                prop_assert_eq!(&text, &reply.text());
                spent += reply.usage.output;
            } else {
                spent += collector.usage().output;
            }
            // Every token that was used is told, once; a script that is used up uses ten.
            let asked = |model: &ScriptedModel, plans: &[(String, u64, Option<ErrorKind>)]| -> u64 {
                let used = plans.iter().map(|(_, output, _)| *output).chain(std::iter::repeat(10));
                used.take(model.requests().len()).sum()
            };
            prop_assert_eq!(spent, asked(&first, &one) + asked(&second, &two));
            Ok(())
        })?;
    }
}
