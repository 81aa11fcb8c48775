//! Events of runs as server-sent events: `id` is the record, `event` the kind, `data` the event as JSON.

use std::{borrow::Cow, convert::Infallible, time::Duration};

use axum::{
    http::header,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{error::Wire, simple::Simple};
use crate::{Error, prompt::EventStream};

/// The frame after the last event. A stream without it was interrupted.
pub(crate) const END: &str = "end";
/// The frame with the error that ended the stream.
pub(super) const ERROR: &str = "error";
/// The interval of comments on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns a response with these frames.
pub(crate) fn respond(
    frames: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let sse = Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    ([(header::CACHE_CONTROL, "no-store")], sse).into_response()
}

/// Returns a frame with this name and data.
pub(crate) fn frame(name: &str, data: &impl Serialize) -> Event {
    // Our types with string keys always serialize.
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(name).data(data)
}

/// Returns every event of a run, followed by `end`; or by `error` if the stream was interrupted.
pub(super) fn all(events: EventStream) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        match events.next().await {
            Some(Ok(event)) => Some((Ok(whole(&event)), Some(events))),
            Some(Err(error)) => Some((Ok(broken(&error)), None)),
            None => Some((Ok(Event::default().event(END).data("{}")), None)),
        }
    })
}

/// Returns the events of a run in the simple format; the last one is `message.create` or `error`.
pub(super) fn simple(events: EventStream) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let items = stream::unfold(Some((events, Simple::default())), |state| async move {
        let (mut events, mut simple) = state?;
        loop {
            match events.next().await {
                Some(Ok(event)) => {
                    if let Some((name, data)) = simple.tell(&event) {
                        let id = event.seq.0.to_string();
                        return Some((frame(name, &data).id(id), Some((events, simple))));
                    }
                }
                Some(Err(error)) => return Some((broken(&error), None)),
                None => {
                    let (name, data) = simple.end();
                    return Some((frame(name, &data), None));
                }
            }
        }
    });
    items.map(Ok)
}

fn broken(error: &Error) -> Event {
    frame(ERROR, &Wire::from_error(error))
}

/// The name of an event in its JSON.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
}

fn whole(event: &adjutant_agent::Event) -> Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    let name = serde_json::from_str::<Named<'_>>(&data)
        .map(|it| it.event.into_owned())
        .unwrap_or_default();
    Event::default()
        .id(event.seq.0.to_string())
        .event(name)
        .data(data)
}
