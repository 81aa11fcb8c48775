//! The events of a log, read after the fact or while it grows.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use adjutant_core::{Error, Event, EventFold, Journal, LogId, RecordStream, Seq};
use adjutant_tool::Identity;
use futures_core::Stream;
use futures_util::StreamExt;

/// The events of a log after a record, including sub-agents; ends with the log.
///
/// Deltas, progress and warnings are not in a log, except the text of a reply that was acknowledged and did not
/// arrive completely. `RunFinished` and `RunPaused` are derived from the records.
#[must_use = "a stream does nothing until it is read"]
pub struct PastEvents {
    journal: Arc<dyn Journal>,
    log: LogId,
    records: Option<RecordStream>,
    pub(crate) fold: EventFold,
}

impl PastEvents {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        log: LogId,
        who: Arc<Identity>,
        after: Seq,
    ) -> Self {
        Self {
            journal,
            log,
            records: None,
            fold: EventFold::new(who, after),
        }
    }

    /// Ends with this record, if the log continues after it; the caller emits the last end of a run.
    pub(crate) fn until(mut self, until: Seq) -> Self {
        self.fold.until = Some(until);
        self
    }

    /// Skips the text of incomplete replies: the listener has received it.
    pub(crate) fn silent(mut self) -> Self {
        self.fold.silent = true;
        self
    }

    /// Reads on where the log ended.
    pub(crate) fn again(&mut self) {
        self.records = None;
    }

    /// Reads on, up to this record.
    pub(crate) fn go_on_until(&mut self, until: Seq) {
        if until > self.fold.at {
            self.fold.until = Some(until);
            self.again();
        }
    }

    /// Continues without a bound; content before this record was emitted elsewhere.
    pub(crate) fn go_on_after(&mut self, after: Seq) {
        let fold = &mut self.fold;
        fold.after = fold.after.max(after);
        (fold.until, fold.silent) = (None, false);
        fold.ended.take_if(|ended| ended.seq <= after);
        self.again();
    }

    /// The log and its agent.
    pub(crate) fn whose(&self) -> (LogId, Arc<Identity>) {
        (self.log.clone(), Arc::clone(&self.fold.who))
    }

    /// Stops emitting events.
    pub(crate) fn give_up(&mut self) {
        (self.fold.over, self.fold.ended) = (true, None);
        self.fold.ready.clear();
    }

    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event, Error>>> {
        loop {
            if let Some(event) = self.fold.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.fold.is_done() {
                return Poll::Ready(None);
            }
            let (journal, log, at) = (&self.journal, &self.log, self.fold.at);
            // A log that has ended is read again while its run is waited for.
            let records = self
                .records
                .get_or_insert_with(|| Box::pin(journal.read(log, at).fuse()));
            let taken = match ready!(records.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(stamped)) => self.fold.push(&stamped),
                Some(Err(error)) => Err(error.into()),
            };
            if let Err(error) = taken {
                self.give_up();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl Stream for PastEvents {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_event(cx));
        Poll::Ready(next.or_else(|| self.fold.pop_at_end().map(Ok)))
    }
}

impl fmt::Debug for PastEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastEvents")
            .field("log", &self.log)
            .field("fold", &self.fold)
            .finish_non_exhaustive()
    }
}
