//! Recordings of real exchanges, broken ones too: what is played back is what was heard, without a server.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant::{
    Model,
    llm::{
        Cassette, Fallback, Limiter, PerMinute, RateLimit, Recorder, Replay, Retry, Timeout,
        TimeoutLimits,
    },
};
use adjutant_testing::{Fault, Loopback};
use adjutant_tests::{Heard, WIRES, Wire, listen};

use super::{SHORT, at_once, hello, midway, over, pairs, says_all, server};

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("nothing panics")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn replay(&self) -> Replay {
        let bytes = self.0.lock().expect("nothing panics");
        Replay::new(Cassette::read(&bytes[..]).expect("what was recorded loads"))
    }
}

#[track_caller]
fn same(played: &Heard, heard: &Heard, what: &str) {
    assert_eq!(played.chunks, heard.chunks, "{what}");
    assert_eq!(played.end.as_ref().ok(), heard.end.as_ref().ok(), "{what}");
    assert_eq!(
        played.end.as_ref().err().map(ToString::to_string),
        heard.end.as_ref().err().map(ToString::to_string)
    );
}

#[tokio::test]
async fn replay_plays_what_was_heard_when_the_server_is_gone() {
    for (wire, fault) in WIRES
        .into_iter()
        .flat_map(|wire| midway().into_iter().map(move |fault| (wire, fault)))
    {
        if fault == Fault::StallAt(super::MIDDLE) {
            continue;
        }
        let what = format!("{wire}, {fault:?}");
        let (outside, inside) = (Sink::default(), Sink::default());
        let server = server([(0, fault)]).await;
        let retried = Retry {
            policy: at_once(),
            retract: true,
            ..Retry::new(Recorder::new(over(wire, &server), inside.clone()))
        };
        let model = Recorder::new(retried, outside.clone());
        let heard = listen(&model, hello()).await;
        says_all(&heard, &what);
        drop(server);
        let played = outside.replay();
        same(&listen(&played, hello()).await, &heard, &what);
        assert_eq!(played.remaining(), 0, "{what}");
        // Recorded inside, each attempt is played, and what stood around it works again.
        let again = Retry {
            policy: at_once(),
            retract: true,
            ..Retry::new(inside.replay())
        };
        same(&listen(&again, hello()).await, &heard, &what);
    }
}

/// All decorators, in the order that they are meant for.
fn stack(first: (Wire, &Loopback), second: (Wire, &Loopback), sink: &Sink) -> impl Model {
    let limiter = Limiter::new(PerMinute {
        requests: Some(1_000),
        ..PerMinute::default()
    });
    let one = |(wire, server): (Wire, &Loopback)| {
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
            retract: true,
            ..Retry::new(RateLimit::new(timed, limiter.clone()))
        }
    };
    let either = Fallback {
        retract: true,
        ..Fallback::new(one(first)).or(one(second))
    };
    Recorder::new(
        Timeout::new(
            either,
            TimeoutLimits {
                total: Some(Duration::from_secs(60)),
                ..TimeoutLimits::default()
            },
        ),
        sink.clone(),
    )
}

#[tokio::test]
async fn decorators_work_together_when_one_wire_fails_again_and_again() {
    for (first, second) in pairs() {
        let what = format!("{first} → {second}");
        let broken = [
            (0, Fault::overload_error()),
            (1, Fault::CutAt(super::MIDDLE)),
            (2, Fault::Hangup),
        ];
        let (broken, once) = (
            server(broken).await,
            server([(0, Fault::ErrorAfter { frames: 9 })]).await,
        );
        let sink = Sink::default();
        let model = stack((first, &broken), (second, &once), &sink);
        let heard = listen(&model, hello()).await;
        says_all(&heard, &what);
        // One attempt of each wire was shown in part, the last one whole.
        assert_eq!(
            (heard.attempts.len(), heard.retracted),
            (3, 2),
            "{what}: {:?}",
            heard.attempts
        );
        assert_eq!(
            (broken.request_count(), once.request_count()),
            (3, 2),
            "{what}"
        );
        assert_eq!(
            model.info_of(&heard.reply().model).id.as_str(),
            second.id(),
            "{what}"
        );
        same(&listen(&sink.replay(), hello()).await, &heard, &what);
    }
}
