//! Every hazard of the conformance suite on every wire, bare and below a stack of decorators; the table is printed.

use std::{sync::Arc, time::Duration};

use adjutant::{
    Model,
    llm::{
        Fallback, Limiter, PerMinute, RateLimit, Recorder, Retry, RetryPolicy, Timeout,
        TimeoutLimits,
    },
    providers::Timeouts,
};
use adjutant_testing::{
    Loopback,
    conformance::{self, Limits, Matrix, Subject},
};
use adjutant_tests::{WIRES, Wire};

/// Longer than any hazard takes.
const LONG: Duration = Duration::from_secs(60);

fn wire(wire: Wire) -> impl Subject {
    conformance::subject_fn(
        wire.to_string(),
        move |server: &Loopback, limits: Limits| bare(wire, server, limits),
    )
}

fn bare(wire: Wire, server: &Loopback, limits: Limits) -> Arc<dyn Model> {
    let timeouts = Timeouts::new()
        .first_byte(limits.answer)
        .idle(limits.silence);
    wire.model_at(&wire.base_url(server), timeouts)
}

/// The wire below all decorators, in the order that they are meant for; none of them has anything to do.
fn stacked(wire: Wire) -> impl Subject {
    conformance::subject_fn(
        format!("{wire}, decorated"),
        move |server: &Loopback, limits: Limits| {
            let limiter = Limiter::new(PerMinute {
                requests: Some(1_000_000),
                ..PerMinute::default()
            });
            let timed = Timeout::new(
                bare(wire, server, limits),
                TimeoutLimits {
                    idle: Some(LONG),
                    ..TimeoutLimits::default()
                },
            );
            let retried = Retry {
                policy: RetryPolicy {
                    max_retries: 0,
                    ..RetryPolicy::default()
                },
                ..Retry::new(RateLimit::new(timed, limiter))
            };
            let whole = Timeout::new(
                Fallback::new(retried),
                TimeoutLimits {
                    total: Some(LONG),
                    ..TimeoutLimits::default()
                },
            );
            Arc::new(Recorder::new(whole, std::io::sink())) as Arc<dyn Model>
        },
    )
}

/// Plays all hazards to all subjects and prints the table.
async fn hold(subjects: Vec<impl Subject>) {
    // One after the other: a hazard that takes the processor would make another one's short waits run out.
    let mut reports = Vec::new();
    for subject in &subjects {
        reports.push(conformance::run(subject).await);
    }
    let matrix = Matrix::new(reports);
    println!("{matrix}");
    assert!(
        matrix.missing().is_empty(),
        "cells that were not played: {:?}",
        matrix.missing()
    );
    assert!(
        matrix.failures().is_empty(),
        "cells that failed: {:#?}",
        matrix.failures()
    );
}

#[tokio::test]
async fn wires_bear_every_hazard() {
    hold(WIRES.into_iter().map(wire).collect()).await;
}

#[tokio::test]
async fn decorators_change_nothing_when_they_have_nothing_to_do() {
    hold(WIRES.into_iter().map(stacked).collect()).await;
}
