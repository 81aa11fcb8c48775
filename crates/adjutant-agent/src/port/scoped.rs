//! The scope of a call, made of what the port has at hand.

use std::sync::Arc;

use adjutant_llm::{CallId, ThreadId};
use adjutant_tool::Replay;

use super::LocalPort;
use crate::{
    Outcome, Record, Run,
    scope::{CallParts, CallScope, Standstill, Tally},
};

impl LocalPort {
    /// Puts the ends of children that nobody told before the results of their calls: what they used is not lost.
    pub(super) fn with_orphans(&self, records: Vec<Record>) -> Vec<Record> {
        if !records.iter().any(|record| matches!(record, Record::Returned { .. })) {
            return records;
        }
        let (threads, thread) = (self.writer.threads(), &self.setup.who.thread);
        if threads.is_empty() {
            return records;
        }
        let mut all = Vec::with_capacity(records.len());
        for record in records {
            if let Record::Returned { call, .. } = &record {
                all.extend(threads.orphans(thread, *call).into_iter().map(|orphan| ended(*call, orphan)));
            }
            all.push(record);
        }
        all
    }

    /// The scope of a call that is about to run.
    pub(super) fn scope(
        &self,
        run: &Run,
        call: CallId,
        replay: Replay,
        standstill: &Arc<Standstill>,
    ) -> Arc<CallScope> {
        CallScope::new(CallParts {
            run,
            feed: &self.feed,
            writer: &self.writer,
            inbox: &self.inbox,
            place: self.place,
            call,
            resumable: replay == Replay::Resumable,
            budget: self.budget().cloned(),
            tools: self.tools.clone(),
            standstill,
            admitted: None,
        })
    }
}

fn ended(call: CallId, (thread, outcome, tally): (ThreadId, Outcome, Tally)) -> Record {
    let Tally { usage, cost, requests, tool_calls } = tally;
    Record::ChildEnded { call, thread, outcome, usage, cost, requests, tool_calls }
}
