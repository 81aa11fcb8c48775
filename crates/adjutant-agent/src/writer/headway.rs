//! Whether a run has got further than its owner found it.

use std::sync::Arc;

use adjutant_core::{Record, Stamped};
use adjutant_llm::ThreadId;

/// Whether a run has got further since its log was taken: a reply came and its turn is over, its calls included.
///
/// What a run that is taken up writes before that does not count, or a session whose call ends each of its workers would never
/// be set aside: its call is recorded as lost, the next turn is opened, and its reply asks for the call again.
#[derive(Default)]
pub(super) struct Headway {
    /// The threads whose replies came since.
    replied: Vec<ThreadId>,
    is_made: bool,
}

impl Headway {
    /// True with the records that bring it, and no more after them.
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
