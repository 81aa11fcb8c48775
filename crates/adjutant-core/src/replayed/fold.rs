//! Rebuilds events from a log's records: the events of the live run, without data that no record contains.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use adjutant_llm::ThreadId;
use adjutant_tool::Identity;

use super::speaking::Speaking;
use crate::{
    error::Error,
    event::{Event, EventKind, Events},
    journal::Stamped,
    number::{Seq, TurnNo},
    outcome::Outcome,
    record::Record,
    run::{Next, Run},
};

/// Converts the records of a log to events, including those of sub-agents. Pure: the caller passes the records, in
/// order from the first one, and reads the events.
///
/// Deltas, progress and warnings are not in a log, except the text of a reply that was acknowledged and did not
/// arrive completely. `RunFinished` and `RunPaused` are derived from the records.
#[derive(Debug)]
pub struct EventFold {
    /// The owner of the log.
    pub who: Arc<Identity>,
    threads: BTreeMap<ThreadId, Thread>,
    /// The record after which events are emitted; records up to it are folded silently.
    pub after: Seq,
    /// The last record whose events are emitted, if the log continues after it; all of them by default.
    pub until: Option<Seq>,
    /// The newest record that was given: the place to read on from.
    pub at: Seq,
    /// The events of the records that were given, to be taken from the front.
    pub ready: VecDeque<Event>,
    /// The end of a run, until it is known whether it was overruled.
    pub ended: Option<Event>,
    /// True if incomplete replies are skipped, because the listener has received them; false by default.
    pub silent: bool,
    /// True if no more events follow.
    pub over: bool,
}

/// One conversation of the log.
#[derive(Debug)]
struct Thread {
    events: Events,
    run: Run,
    who: Arc<Identity>,
    at_ms: u64,
    speaking: Speaking,
    /// An attempt at a reply that the listener knows.
    known: Option<(TurnNo, u32)>,
}

impl EventFold {
    /// Emits the events after a record; the records before it are folded silently.
    pub fn new(who: Arc<Identity>, after: Seq) -> Self {
        Self {
            who,
            threads: BTreeMap::new(),
            after,
            until: None,
            at: Seq(0),
            ready: VecDeque::new(),
            ended: None,
            silent: false,
            over: false,
        }
    }

    /// Returns the next event after the last record: the text of incomplete replies, and the end or the wait of the
    /// run.
    pub fn pop_at_end(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        if self.tell_said() {
            return self.ready.pop_front();
        }
        self.over = true;
        self.take_last()
    }

    /// True if every requested record was read.
    pub fn is_done(&self) -> bool {
        self.over || self.until.is_some_and(|until| self.at >= until)
    }

    /// Returns the end of a drive if it was missed: for a run that has ended according to the log, or for an unknown
    /// one.
    pub fn last(&mut self, end: Option<Event>) -> Option<Event> {
        self.over = true;
        match (self.ended.take(), end) {
            (Some(told), Some(end)) if told.run != end.run => {
                self.ready.push_back(end);
                Some(told)
            }
            (Some(told), None) if told.who.parent.is_some() => Some(told),
            (_, Some(end)) => Some(end),
            // It was not missed, and follows separately.
            (_, None) => None,
        }
    }

    /// Folds the next record.
    ///
    /// # Errors
    /// `Defect` if it cannot follow the one before.
    pub fn push(&mut self, stamped: &Arc<Stamped>) -> Result<(), Error> {
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
            self.threads
                .insert(stamped.thread.clone(), Thread::new(Arc::clone(&self.who)));
        }
        if let Record::ChildOpened { thread, who, .. } = &stamped.record {
            self.threads
                .entry(thread.clone())
                .or_insert_with(|| Thread::new(Arc::clone(who)));
        }
        // A conversation that was not opened here does not belong to this session.
        let Some(thread) = self.threads.get_mut(&stamped.thread) else {
            return Ok(());
        };
        if matches!(stamped.record, Record::Resumed { .. }) {
            self.ready
                .extend(thread.park_event().filter(|event| event.seq > self.after));
        }
        thread.run.apply(stamped)?;
        thread.at_ms = stamped.at_ms;
        let (after, ready) = (self.after, &mut self.ready);
        let (seq, at_ms, who) = (stamped.seq, stamped.at_ms, Arc::clone(&thread.who));
        let (run, turn) = (thread.run.run(), thread.run.turn());
        let is_known = self.silent || seq <= after || thread.knows(&stamped.record);
        thread.speaking.hear(&stamped.record, is_known, |kind| {
            ready.push_back(Event {
                seq,
                at_ms,
                run,
                turn,
                who: Arc::clone(&who),
                kind,
            });
        });
        thread.events.fold(stamped, |event| {
            if event.seq > after {
                ready.push_back(event);
            }
        });
        if matches!(
            stamped.record,
            Record::Ended { .. } | Record::Overruled { .. }
        ) && stamped.seq > after
        {
            self.ended = thread.end();
        }
        Ok(())
    }

    /// Forgets an attempt at a reply that was emitted elsewhere, including its retraction.
    pub fn forget(&mut self, thread: &ThreadId, turn: TurnNo, attempt: u32) {
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.known = Some((turn, attempt));
        }
    }

    /// True if a run is open that does not wait for the outside.
    pub fn is_at_work(&self) -> bool {
        let first = self.threads.get(&self.who.thread);
        first.is_some_and(|first| first.run.is_open() && first.park_event().is_none())
    }

    /// Emits the new text of incomplete replies; returns whether there is any.
    pub fn tell_said(&mut self) -> bool {
        let (seq, ready) = (self.at, &mut self.ready);
        for thread in self.threads.values_mut() {
            let (at_ms, who, run, turn) = (
                thread.at_ms,
                &thread.who,
                thread.run.run(),
                thread.run.turn(),
            );
            thread.speaking.tell(|kind| {
                ready.push_back(Event {
                    seq,
                    at_ms,
                    run,
                    turn,
                    who: Arc::clone(who),
                    kind,
                });
            });
        }
        !self.ready.is_empty()
    }

    /// The last event, when the log has ended: of a run that ended or waits.
    pub fn take_last(&mut self) -> Option<Event> {
        let after = self.after;
        let parked = || {
            self.threads
                .get(&self.who.thread)
                .and_then(Thread::park_event)
                .filter(|event| event.seq > after)
        };
        self.ended.take().or_else(parked)
    }
}

impl Thread {
    fn new(who: Arc<Identity>) -> Self {
        let (events, speaking) = (Events::new(Arc::clone(&who)), Speaking::default());
        Self {
            events,
            run: Run::default(),
            who,
            at_ms: 0,
            speaking,
            known: None,
        }
    }

    /// Returns the event of the newest run's end, or of its wait.
    fn end(&self) -> Option<Event> {
        let result = Arc::new(self.run.result(&self.who)?);
        let kind = match result.outcome {
            Outcome::Paused { .. } => EventKind::RunPaused { result },
            _ => EventKind::RunFinished { result },
        };
        let (seq, who) = (self.run.seq(), Arc::clone(&self.who));
        Some(Event {
            seq,
            at_ms: self.at_ms,
            run: self.run.run(),
            turn: self.run.turn(),
            who,
            kind,
        })
    }

    /// True if the listener knows the attempt that a record is about.
    fn knows(&self, record: &Record) -> bool {
        match record {
            Record::Heard { turn, attempt, .. } | Record::Retracted { turn, attempt, .. } => {
                self.known == Some((*turn, *attempt))
            }
            _ => false,
        }
    }

    /// Returns the event that the newest run waits for the outside, if it does.
    fn park_event(&self) -> Option<Event> {
        matches!(self.run.next(&BTreeSet::new()), Next::Park(_))
            .then(|| self.end())
            .flatten()
    }
}
