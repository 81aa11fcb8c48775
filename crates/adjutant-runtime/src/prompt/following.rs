//! Follows a session permanently: across its runs, and while none is active.

use std::{sync::Arc, time::Duration};

use adjutant_agent::EventKind;
#[cfg(feature = "http")]
use adjutant_agent::{CancelBy, Event, Outcome, Pause, RunResult};
use futures_util::{StreamExt, stream};
use tokio::time::sleep;

use super::{EventStream, Prompter};

/// The interval between two reads of a session without an active run.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A followed session.
struct Following {
    prompter: Arc<dyn Prompter>,
    session: Option<Arc<str>>,
    /// The events up to the end of a run; `None` without an active run.
    events: Option<EventStream>,
    /// The latest emitted record.
    after: u64,
}

/// Continues the events of a session after this record, when its run has ended or waits.
///
/// It only ends with an error. Cancel: nothing is lost.
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

/// Returns the events up to the next end or pause of a run of the first agent.
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

/// Returns the final events of a run that waits for an approval to continue, which its log does not contain. `newest`
/// is the last event.
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

/// Returns the final event of a run that no process runs, as for a closed log. `newest` is the last event.
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
