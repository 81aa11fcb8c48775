//! Events that are made of a log once more: what a live run showed, without what no record holds.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use adjutant_llm::ThreadId;
use adjutant_tool::Identity;
use futures_core::Stream;

use crate::{Error, Event, EventKind, Events, Journal, LogId, Next, Outcome, Record, RecordStream, Run, Seq, Stamped};

/// The events of a log after a record, those of agents under it included; ends with the log.
///
/// Deltas, progress and warnings are not in a log. `RunFinished` and `RunPaused` are: they follow from what is.
#[must_use = "a stream does nothing until it is read"]
pub struct PastEvents {
    journal: Arc<dyn Journal>,
    log: LogId,
    records: Option<RecordStream>,
    who: Arc<Identity>,
    threads: BTreeMap<ThreadId, Thread>,
    after: Seq,
    until: Option<Seq>,
    at: Seq,
    ready: VecDeque<Event>,
    /// The end of a run, until it is known whether it was overruled.
    ended: Option<Event>,
    over: bool,
}

/// One conversation of the log.
struct Thread {
    events: Events,
    run: Run,
    who: Arc<Identity>,
    at_ms: u64,
}

impl PastEvents {
    pub(crate) fn new(journal: Arc<dyn Journal>, log: LogId, who: Arc<Identity>, after: Seq) -> Self {
        Self {
            journal,
            log,
            records: None,
            who,
            threads: BTreeMap::new(),
            after,
            until: None,
            at: Seq(0),
            ready: VecDeque::new(),
            ended: None,
            over: false,
        }
    }

    /// Ends with this record, if the log goes on behind it; the last end of a run is left to whoever asks.
    pub(super) fn until(mut self, until: Seq) -> Self {
        self.until = Some(until);
        self
    }

    /// Whether everything was read that was asked for.
    pub(super) fn is_done(&self) -> bool {
        self.over || self.until.is_some_and(|until| self.at >= until)
    }

    /// Reads on where the log ended.
    pub(super) fn again(&mut self) {
        self.records = None;
    }

    /// Reads no more.
    pub(super) fn give_up(&mut self) {
        (self.over, self.ended) = (true, None);
        self.ready.clear();
    }

    /// The end of a drive, which was missed: of a run that the log tells to have ended, or of one that it knows not.
    pub(super) fn last(&mut self, end: Option<Event>) -> Option<Event> {
        self.over = true;
        match (self.ended.take(), end) {
            (Some(told), Some(end)) if told.run != end.run => {
                self.ready.push_back(end);
                Some(told)
            }
            (Some(told), None) if told.who.parent.is_some() => Some(told),
            (_, Some(end)) => Some(end),
            // It was not missed, and comes by itself.
            (_, None) => None,
        }
    }

    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.is_done() {
                return Poll::Ready(None);
            }
            let (journal, log, at) = (&self.journal, &self.log, self.at);
            let records = self.records.get_or_insert_with(|| journal.read(log, at));
            let taken = match ready!(records.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(stamped)) => self.take(&stamped),
                Some(Err(error)) => Err(error.into()),
            };
            if let Err(error) = taken {
                self.give_up();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn take(&mut self, stamped: &Arc<Stamped>) -> Result<(), Error> {
        if self.until.is_some_and(|until| stamped.seq > until) {
            self.over = true;
            return Ok(());
        }
        self.at = stamped.seq;
        let overruled = matches!(stamped.record, Record::Overruled { .. });
        match self.ended.take() {
            Some(ended) if overruled && ended.who.thread == stamped.thread => {}
            ended => self.ready.extend(ended),
        }
        if stamped.thread == self.who.thread && !self.threads.contains_key(&stamped.thread) {
            self.threads.insert(stamped.thread.clone(), Thread::new(Arc::clone(&self.who)));
        }
        if let Record::ChildOpened { thread, who, .. } = &stamped.record {
            self.threads.entry(thread.clone()).or_insert_with(|| Thread::new(Arc::clone(who)));
        }
        // A conversation that nobody here has opened is not this session's.
        let Some(thread) = self.threads.get_mut(&stamped.thread) else { return Ok(()) };
        if matches!(stamped.record, Record::Resumed { .. }) {
            self.ready.extend(thread.parked().filter(|event| event.seq > self.after));
        }
        thread.run.apply(stamped)?;
        thread.at_ms = stamped.at_ms;
        let (after, ready) = (self.after, &mut self.ready);
        thread.events.fold(stamped, |event| {
            if event.seq > after {
                ready.push_back(event);
            }
        });
        if matches!(stamped.record, Record::Ended { .. } | Record::Overruled { .. }) && stamped.seq > after {
            self.ended = thread.end();
        }
        Ok(())
    }
}

impl Thread {
    fn new(who: Arc<Identity>) -> Self {
        Self { events: Events::of(Arc::clone(&who)), run: Run::new(), who, at_ms: 0 }
    }

    /// How the newest run ended, or waits.
    fn end(&self) -> Option<Event> {
        let result = Arc::new(self.run.result(&self.who)?);
        let kind = match result.outcome {
            Outcome::Paused { .. } => EventKind::RunPaused { result },
            _ => EventKind::RunFinished { result },
        };
        let (seq, who) = (self.run.seq(), Arc::clone(&self.who));
        Some(Event { seq, at_ms: self.at_ms, run: self.run.run(), turn: self.run.turn(), who, kind })
    }

    /// That the newest run waits for the outside, if it does.
    fn parked(&self) -> Option<Event> {
        matches!(self.run.next(&BTreeSet::new()), Next::Park(_)).then(|| self.end()).flatten()
    }
}

impl Stream for PastEvents {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_event(cx));
        if next.is_some() || self.over {
            return Poll::Ready(next);
        }
        // The log ends here: so does the run, or it waits.
        self.over = true;
        let after = self.after;
        let parked = || self.threads.get(&self.who.thread).and_then(Thread::parked).filter(|event| event.seq > after);
        let last = self.ended.clone().or_else(parked);
        Poll::Ready(last.map(Ok))
    }
}

impl fmt::Debug for PastEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastEvents").field("log", &self.log).field("at", &self.at).finish_non_exhaustive()
    }
}
