//! The work that logs hold for workers: the open run, what it waits for, and queued work.

use std::{sync::Arc, time::Duration};

use adjutant_llm::ThreadId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, Log, LogId, LogInfo, Owner, Stamped};
use crate::{number::PostNo, pause::Pause, record::Record};

/// The number of owners in a row that an open run may lose before it is quarantined: each of them died while it drove
/// the run, without progress ([`Log::mark_progress`]).
pub const MAX_LOST_OWNERS: u16 = 5;

/// The number of owners in a row that an open run may lose before it becomes a suspect session, up to
/// [`MAX_LOST_OWNERS`]. A suspect is given out again only after a rest, and one at a time. So few of the sessions of
/// a dying owner are blamed again, and bad luck ends before they are quarantined.
pub const SUSPECT_AFTER: u16 = 2;

/// The rest of a log that has just become a suspect; it doubles with each owner that it loses from then on. A random
/// part of up to the same length depends on its id, so that logs which lost their owner together do not return
/// together. If an ownership is a lease, the end of the lease is part of the rest.
pub const SUSPECT_RESTS: Duration = Duration::from_secs(1);

/// The time for which an owner that was given a suspect is given no other one, unless that one gets further before.
pub const SUSPECT_BARS: Duration = Duration::from_secs(10);

/// The maximum number of characters in the description of a parked run.
const MAX_PARKED_ON: usize = 200;

/// The work that a log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// None: no run is open.
    #[default]
    Idle,
    /// A run is open, and can continue: a worker drives it if the log is owned, otherwise it is queued.
    Open,
    /// A run is open and waits for answers.
    Parked {
        /// A description of what it waits for; one line.
        on: Arc<str>,
        /// The time when it continues without an answer, in milliseconds since 1970-01-01 UTC; never if `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// An open run that is quarantined until it is released: [`DueWork::retry`].
    Aside {
        /// Why, in words; one line.
        why: Arc<str>,
    },
}

impl Work {
    /// A run that waits for answers to these.
    pub(crate) fn from_pauses<'a>(
        on: impl Iterator<Item = &'a Arc<Pause>>,
        until_ms: Option<u64>,
    ) -> Self {
        let words = on
            .map(|pause| first_line(&pause.ask.prompt))
            .collect::<Vec<_>>()
            .join("; ");
        Self::Parked {
            on: words.chars().take(MAX_PARKED_ON).collect::<String>().into(),
            until_ms,
        }
    }
}

/// The first line of a text, without what does not show.
fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|it| !it.is_control())
        .collect()
}

/// A queued log, acquired by the owner that requested it.
#[derive(Debug)]
pub struct DueLog {
    /// The known facts about it.
    pub info: LogInfo,
    /// The newest post to it.
    pub newest_post: PostNo,
    /// The owners in a row that died while its run was open and brought it no further; at [`MAX_LOST_OWNERS`], set it aside.
    pub lost: u16,
    /// The log. Keep it until the session is opened under the same owner.
    pub log: Box<dyn Log>,
}

/// The work of a journal in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backlog {
    /// The queued logs without an owner, including resting ones.
    pub due: u64,
    /// The logs with an open run or pending posts that have an owner.
    pub at_work: u64,
    /// The logs whose run waits for answers.
    pub parked: u64,
    /// The logs that were set aside.
    pub aside: u64,
    /// The time since the last change of the log that is due for longest.
    pub oldest: Option<Duration>,
}

/// A journal that knows its queued logs: an open run without a driver, pending posts, or the wake-up time of a parked
/// run.
#[async_trait]
pub trait DueWork: Journal {
    /// Acquires queued logs for this owner, at most this many, longest queued first.
    ///
    /// Each is given out once, also to concurrent callers. If the owner of a log died and the log has lost
    /// [`SUSPECT_AFTER`] owners, it is given out after a rest ([`SUSPECT_RESTS`]), alone, and not for
    /// [`SUSPECT_BARS`] after this owner received another suspect that made no progress. A log that lost
    /// [`MAX_LOST_OWNERS`] is given out as if it had lost none.
    ///
    /// Cancel: acquired logs are free again when their ownership ends.
    ///
    /// # Errors
    /// `Io`.
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError>;

    /// Waits until a log may have become queued through another process; it may also return without a reason. Wake-up
    /// times, the ends of rests and some deaths are not reported: call `due` once a second anyway.
    async fn until_due(&self);

    /// The posts up to this one no longer make a log queued, though they stay pending: they cannot be consumed yet.
    ///
    /// # Errors
    /// `Missing`, `Io`.
    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError>;

    /// Quarantines a log; the reason is for people.
    ///
    /// # Errors
    /// `Missing`, `Io`.
    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError>;

    /// A log that was set aside is driven again. False if it was not.
    ///
    /// # Errors
    /// `Missing`, `Io`.
    async fn retry(&self, log: &LogId) -> Result<bool, JournalError>;

    /// Returns the work of the journal in numbers.
    ///
    /// # Errors
    /// `Io`.
    async fn backlog(&self) -> Result<Backlog, JournalError>;
}

impl Work {
    /// The work of a log after these records of it, whose first agent has this thread; `None` if they change nothing.
    pub fn after(records: &[Arc<Stamped>], root: &ThreadId) -> Option<Self> {
        let of = |stamped: &&Arc<Stamped>| match stamped.record {
            Record::Began { .. } | Record::Resumed { .. } => Some(Self::Open),
            Record::Ended { .. } => Some(Self::Idle),
            _ => None,
        };
        let of_root = |stamped: &&Arc<Stamped>| of(stamped).filter(|_| stamped.thread == *root);
        records.iter().rev().find_map(|stamped| of_root(&stamped))
    }
}
