//! Runs the tasks of other protocols in sessions.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Event, EventKind, JournalErrorKind, Lane, Post, Seq};
use adjutant_protocols::a2a::{Desk, DeskWish, Events, Until};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::time::{sleep, timeout};

use super::{
    Control, EventStream, LocalPrompter, ResumeRequest, following, live, local::left, session, told,
};
use crate::{Error, ErrorKind};

/// The time for a finished run to release its session, or for the next agent to start.
const BETWEEN: Duration = Duration::from_millis(20);
const LET_GO: Duration = Duration::from_secs(2);

#[async_trait]
impl Desk for LocalPrompter {
    async fn events(
        &self,
        session: &str,
        after: Seq,
        until: Until,
    ) -> Result<Events, adjutant_protocols::Error> {
        let events = self
            .told_of(session, after, until)
            .await
            .map_err(|error| refused(&error))?;
        Ok(Box::pin(
            events.map(|event| event.map_err(|error| refused(&error))),
        ))
    }

    async fn mark(&self, session: &str) -> Option<(u64, Seq)> {
        let info = self
            .asked()
            .sessions
            .journal()
            .info(&session::check(session).ok()?)
            .await
            .ok()?;
        Some((info.created_ms, info.head))
    }

    async fn perform(
        &self,
        session: &str,
        wish: DeskWish,
    ) -> Result<(), adjutant_protocols::Error> {
        self.done(session.into(), wish)
            .await
            .map_err(|error| refused(&error))
    }
}

impl LocalPrompter {
    async fn told_of(&self, session: &str, after: Seq, until: Until) -> Result<EventStream, Error> {
        let (log, asked) = (session::check(session)?, self.asked());
        let info = match asked.sessions.journal().info(&log).await {
            Ok(info) => info,
            Err(error) if error.kind == JournalErrorKind::Missing => {
                return Ok(Box::pin(stream::empty()));
            }
            Err(error) => return Err(told::journal_error(error)),
        };
        if until != Until::Now {
            return self.followed(session.into(), after).await;
        }
        let after = live::after(&info, Some(after.0))?;
        let was_at_work = asked.table.is_at_work(session);
        let lead = asked
            .table
            .lead(&session.into(), |name| (asked.lead)(name))?;
        let events: EventStream = match lead.active().await? {
            Some(agent) => Box::pin(
                agent
                    .log()
                    .events_after(after)
                    .map(|event| event.map_err(told::agent_error)),
            ),
            None => Box::pin(stream::empty()),
        };
        asked.table.forget();
        let is_left = self.is_left(session);
        if was_at_work && !is_left {
            return Ok(events);
        }
        let mut events: Vec<_> = events.collect().await;
        let newest = events
            .iter()
            .rev()
            .filter_map(|it| it.as_ref().ok())
            .find(|event| event.who.depth == 0);
        let is_end = |event: &Event| {
            matches!(
                event.kind,
                EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
            )
        };
        let ends = match newest {
            // A follower of the task also receives the question about its continuation.
            Some(event) if is_left => following::asks(event, vec![Arc::new(left(session))]),
            // As in a fork: no process runs it, unless it was continued in the meantime.
            Some(event) if !is_end(event) && !asked.table.is_at_work(session) => {
                let open = asked
                    .sessions
                    .open_run(&info)
                    .await
                    .map_err(told::journal_error)?;
                match open
                    .map(|open| open.pauses)
                    .filter(|pauses| !pauses.is_empty())
                {
                    Some(pauses) => following::asks(event, pauses),
                    // The next prompt closes it.
                    None => vec![following::cut(event)],
                }
            }
            _ => Vec::new(),
        };
        events.extend(ends.into_iter().map(Ok));
        Ok(Box::pin(stream::iter(events)))
    }

    /// Returns the events after a record, until the session is idle: after a handoff, each agent has a run.
    async fn followed(&self, session: Arc<str>, after: Seq) -> Result<EventStream, Error> {
        // Checked before the events: the output of the last active run is read after its end.
        let at_work = self.asked().table.is_at_work(&session);
        let events = self.attached(&session, Some(after.0)).await?;
        let state = (self.clone(), session, events, after, at_work);
        Ok(Box::pin(stream::unfold(Some(state), |state| async move {
            let (prompter, session, mut events, mut after, mut at_work) = state?;
            loop {
                match events.next().await {
                    Some(Ok(event)) => {
                        after = after.max(event.seq);
                        return Some((
                            Ok(event),
                            Some((prompter, session, events, after, at_work)),
                        ));
                    }
                    Some(Err(error)) => return Some((Err(error), None)),
                    None if !at_work => return None,
                    None => sleep(BETWEEN).await,
                }
                at_work = prompter.asked().table.is_at_work(&session);
                match prompter.attached(&session, Some(after.0)).await {
                    Ok(next) => events = next,
                    Err(error) => return Some((Err(error), None)),
                }
            }
        })))
    }

    /// Waits until a session is free whose run has ended according to its log: the end is recorded shortly before.
    async fn freed(&self, session: &str) {
        let mut runs = self.runs();
        let freed = async {
            runs.mark_unchanged();
            // Cannot fail, because the prompter holds the sender.
            while self.asked().table.is_at_work(session) && runs.changed().await.is_ok() {}
        };
        // If it continues, it refuses the request.
        let _is_free = timeout(LET_GO, freed).await;
    }

    async fn done(&self, session: Arc<str>, wish: DeskWish) -> Result<(), Error> {
        let (log, table) = (session::check(&session)?, &self.asked().table);
        match wish {
            DeskWish::Prompt(entries) => {
                let place = table.place()?;
                self.freed(&session).await;
                self.begin_on(entries, &session, None).await?.detach(place);
            }
            DeskWish::Answers { answers, note } => {
                let place = table.place()?;
                self.freed(&session).await;
                let post = Post::Message {
                    lane: Lane::Steering,
                    content: note,
                };
                self.asked()
                    .sessions
                    .journal()
                    .post(&log, post)
                    .await
                    .map_err(told::journal_error)?;
                self.going_on(ResumeRequest::new(answers).session(session))
                    .await?
                    .detach(place);
            }
            DeskWish::Stop => self.hear(session, Control::Stop {}).await?,
            // The manifest decides about an interrupted run.
            _ => {}
        }
        Ok(())
    }
}

fn refused(error: &Error) -> adjutant_protocols::Error {
    let kind = match error.kind() {
        ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Closed => {
            adjutant_protocols::ErrorKind::Stale
        }
        ErrorKind::Invalid | ErrorKind::Full | ErrorKind::Missing => {
            adjutant_protocols::ErrorKind::Invalid
        }
        _ => adjutant_protocols::ErrorKind::Agent,
    };
    adjutant_protocols::Error::new(kind, error.message())
}
