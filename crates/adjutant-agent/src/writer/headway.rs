//! Detects whether a run has made progress since its owner acquired it.

use std::sync::Arc;

use adjutant_core::{Record, Stamped};
use adjutant_llm::ThreadId;

/// Detects whether a run has made progress since its log was acquired: a reply arrived and its turn is over,
/// including its calls.
///
/// Earlier writes of a resumed run do not count. Otherwise a session whose call kills each of its workers would never
/// be quarantined: its call is recorded as lost, the next turn is opened, and its reply repeats the call.
#[derive(Default)]
pub(super) struct Headway {
    /// The threads that have replied since.
    replied: Vec<ThreadId>,
    is_made: bool,
}

impl Headway {
    /// True with the records of the progress, and only once.
    pub(super) fn comes_with(&mut self, records: &[Arc<Stamped>]) -> bool {
        if self.is_made {
            return false;
        }
        for Stamped { thread, record, .. } in records.iter().map(|it| &**it) {
            match record {
                Record::Replied { .. } if !self.replied.contains(thread) => {
                    self.replied.push(thread.clone())
                }
                Record::Opened { .. } | Record::Ended { .. } if self.replied.contains(thread) => {
                    *self = Self {
                        replied: Vec::new(),
                        is_made: true,
                    };
                    return true;
                }
                _ => {}
            }
        }
        false
    }
}
