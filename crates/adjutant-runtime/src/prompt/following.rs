//! A session that is followed for ever: over its runs, and while none is at work.

use std::{sync::Arc, time::Duration};

use adjutant_agent::EventKind;
#[cfg(feature = "http")]
use adjutant_agent::{CancelBy, Event, Outcome, Pause, RunResult};
use futures_util::{StreamExt, stream};
use tokio::time::sleep;

use super::{EventStream, Prompter};

/// The time between two looks at a session in which no run is at work.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A session that is followed.
struct Following {
    prompter: Arc<dyn Prompter>,
    session: Option<Arc<str>>,
    /// The events up to the end of a run; none while no run is at work.
    events: Option<EventStream>,
    /// The newest record that was told of.
    after: u64,
}

/// Goes on with the events of a session, which are those after this record, when its run has ended or waits.
///
/// It ends with an error alone. Cancel: nothing is lost.
pub(crate) fn follow(
    prompter: Arc<dyn Prompter>,
    session: Option<Arc<str>>,
    (events, after): (EventStream, u64),
) -> EventStream {
    let following = Following {
        prompter,
        session,
        events: Some(events),
        after,
    };
    Box::pin(stream::unfold(Some(following), |following| async move {
        let mut following = following?;
        loop {
            match &mut following.events {
                Some(events) => match events.next().await {
                    Some(Ok(event)) => {
                        following.after = following.after.max(event.seq.0);
                        return Some((Ok(event), Some(following)));
                    }
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => {
                        following.events = None;
                        sleep(LOOK_EVERY).await;
                    }
                },
                None => match following
                    .prompter
                    .attach(following.session.as_deref(), Some(following.after))
                    .await
                {
                    Ok(events) => following.events = Some(events),
                    Err(error) => return Some((Err(error), None)),
                },
            }
        }
    }))
}

/// The events up to the next end or wait of a run of the first agent.
pub(crate) fn until_end(events: EventStream) -> EventStream {
    Box::pin(stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        let event = events.next().await?;
        let is_end = event.as_ref().map_or(true, |event| {
            let ends = matches!(
                event.kind,
                EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
            );
            ends && event.who.depth == 0
        });
        Some((event, (!is_end).then_some(events)))
    }))
}

/// The end that the events of a run have which waits for a word whether it goes on: its log holds none. `newest` is their last.
#[cfg(feature = "http")]
pub(crate) fn asks(newest: &Event, pauses: Vec<Arc<Pause>>) -> Vec<Event> {
    let asked: Vec<_> = pauses
        .iter()
        .map(|pause| EventKind::Paused {
            pause: Arc::clone(pause),
        })
        .collect();
    let result = RunResult {
        run: newest.run,
        ..RunResult::never(&newest.who, Outcome::Paused { pauses })
    };
    let ends = asked.into_iter().chain([EventKind::RunPaused {
        result: Arc::new(result),
    }]);
    ends.map(|kind| Event {
        kind,
        ..newest.clone()
    })
    .collect()
}

/// The end that the events of a run have which nobody goes on with: as its log would tell if it was closed. `newest` is their last.
#[cfg(feature = "http")]
pub(crate) fn cut(newest: &Event) -> Event {
    let result = RunResult {
        run: newest.run,
        ..RunResult::never(
            &newest.who,
            Outcome::Cancelled {
                by: CancelBy::Crash,
            },
        )
    };
    Event {
        kind: EventKind::RunFinished {
            result: Arc::new(result),
        },
        ..newest.clone()
    }
}
