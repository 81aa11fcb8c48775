//! What must hold of every stream of events, every log, and every transcript.

#[path = "brackets.rs"]
mod brackets;
#[path = "fold.rs"]
mod fold;

use std::collections::BTreeSet;

use adjutant_agent::{Event, Record, Run, Stamped};
use adjutant_llm::{CallId, Entry, FinishReason, Request, Status, Transcript};

/// Every start has one end, in order; `whole` says whether the run was read to its end.
pub(crate) fn brackets(events: &[Event], whole: bool) {
    brackets::Brackets::new(false).drive(events, whole);
}

/// Whether an event is a record.
pub(crate) fn is_record(event: &Event) -> bool {
    brackets::is_record(event)
}

/// The log is contiguous, survives its bytes, and folds from any place to the same state. Gives that state.
pub(crate) fn log(records: &[Stamped]) -> Run {
    fold::log(records)
}

/// Every call has one result of its own, and what may not run did not.
pub(crate) fn transcript(history: &Transcript, ran: &[CallId]) {
    let mut seen = BTreeSet::new();
    let turns = history.iter().filter_map(|stored| {
        if let Entry::Turn(turn) = &stored.entry {
            Some(turn)
        } else {
            None
        }
    });
    for turn in turns {
        assert_eq!(turn.reply().calls().count(), turn.results().len());
        for (call, result) in turn.pairs() {
            assert!(seen.insert(call.id), "{} is used twice", call.id);
            let times = ran.iter().filter(|id| **id == call.id).count();
            match result.status {
                Status::Ok | Status::Failed | Status::Panicked | Status::TimedOut => {
                    assert_eq!(times, 1, "{call:?}")
                }
                Status::Cancelled => assert!(times <= 1, "{call:?} ran {times} times"),
                _ => assert_eq!(times, 0, "{call:?} with {result:?} ran"),
            }
            assert!(
                turn.reply().may_run_calls() || times == 0,
                "a call of a cut reply ran: {call:?}"
            );
        }
    }
    assert!(
        ran.iter().all(|id| seen.contains(id)),
        "a call ran that is not in the transcript"
    );
}

/// A request shows a prefix of the history that ends where a model may answer.
pub(crate) fn request(request: &Request, history: &Transcript) {
    let shown = request.entries.iter().map(|stored| &stored.entry);
    assert!(
        shown.eq(history
            .iter()
            .take(request.entries.len())
            .map(|stored| &stored.entry)),
        "the request was made up"
    );
    let last = request.entries.last().map(|stored| &stored.entry);
    let may_answer = match last {
        Some(Entry::User(_)) => true,
        Some(Entry::Turn(turn)) => {
            !turn.results().is_empty() || turn.reply().stop == FinishReason::Paused
        }
        _ => false,
    };
    assert!(may_answer, "nothing to answer in {last:?}");
}

/// How many records are of a run's beginning and end.
pub(crate) fn bounds(records: &[Stamped]) -> (usize, usize) {
    let count =
        |is: fn(&Record) -> bool| records.iter().filter(|stamped| is(&stamped.record)).count();
    (
        count(|it| matches!(it, Record::Began { .. })),
        count(|it| matches!(it, Record::Ended { .. })),
    )
}
