//! The crashes that a log survives.

use serde::{Deserialize, Serialize};

use crate::journal::Flush;

/// The crashes that the records of a session survive, and the cost of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// A crash of the machine: what must be durable before something happens is flushed to the disk before.
    #[default]
    Sync,
    /// A crash of the program: records are passed to the storage at the same moments, and the system flushes them
    /// later.
    ///
    /// After a crash of the machine the latest records may be missing, including completed work: a call that must
    /// never run twice may run twice then.
    Async,
    /// An orderly end: records are kept in memory until the drive ends, or 65,536 wait.
    ///
    /// After any crash the drive never happened, according to the log. For work that can be repeated freely.
    OnExit,
}

impl Durability {
    /// Returns the flush to use for records that should be flushed like this; `None` if they wait for the end.
    pub fn flush_for(self, flush: Flush) -> Option<Flush> {
        match self {
            Durability::Sync => Some(flush),
            Durability::Async => Some(Flush::Lazy),
            Durability::OnExit => None,
        }
    }

    /// Returns the flush for the last records of a drive.
    pub fn at_end(self) -> Flush {
        match self {
            Durability::Sync | Durability::OnExit => Flush::Now,
            Durability::Async => Flush::Lazy,
        }
    }
}
