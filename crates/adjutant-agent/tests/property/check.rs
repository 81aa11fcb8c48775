//! What must hold of every stream of events, every log, and every transcript.

use std::collections::BTreeSet;

use adjutant_agent::{Event, EventKind, Record, Run, Seq, Stamped};
use adjutant_llm::{CallId, Entry, Request, Status, Stop, Transcript};

/// Where a stream of events stands.
#[derive(Default)]
struct Brackets {
    run: bool,
    turn: bool,
    reply: bool,
    over: bool,
    blocks: BTreeSet<u32>,
    asked: BTreeSet<CallId>,
    running: BTreeSet<CallId>,
    ended: BTreeSet<CallId>,
    seq: Seq,
}

/// Every start has one end, in order; `whole` says whether the run was read to its end.
pub(crate) fn brackets(events: &[Event], whole: bool) {
    let mut state = Brackets::default();
    events.iter().for_each(|event| state.take(event));
    assert!(!whole || state.over, "a run that ended without telling: {events:#?}");
}

impl Brackets {
    fn take(&mut self, event: &Event) {
        assert!(!self.over, "an event after the last one: {event:?}");
        assert!(event.seq >= self.seq, "an event of {} after one of {}: {event:?}", event.seq, self.seq);
        self.seq = event.seq;
        assert_eq!(self.run, !matches!(event.kind, EventKind::RunStarted), "RunStarted is first, once: {event:?}");
        match &event.kind {
            EventKind::RunStarted => self.run = true,
            EventKind::TurnStarted => assert!(!std::mem::replace(&mut self.turn, true), "a turn within a turn"),
            EventKind::TurnFinished => {
                assert!(std::mem::take(&mut self.turn), "the end of no turn");
                assert_eq!(self.asked, self.ended, "calls without a result at the end of a turn");
                *self = Self { run: true, seq: self.seq, ..Self::default() };
            }
            EventKind::RunFinished { .. } => {
                assert!(!self.turn, "the run ended within a turn");
                self.over = true;
            }
            EventKind::EntryAdded { .. } | EventKind::CancelAsked { .. } => {}
            kind => {
                assert!(self.turn, "{event:?} outside a turn");
                self.within(kind);
            }
        }
    }

    fn within(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ReplyStarted { .. } => assert!(!std::mem::replace(&mut self.reply, true), "two replies"),
            EventKind::BlockStarted { block, .. } => assert!(self.reply && self.blocks.insert(*block), "{kind:?}"),
            EventKind::TextDelta { block, .. }
            | EventKind::ThinkingDelta { block, .. }
            | EventKind::ArgsDelta { block, .. } => assert!(self.blocks.contains(block), "{kind:?}"),
            EventKind::BlockFinished { block, .. } => assert!(self.blocks.remove(block), "{kind:?}"),
            EventKind::ReplyRetracted { .. } => {
                assert!(std::mem::take(&mut self.reply), "a retraction of nothing");
                self.blocks.clear();
            }
            EventKind::ReplyFinished { reply, .. } => {
                assert!(std::mem::take(&mut self.reply), "the end of no reply");
                assert!(reply.stop == Stop::Interrupted || self.blocks.is_empty(), "open blocks in {reply:?}");
                self.asked = reply.calls().map(|call| call.id).collect();
            }
            EventKind::ToolStarted { call, .. } => {
                assert!(self.asked.contains(call) && !self.ended.contains(call), "{kind:?}");
                assert!(self.running.insert(*call), "{call} started twice");
            }
            EventKind::ToolProgress { call, .. } => assert!(self.running.contains(call), "{kind:?}"),
            EventKind::ToolFinished { call, .. } => {
                assert!(self.running.remove(call) && self.ended.insert(*call), "{call} ended twice or never began");
            }
            _ => {}
        }
    }
}

/// Whether an event is a record; the others are deltas, and `RunFinished` is the driver's.
pub(crate) fn is_record(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::RunStarted
            | EventKind::EntryAdded { .. }
            | EventKind::TurnStarted
            | EventKind::ReplyFinished { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::TurnFinished
            | EventKind::CancelAsked { .. }
    )
}

/// The log is contiguous, survives its bytes, and folds from any place to the same state. Gives that state.
pub(crate) fn log(records: &[Stamped]) -> Run {
    let mut run = Run::new();
    for (at, stamped) in (1..).zip(records) {
        assert_eq!(stamped.seq, Seq(at), "a gap in the log");
        let read: Stamped = serde_json::from_slice(stamped.bytes().expect("a record is JSON")).expect("it reads back");
        assert_eq!(&read, stamped);
        run.apply(&read).expect("the log folds");
        let bytes = serde_json::to_vec(&run).expect("a run is JSON");
        run = {
            let read: Run = serde_json::from_slice(&bytes).expect("a run reads back");
            assert_eq!(read, run, "the state after record {at} changed through serde");
            read
        };
    }
    assert!(!run.is_open(), "the log ends within a run");
    run
}

/// Every call has one result of its own, and what may not run did not.
pub(crate) fn transcript(history: &Transcript, ran: &[CallId]) {
    let mut seen = BTreeSet::new();
    let turns =
        history.iter().filter_map(|stored| if let Entry::Turn(turn) = &stored.entry { Some(turn) } else { None });
    for turn in turns {
        assert_eq!(turn.reply().calls().count(), turn.results().len());
        for (call, result) in turn.pairs() {
            assert!(seen.insert(call.id), "{} is used twice", call.id);
            let times = ran.iter().filter(|id| **id == call.id).count();
            match result.status {
                Status::Ok | Status::Failed | Status::Panicked | Status::TimedOut => assert_eq!(times, 1, "{call:?}"),
                Status::Cancelled => assert!(times <= 1, "{call:?} ran {times} times"),
                _ => assert_eq!(times, 0, "{call:?} with {result:?} ran"),
            }
            assert!(turn.reply().may_run_calls() || times == 0, "a call of a cut reply ran: {call:?}");
        }
    }
    assert!(ran.iter().all(|id| seen.contains(id)), "a call ran that is not in the transcript");
}

/// A request shows a prefix of the history that ends where a model may answer.
pub(crate) fn request(request: &Request, history: &Transcript) {
    let shown = request.entries.iter().map(|stored| &stored.entry);
    assert!(
        shown.eq(history.iter().take(request.entries.len()).map(|stored| &stored.entry)),
        "the request was made up"
    );
    let last = request.entries.last().map(|stored| &stored.entry);
    let may_answer = match last {
        Some(Entry::User(_)) => true,
        Some(Entry::Turn(turn)) => !turn.results().is_empty() || turn.reply().stop == Stop::Paused,
        _ => false,
    };
    assert!(may_answer, "nothing to answer in {last:?}");
}

/// How many records are of a run's beginning and end.
pub(crate) fn bounds(records: &[Stamped]) -> (usize, usize) {
    let count = |is: fn(&Record) -> bool| records.iter().filter(|stamped| is(&stamped.record)).count();
    (count(|it| matches!(it, Record::Began { .. })), count(|it| matches!(it, Record::Ended { .. })))
}
