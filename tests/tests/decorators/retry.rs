//! Retry and timeout: which failures are tried again, after which waits, and what a consumer sees of it.

use std::time::Duration;

use adjutant::{
    Agent, EventKind,
    llm::{Chunk, ErrorKind, Retry, Timeout, TimeoutLimits},
};
use adjutant_testing::{Fault, Loopback};
use adjutant_tests::{Heard, WIRES, Wire, listen};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::{MIDDLE, SENTENCE, SHORT, at_once, hello, midway, over, says_all, says_parts, server};

/// What comes of a refusal.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// It is tried again after this time, in milliseconds, or later.
    Again(u64),
    /// It is not, and the error tells this wait, in seconds.
    Never(Option<u64>),
}

use Then::{Again, Never};

/// Names and values.
type Headers = &'static [(&'static str, &'static str)];

/// The forms in which a server tells how long to wait; a second is the most that is waited.
const FORMS: &[(u16, Headers, Then)] = &[
    (429, &[], Again(0)),
    (429, &[("retry-after", "0.05")], Again(50)),
    (429, &[("retry-after", "7")], Never(Some(7))),
    (429, &[("retry-after", "soon")], Again(0)),
    (429, &[("retry-after", "-3")], Again(0)),
    (
        429,
        &[("retry-after-ms", "50"), ("retry-after", "9")],
        Again(50),
    ),
    (429, &[("retry-after-ms", "7000.0")], Never(Some(7))),
    (
        429,
        &[
            ("date", "Tue, 29 Feb 2028 23:59:56 GMT"),
            ("retry-after", "Wed, 01 Mar 2028 00:00:03 GMT"),
        ],
        Never(Some(7)),
    ),
    (
        429,
        &[
            ("date", "Wed, 01 Mar 2028 00:00:03 GMT"),
            ("retry-after", "Tue, 29 Feb 2028 23:59:56 GMT"),
        ],
        Again(0),
    ),
    (429, &[("x-should-retry", "false")], Never(None)),
    (400, &[("x-should-retry", "true")], Again(0)),
    (
        400,
        &[("x-should-retry", "true"), ("retry-after-ms", "50")],
        Again(50),
    ),
    (503, &[("retry-after", "0.05")], Again(50)),
    (529, &[("retry-after", "0.05")], Again(50)),
];

/// A refusal with these headers. Gemini's own has none, so it is written here.
fn refusal(wire: Wire, code: u16, headers: Headers) -> Fault {
    let mut headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let body = (wire == Wire::Gemini).then(|| {
        headers.push(("content-type".into(), "application/json".into()));
        json!({"error": {"code": code, "message": "Not now."}})
            .to_string()
            .into()
    });
    Fault::Status {
        code,
        headers,
        body,
    }
}

/// Asks through a retry a server whose first answer is this, and checks what comes of it.
async fn check(wire: Wire, fault: Fault, then: Then) {
    let what = format!("{wire}, {fault:?}");
    let server = server([(0, fault)]).await;
    let model = Retry {
        policy: at_once(),
        ..Retry::new(over(wire, &server))
    };
    let began = Instant::now();
    let heard = listen(&model, hello()).await;
    // What was refused was never shown, so nothing is taken back.
    assert_eq!(heard.retracted, 0, "{what}");
    match then {
        Again(wait) => {
            says_all(&heard, &what);
            assert!(
                began.elapsed() >= Duration::from_millis(wait),
                "{what}: tried again after {:?}",
                began.elapsed()
            );
            assert_eq!(
                (starts(&heard), server.request_count()),
                (vec![1], 2),
                "{what}"
            );
        }
        Never(wait) => {
            assert_eq!(
                heard.error().retry_after(),
                wait.map(Duration::from_secs),
                "{what}"
            );
            assert_eq!(
                (starts(&heard), server.request_count()),
                (vec![], 1),
                "{what}"
            );
        }
    }
}

/// The numbers of the attempts that were shown.
fn starts(heard: &Heard) -> Vec<u32> {
    let started = |chunk: &Chunk| {
        if let Chunk::Start { attempt, .. } = chunk {
            Some(*attempt)
        } else {
            None
        }
    };
    heard.chunks.iter().filter_map(started).collect()
}

#[tokio::test]
async fn retry_waits_as_asked_when_a_header_tells_how_long() {
    let cells = WIRES
        .into_iter()
        .flat_map(|wire| FORMS.iter().map(move |form| (wire, form)));
    join_all(
        cells
            .map(|(wire, (code, headers, then))| check(wire, refusal(wire, *code, headers), *then)),
    )
    .await;
}

#[tokio::test]
async fn retry_waits_as_asked_when_the_body_tells_how_long() {
    let info = |delay: &str| {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        let details = json!([{"@type": kind, "retryDelay": delay}]);
        let error = json!({"code": 429, "message": "Slow.", "status": "RESOURCE_EXHAUSTED", "details": details});
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Fault::Status {
            code: 429,
            headers,
            body: Some(json!({"error": error}).to_string().into()),
        }
    };
    check(Wire::Gemini, info("0.05s"), Again(50)).await;
    check(Wire::Gemini, info("7s"), Never(Some(7))).await;
    // As each vendor says it: in a header, or in the body.
    join_all(WIRES.map(|wire| check(wire, Fault::rate_limited(7), Never(Some(7))))).await;
}

#[tokio::test]
async fn retry_asks_again_when_nothing_was_said_yet() {
    for fault in [
        Fault::overload_error(),
        Fault::server_error(),
        Fault::Hangup,
        Fault::Html,
        Fault::CutAt(0),
    ] {
        join_all(WIRES.map(|wire| check(wire, fault.clone(), Again(0)))).await;
    }
    for fault in [Fault::auth_error(), Fault::not_found(), Fault::status(400)] {
        join_all(WIRES.map(|wire| check(wire, fault.clone(), Never(None)))).await;
    }
}

#[tokio::test]
async fn retry_gives_up_when_every_attempt_fails() {
    for wire in WIRES {
        let server = server((0..3).map(|nth| (nth, Fault::overload_error()))).await;
        let model = Retry {
            policy: at_once(),
            ..Retry::new(over(wire, &server))
        };
        let heard = listen(&model, hello()).await;
        assert_eq!(
            (heard.error().kind(), server.request_count()),
            (ErrorKind::Overloaded, 3),
            "{wire}"
        );
        let heard = listen(&model, hello()).await;
        says_all(&heard, &wire.to_string());
    }
}

/// A retry over a timeout over a wire: each attempt may pause for a short time only.
fn timed(wire: Wire, server: &Loopback) -> Retry {
    let timed = Timeout::new(
        over(wire, server),
        TimeoutLimits {
            first_chunk: Some(SHORT),
            idle: Some(SHORT),
            ..TimeoutLimits::default()
        },
    );
    Retry {
        policy: at_once(),
        ..Retry::new(timed)
    }
}

#[tokio::test]
async fn retry_asks_again_when_an_answer_never_begins() {
    let cell = async |wire: Wire| {
        let server = server([(0, Fault::StallAt(0))]).await;
        let heard = listen(&timed(wire, &server), hello()).await;
        says_all(&heard, &wire.to_string());
        assert_eq!(
            (starts(&heard), heard.retracted, server.request_count()),
            (vec![1], 0, 2),
            "{wire}"
        );
    };
    join_all(WIRES.map(cell)).await;
}

#[tokio::test]
async fn retry_shows_no_delta_twice_when_an_answer_breaks_midway() {
    let cell = async |wire: Wire, fault: Fault| {
        let what = format!("{wire}, {fault:?}");
        let server = server([(0, fault.clone())]).await;
        let heard = listen(&timed(wire, &server), hello()).await;
        says_parts(&heard, &what);
        assert!(
            !heard.attempts[0].is_empty() && heard.end.is_err(),
            "{what}: {:?}",
            heard.attempts
        );
        assert_eq!(
            (starts(&heard), heard.retracted, server.request_count()),
            (vec![0], 0, 1),
            "{what}"
        );
    };
    let cells = WIRES
        .into_iter()
        .flat_map(|wire| midway().into_iter().map(move |fault| (wire, fault)));
    join_all(cells.map(|(wire, fault)| cell(wire, fault))).await;
}

#[tokio::test]
async fn retry_takes_back_what_was_shown_when_it_may() {
    let cell = async |wire: Wire, fault: Fault| {
        let what = format!("{wire}, {fault:?}");
        let server = server([(0, fault.clone()), (1, Fault::overload_error())]).await;
        let heard = listen(
            &Retry {
                retract: true,
                ..timed(wire, &server)
            },
            hello(),
        )
        .await;
        says_all(&heard, &what);
        assert_eq!(
            (starts(&heard), heard.retracted, server.request_count()),
            (vec![0, 2], 1, 3),
            "{what}"
        );
        assert!(!heard.attempts[0].is_empty(), "{what}");
    };
    let cells = WIRES
        .into_iter()
        .flat_map(|wire| midway().into_iter().map(move |fault| (wire, fault)));
    join_all(cells.map(|(wire, fault)| cell(wire, fault))).await;
}

#[tokio::test]
async fn timeout_ends_a_stream_when_it_stalls() {
    let none = TimeoutLimits::default();
    let limits = [
        (
            0,
            TimeoutLimits {
                first_chunk: Some(SHORT),
                ..none
            },
        ),
        (
            0,
            TimeoutLimits {
                total: Some(SHORT),
                ..none
            },
        ),
        (
            MIDDLE,
            TimeoutLimits {
                idle: Some(SHORT),
                ..none
            },
        ),
        (
            MIDDLE,
            TimeoutLimits {
                total: Some(SHORT),
                ..none
            },
        ),
    ];
    let cell = async |wire: Wire, at: u64, limits: TimeoutLimits| {
        let server = server([(0, Fault::StallAt(at))]).await;
        let heard = listen(&Timeout::new(over(wire, &server), limits), hello()).await;
        says_parts(&heard, &wire.to_string());
        let shown = heard
            .attempts
            .first()
            .is_some_and(|it| !it.is_empty() && it != SENTENCE);
        assert_eq!(
            (heard.error().kind(), shown),
            (ErrorKind::Timeout, at > 0),
            "{wire}, {at}"
        );
    };
    let cells = WIRES
        .into_iter()
        .flat_map(|wire| limits.into_iter().map(move |(at, limit)| (wire, at, limit)));
    join_all(cells.map(|(wire, at, limit)| cell(wire, at, limit))).await;
}

#[tokio::test]
async fn retracted_attempts_tell_what_they_used_when_the_wire_knows() {
    for wire in WIRES {
        let server = server([(0, Fault::CutAt(MIDDLE))]).await;
        let heard = listen(
            &Retry {
                policy: at_once(),
                retract: true,
                ..Retry::new(over(wire, &server))
            },
            hello(),
        )
        .await;
        let told = heard.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Retracted { usage, cause, .. } => Some((usage.input() > 0, cause.kind())),
            _ => None,
        });
        // Two wires tell the input as they begin.
        let early = matches!(wire, Wire::Messages | Wire::Gemini);
        assert_eq!(told, Some((early, ErrorKind::Network)), "{wire}");
    }
}

#[tokio::test]
async fn run_tells_each_delta_once_when_an_attempt_is_taken_back() {
    for wire in WIRES {
        let server = server([
            (0, Fault::CutAt(MIDDLE)),
            (1, Fault::ErrorAfter { frames: 9 }),
        ])
        .await;
        let agent = Agent::new(Retry {
            policy: at_once(),
            retract: true,
            ..Retry::new(over(wire, &server))
        });
        let mut running = agent
            .run("What is new?")
            .stream()
            .expect("the session is free");
        let mut shown = vec![String::new()];
        while let Some(event) = running.next().await {
            match event.kind {
                EventKind::TextDelta { text, .. } => {
                    shown.last_mut().expect("there is one").push_str(&text)
                }
                EventKind::ReplyRetracted { .. } => shown.push(String::new()),
                _ => {}
            }
        }
        assert!(
            shown
                .iter()
                .all(|it| !it.is_empty() && SENTENCE.starts_with(it.as_str())),
            "{wire}: {shown:?}"
        );
        assert_eq!((shown.len(), shown[2].as_str()), (3, SENTENCE), "{wire}");
    }
}
