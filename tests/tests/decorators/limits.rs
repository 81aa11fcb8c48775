//! A limiter that two agents share: one waits for what the other has used, or for what the server told the other.

use std::{sync::Arc, time::Duration};

use adjutant::{
    Agent, RunResult,
    llm::{Error, ErrorKind, Limiter, PerMinute, RateLimit, Retry, Script, ScriptedModel, Usage},
};
use adjutant_testing::{Fault, Loopback, Setup};
use adjutant_tests::{WIRES, Wire};
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::{SENTENCE, at_once, over};

/// All tokens of a minute at a million in a second, and those of another 0.3 seconds.
const MUCH: Usage = Usage {
    input_uncached: 60_300_000,
    cache_read: 0,
    cache_write: 0,
    cache_write_1h: 0,
    output: 1,
    reasoning: 0,
};

/// The wire that the second agent speaks.
fn other(wire: Wire) -> Wire {
    let at = WIRES.iter().position(|it| *it == wire).unwrap_or_default();
    WIRES[(at + 1) % WIRES.len()]
}

async fn server(breaks: impl FnOnce(Setup) -> Setup) -> Loopback {
    let says = |usage: Usage| Script::new().text(SENTENCE).usage(usage);
    let little = Usage {
        input_uncached: 10,
        output: 1,
        ..Usage::default()
    };
    let scripts = [says(MUCH), says(little), says(little)];
    breaks(Loopback::setup(Arc::new(ScriptedModel::new(scripts))))
        .start()
        .await
        .expect("the server starts")
}

fn agent(wire: Wire, server: &Loopback, limiter: &Limiter) -> Agent {
    Agent::new(Retry {
        policy: at_once(),
        ..Retry::new(RateLimit::new(over(wire, server), limiter.clone()))
    })
}

fn finished(result: &RunResult, what: &str) {
    assert_eq!(result.text(), SENTENCE, "{what}: {:?}", result.outcome);
}

#[tokio::test]
async fn limiter_holds_an_agent_back_when_another_has_used_the_minute() {
    let cell = async |wire: Wire| {
        let what = format!("{wire}, {}", other(wire));
        let limiter = Limiter::new(PerMinute {
            input_tokens: Some(60_000_000),
            ..PerMinute::default()
        });
        let server = server(|it| it).await;
        let (first, second) = (
            agent(wire, &server, &limiter),
            agent(other(wire), &server, &limiter),
        );
        finished(
            &first.run("What is new?").await.expect("the run finishes"),
            &what,
        );
        let held = second
            .run("And what else?")
            .stream()
            .expect("the session is free")
            .detach();
        while limiter.waiting() == 0 {
            assert!(
                server.request_count() == 1 && !held.is_finished(),
                "{what}: it waits before it asks"
            );
            tokio::task::yield_now().await;
        }
        finished(
            &held.await.expect("no panic").expect("the run finishes"),
            &what,
        );
        assert_eq!(
            (server.request_count(), limiter.waiting()),
            (2, 0),
            "{what}"
        );
    };
    join_all(WIRES.map(cell)).await;
}

#[tokio::test]
async fn limiter_holds_all_agents_back_when_the_server_tells_one_to_wait() {
    let cell = async |wire: Wire| {
        let what = format!("{wire}, {}", other(wire));
        let limiter = Limiter::new(PerMinute::default());
        let refusal = Error::new(ErrorKind::RateLimited, "slow down")
            .with(|it| it.retry_after = Some(Duration::from_millis(300)));
        let says = || Script::new().text(SENTENCE);
        let scripted = ScriptedModel::new([Script::new().fail(refusal), says(), says()]);
        let server = Loopback::start(scripted).await.expect("the server starts");
        let first = Agent::new(RateLimit::new(over(wire, &server), limiter.clone()));
        let second = agent(other(wire), &server, &limiter);
        let refused = first
            .run("What is new?")
            .await
            .expect_err("the server refuses");
        assert!(refused.is_retryable(), "{what}: {refused}");
        let held = [&first, &second].map(|it| {
            it.run("And now?")
                .stream()
                .expect("the session is free")
                .detach()
        });
        while limiter.waiting() < 2 {
            let is_over = held.iter().any(JoinHandle::is_finished);
            assert!(
                server.request_count() == 1 && !is_over,
                "{what}: they wait before they ask"
            );
            tokio::task::yield_now().await;
        }
        for run in held {
            finished(
                &run.await.expect("no panic").expect("the run finishes"),
                &what,
            );
        }
        assert_eq!(
            (server.request_count(), limiter.waiting()),
            (3, 0),
            "{what}"
        );
    };
    join_all(WIRES.map(cell)).await;
}

#[tokio::test]
async fn limiter_lets_the_next_pass_when_a_request_was_refused() {
    for wire in WIRES {
        let limiter = Limiter::new(PerMinute {
            input_tokens: Some(60_000_000),
            ..PerMinute::default()
        });
        let server = server(|it| it.fault(0, Fault::auth_error())).await;
        let (first, second) = (
            agent(wire, &server, &limiter),
            agent(other(wire), &server, &limiter),
        );
        let refused = first
            .run("What is new?")
            .await
            .expect_err("the server refuses");
        assert!(!refused.is_retryable(), "{wire}: {refused}");
        finished(
            &second.run("And now?").await.expect("the run finishes"),
            "after a refusal",
        );
    }
}
