//! Every decorator over every wire, against a server that breaks: what is tried again, what is shown, and what is kept.

#[path = "decorators/fallback.rs"]
mod fallback;
#[path = "decorators/limits.rs"]
mod limits;
#[path = "decorators/recording.rs"]
mod recording;
#[path = "decorators/retry.rs"]
mod retry;

use std::{sync::Arc, time::Duration};

use adjutant::{
    Model,
    llm::{Request, RetryPolicy, Script, ScriptedModel},
};
use adjutant_testing::{Fault, FaultPosition, Loopback};
use adjutant_tests::{Heard, WIRES, Wire};

/// What is said when nothing goes wrong: long enough to be cut in the middle, with letters of several bytes.
const SENTENCE: &str = "Grüße aus Köln: Die Brücke über den großen Fluß ist seit heute früh für alle geöffnet, auch für \
                        Fußgänger, Lastenräder und Züge; nur die östliche Zufahrt bleibt bis zum Frühjahr geschlossen.";
/// A byte of the body that stands behind several deltas, on every wire.
const MIDDLE: u64 = 4_000;
/// How long an answer may pause where the pause is the hazard: longer than a busy machine takes for one that does not.
const SHORT: Duration = Duration::from_millis(800);

/// A server that says the sentence again and again, and breaks these answers.
async fn server(faults: impl IntoIterator<Item = (usize, Fault)>) -> Loopback {
    let scripts = (0..6).map(|_| Script::new().text(SENTENCE).delta_chars(4));
    let setup = Loopback::setup(Arc::new(ScriptedModel::new(scripts))).strict_signatures();
    let setup = faults
        .into_iter()
        .fold(setup, |setup, (nth, fault)| setup.fault(nth, fault));
    setup.start().await.expect("the server starts")
}

fn hello() -> Request {
    Request::new().user("What is new?")
}

/// Two retries, at once unless a wait is asked for, and that only for a second.
fn at_once() -> RetryPolicy {
    let soon = Duration::from_millis(1);
    RetryPolicy {
        first_wait: soon,
        longest_wait: soon,
        longest_asked_wait: Duration::from_secs(1),
        ..RetryPolicy::default()
    }
}

/// Faults that break an answer after something was said.
fn midway() -> Vec<Fault> {
    let garbage = Fault::Garbage {
        at: FaultPosition::Frame(9),
        bytes: (&b"data: {garbage\n\n"[..]).into(),
    };
    vec![
        Fault::CutAt(MIDDLE),
        Fault::StallAt(MIDDLE),
        Fault::ErrorAfter { frames: 9 },
        garbage,
        Fault::MissingFinish,
    ]
}

/// All ordered pairs of different wires.
fn pairs() -> impl Iterator<Item = (Wire, Wire)> {
    WIRES.into_iter().flat_map(|a| {
        WIRES
            .into_iter()
            .filter(move |b| *b != a)
            .map(move |b| (a, b))
    })
}

/// Checks that the whole sentence was shown at the end, and parts of it before.
#[track_caller]
fn says_all(heard: &Heard, what: &str) {
    let said = heard
        .end
        .as_ref()
        .map(|reply| reply.text())
        .map_err(ToString::to_string);
    assert_eq!(said.as_deref(), Ok(SENTENCE), "{what}");
    says_parts(heard, what);
}

/// Checks that each attempt showed a part of the sentence, from its beginning, and nothing twice.
#[track_caller]
fn says_parts(heard: &Heard, what: &str) {
    for shown in &heard.attempts {
        assert!(SENTENCE.starts_with(shown.as_str()), "{what}: {shown:?}");
    }
}

/// The model behind a wire, as a decorator wants it.
fn over(wire: Wire, server: &Loopback) -> Arc<dyn Model> {
    wire.model(server)
}
