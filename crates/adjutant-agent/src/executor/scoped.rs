//! The scope of a call, made of what the executor has at hand.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use adjutant_core::{Outcome, Record, Run, Tally};
use adjutant_llm::{CallId, ThreadId};
use adjutant_tool::Replay;

use super::LocalExecutor;
use crate::{
    inbox::{Inbox, Input},
    middleware::DriveStart,
    scope::{CallParts, CallScope, KEPT, RunScopes, opener, start},
    turn_position::TurnPosition,
};

impl LocalExecutor {
    /// Inserts the unreported ends of children before the results of their calls: their usage is not lost.
    pub(super) fn add_orphans(&self, records: &mut Vec<Record>) {
        let is_end = |record: &Record| matches!(record, Record::Returned { .. });
        if records.iter().any(is_end) && !self.writer.threads().is_empty() {
            self.put_orphans(records);
        }
    }

    #[cold]
    fn put_orphans(&self, records: &mut Vec<Record>) {
        let (threads, thread) = (self.writer.threads(), &self.setup.who.thread);
        for record in std::mem::take(records) {
            if let Record::Returned { call, .. } = &record {
                records.extend(
                    threads
                        .orphans(thread, *call)
                        .into_iter()
                        .map(|orphan| child_end_record(*call, orphan)),
                );
            }
            records.push(record);
        }
    }

    /// Ends the children of the run; their ends come before its own.
    #[cold]
    pub(super) async fn end_children(&mut self) -> Vec<Record> {
        let (kept, inbox) = (Arc::clone(&self.background.kept), Arc::clone(&self.inbox));
        let mut ends = if kept.is_empty() {
            Vec::new()
        } else {
            Box::pin(close_kept(kept, inbox)).await
        };
        let orphans = self
            .writer
            .threads()
            .background_orphans(&self.setup.who.thread);
        let thread = &self.setup.who.thread;
        ends.extend(
            orphans
                .into_iter()
                .filter_map(|orphan| Some(child_end_record(opener(&orphan.0, thread)?.0, orphan))),
        );
        ends
    }

    /// While the run waits for the outside, waits for the children of the run and for other processes.
    ///
    /// Returns nothing as soon as no child of the run is running.
    pub(crate) async fn rest(&mut self) -> Vec<Record> {
        let kept = Arc::clone(&self.background.kept);
        // Without any, new input belongs to the drive that continues with the answers.
        if kept.is_at_rest() {
            return Vec::new();
        }
        let mut rests = Box::pin(kept.rests());
        poll_fn(|cx| {
            let mut heard = Vec::new();
            let _ = self.hear_all(cx, &mut heard) || self.hear_posts(cx, &mut heard);
            if !heard.is_empty() {
                return Poll::Ready(heard);
            }
            if kept.is_at_rest() {
                return Poll::Ready(Vec::new());
            }
            while rests.as_mut().poll(cx).is_ready() {
                rests = Box::pin(kept.rests());
                if kept.is_at_rest() {
                    return Poll::Ready(Vec::new());
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Reads the results of the open turn from an earlier drive: its calls may use them.
    #[cold]
    pub(crate) fn look_back(&mut self, run: &Run) {
        let calls = run.reply().into_iter().flat_map(|reply| reply.calls());
        let results = calls.filter_map(|call| run.calls().call(call.id)?.result.cloned());
        let results: Arc<[_]> = results.collect();
        if !results.is_empty() {
            // A drive looks back once, as it begins.
            let _ = self.feed.so_far.set(Box::new((run.turn(), results)));
        }
    }

    /// Reserves the places of agents that were running when the log was left.
    #[cold]
    pub(crate) fn begin_budget(&mut self, run: &Run) {
        self.enter(run);
    }

    /// The middleware that continues the run's kept agents has started.
    #[cold]
    pub(crate) fn release_kept_places(&self) {
        self.give_up_places(&KEPT);
    }

    /// Returns the start of a drive, for middleware that continues earlier agents.
    #[cold]
    pub(crate) fn drive_start(
        &mut self,
        run: &Run,
        (resumes, is_reopened): (bool, bool),
    ) -> DriveStart {
        self.place = TurnPosition {
            run: run.run(),
            turn: run.turn(),
        };
        let call = CallId {
            turn: run.turn().0,
            attempt: 0,
            block: 0,
        };
        start(self.scope(run, call, Replay::Once), (resumes, is_reopened))
    }

    /// The scope of a call that is about to run.
    pub(super) fn scope(&self, run: &Run, call: CallId, replay: Replay) -> Arc<CallScope> {
        CallScope::new(CallParts {
            run,
            feed: &self.feed,
            kept: &self.background.kept,
            writer: &self.writer,
            inbox: &self.inbox,
            place: self.place,
            call,
            resumable: replay == Replay::Resumable,
            budget: self.budget().cloned(),
            tools: self.tools.clone(),
            admitted: None,
        })
    }
}

/// Ends the children of a run; returns their remaining notes.
async fn close_kept(kept: Arc<RunScopes>, inbox: Arc<Inbox>) -> Vec<Record> {
    let mut notes = Vec::new();
    let mut closing = pin!(kept.close());
    poll_fn(|cx| {
        let closed = closing.as_mut().poll(cx);
        for input in inbox.take(cx) {
            match input {
                // A caller that waits for its note learns that it is too late.
                Input::Kept { record, done: None } => notes.push(*record),
                Input::Kept { .. } | Input::Note { .. } | Input::Cancel(_) | Input::StopCall(_) => {
                }
            }
        }
        closed
    })
    .await;
    notes
}

fn child_end_record(call: CallId, (thread, outcome, tally): (ThreadId, Outcome, Tally)) -> Record {
    let Tally {
        usage,
        cost,
        requests,
        tool_calls,
    } = tally;
    Record::ChildEnded {
        call,
        thread,
        outcome,
        usage,
        cost,
        requests,
        tool_calls,
    }
}
