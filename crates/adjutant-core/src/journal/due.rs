//! The work that logs hold for whoever drives them: which run is open, what it waits for, what is due now.

use std::{sync::Arc, time::Duration};

use adjutant_llm::ThreadId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, Log, LogId, LogInfo, Owner, Stamped};
use crate::{number::PostNo, pause::Pause, record::Record};

/// The number of owners in a row that an open run may lose before whoever takes it sets it aside: each of them died while it drove
/// it, and brought it no further ([`Log::progressed`]).
pub const MAX_LOST_OWNERS: u16 = 5;

/// The number of owners in a row that an open run may lose before it is a suspect, up to [`MAX_LOST_OWNERS`]: it rests before it is
/// given again, and alone, so that of all that a dying owner held, few are blamed again, and bad luck ends before they are.
pub const SUSPECT_AFTER: u16 = 2;

/// The rest of a log that has just become a suspect; twice as long for each owner that it loses from then on. Up to as much again
/// comes with its id, so that those which lost their owner together do not come back together. Where an ownership is a lease, the
/// end of that is part of the rest.
pub const SUSPECT_RESTS: Duration = Duration::from_secs(1);

/// The time for which an owner that was given a suspect is given no other one, unless that one gets further before.
pub const SUSPECT_BARS: Duration = Duration::from_secs(10);

/// The most letters of what a parked run waits for.
const MAX_PARKED_ON: usize = 200;

/// The work that a log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// None: no run is open.
    #[default]
    Idle,
    /// A run is open, and can go on: somebody drives it if the log is owned, otherwise it is due.
    Open,
    /// A run is open and waits for answers.
    Parked {
        /// What it waits for, in words; one line.
        on: Arc<str>,
        /// The time when it goes on without an answer, in milliseconds since 1970-01-01 UTC; never if `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// A run is open that nobody drives any more until somebody says so: [`DueWork::retry`].
    Aside {
        /// Why, in words; one line.
        why: Arc<str>,
    },
}

impl Work {
    /// A run that waits for answers to these.
    pub(crate) fn parked<'a>(
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

/// A due log in the hands of the owner that asked for it.
#[derive(Debug)]
pub struct DueLog {
    /// The known facts about it.
    pub info: LogInfo,
    /// The newest post to it.
    pub newest_post: PostNo,
    /// The owners in a row that died while its run was open and brought it no further; at [`MAX_LOST_OWNERS`], set it aside.
    pub lost: u16,
    /// The log. Whoever opens its session under the same owner may keep this until then.
    pub log: Box<dyn Log>,
}

/// The work of a journal in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backlog {
    /// The logs that are due and that nobody owns; those that rest are among them.
    pub due: u64,
    /// The logs with an open run, or posts that wait, that somebody owns.
    pub at_work: u64,
    /// The logs whose run waits for answers.
    pub parked: u64,
    /// The logs that were set aside.
    pub aside: u64,
    /// The time since the last change of the log that is due for longest.
    pub oldest: Option<Duration>,
}

/// A journal that knows which of its logs are due: a run is open and nobody drives it, posts wait, or a time has come that a
/// parked run waits for.
#[async_trait]
pub trait DueWork: Journal {
    /// Takes due logs for this owner, at most so many, those that are due for longest first.
    ///
    /// Each is given once: many may ask at a time. One whose owner died, and that has lost [`SUSPECT_AFTER`] owners by then, is
    /// given once it has rested ([`SUSPECT_RESTS`]), alone, and not for [`SUSPECT_BARS`] after this owner was given such a one that
    /// got no further. One that lost [`MAX_LOST_OWNERS`] is given as if it had lost none.
    ///
    /// Cancel: what was taken is free again when its ownership ends.
    ///
    /// # Errors
    /// `Io`.
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError>;

    /// Waits until a log may have become due by what others do; it may also return for nothing. Times that come are not
    /// told, the ends of rests among them, nor is every death: ask for due logs once a second all the same.
    async fn until_due(&self);

    /// The posts up to this one do not make a log due any more, though they wait: nobody could heed them yet.
    ///
    /// # Errors
    /// `Missing`, `Io`.
    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError>;

    /// Sets a log aside; the reason is shown to people.
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
