//! The report on a team: its members, and unread messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The report on a team in one run of its lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamReport {
    /// The team.
    pub team: Arc<str>,
    /// Its members, by name.
    pub members: Vec<MemberReport>,
    /// The ids of messages that the lead has not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Arc<str>>,
}

/// The report on a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberReport {
    /// `teammate-<n>`, in the order in which they joined.
    pub id: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The status of the member.
    pub status: MemberStatus,
    /// The task that it was last given; the beginning, if that is long.
    pub task: Arc<str>,
    /// The time of its last status change, in milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
    /// True if it waits for a message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting: bool,
    /// The result, or the reason why there is none, truncated if it is long.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub result: Arc<str>,
    /// The ids of messages that it has not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Arc<str>>,
}

/// The status of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemberStatus {
    /// It works.
    Active,
    /// It is done, and can be given a new task.
    Completed,
    /// It failed, and can be given a new task.
    Failed,
    /// It was stopped, and can be given a new task.
    Stopped,
    /// It took too long, and can be given a new task.
    TimedOut,
    /// It was ended because the run of the lead ended.
    Left,
}

impl MemberStatus {
    /// The status in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Active => "at work",
            Self::Completed => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed out",
            Self::Left => "ended with the run",
        }
    }
}
