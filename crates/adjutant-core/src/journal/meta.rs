//! The facts that are known about a log without reading it.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{LogId, Work};
use crate::number::Seq;

/// The most bytes that the name of a log may have.
pub const MAX_ID_BYTES: usize = 512;

/// The facts that are known about a log without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogInfo {
    /// Its name.
    pub log: LogId,
    /// The time when it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of the last append.
    pub updated_ms: u64,
    /// Its newest record.
    pub head: Seq,
    /// The number of bytes of its records together, attachments not counted.
    pub bytes: u64,
    /// True if an owner has it now.
    pub is_owned: bool,
    /// The id of that owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// The work that it holds; `None` if the journal does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The time from which it is due, owned or not, in milliseconds since 1970-01-01 UTC, 0 for now: its run is open, posts wait,
    /// or it is parked until then. `None` if it is not, or the journal does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// Its description.
    pub about: SessionMeta,
}

/// A description of a log, apart from its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionMeta {
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The name of the agent that works in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The labels that it can be found by.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<Arc<str>>,
    /// The log that it was forked from, and how much of it is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<(LogId, Seq)>,
}

/// A choice of logs for a list: newest change first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// Only sessions of this agent.
    pub agent: Option<Arc<str>>,
    /// Only those with this label.
    pub label: Option<Arc<str>>,
    /// Only sessions that were forked from this log.
    pub parent: Option<LogId>,
    /// Only sessions that changed at this time or after it, in milliseconds since 1970-01-01 UTC.
    pub since_ms: Option<u64>,
    /// Only sessions that changed before this time.
    pub before_ms: Option<u64>,
    /// The largest number of logs in a page; at least 1.
    pub limit: usize,
    /// The end of the page before.
    pub after: Option<PageMark>,
}

/// The end of a page of a list: the change and the name of its last log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageMark {
    /// The time when its last log changed.
    pub updated_ms: u64,
    /// Its last log.
    pub log: LogId,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogPage {
    /// The logs, the last changed first; logs that changed at the same time are ordered by name.
    pub logs: Vec<LogInfo>,
    /// The start of the next page; `None` if this is the last one.
    pub next: Option<PageMark>,
}

impl LogInfo {
    /// Returns the known facts about a new log.
    pub fn new(log: LogId, created_ms: u64) -> Self {
        Self {
            log,
            created_ms,
            updated_ms: created_ms,
            head: Seq(0),
            bytes: 0,
            is_owned: false,
            owner: None,
            work: None,
            due_ms: None,
            about: SessionMeta::default(),
        }
    }
}

impl LogQuery {
    /// True if a log matches the query, and comes after the previous page.
    pub(crate) fn takes(&self, info: &LogInfo) -> bool {
        let is_of = |wanted: &Option<Arc<str>>, agent: &Option<Arc<str>>| {
            wanted.is_none() || wanted == agent
        };
        let parent = info.about.parent.as_ref().map(|(parent, _)| parent);
        is_of(&self.agent, &info.about.agent)
            && self
                .label
                .as_ref()
                .is_none_or(|label| info.about.labels.contains(label))
            && self
                .parent
                .as_ref()
                .is_none_or(|wanted| parent == Some(wanted))
            && self.since_ms.is_none_or(|since| info.updated_ms >= since)
            && self.before_ms.is_none_or(|before| info.updated_ms < before)
            && self.after.as_ref().is_none_or(|mark| {
                info.updated_ms < mark.updated_ms
                    || (info.updated_ms == mark.updated_ms && info.log > mark.log)
            })
    }

    /// The page of these logs, which may be all there are, in any order.
    pub fn page(&self, logs: impl IntoIterator<Item = LogInfo>) -> LogPage {
        let mut logs: Vec<LogInfo> = logs.into_iter().filter(|info| self.takes(info)).collect();
        logs.sort_by(|one, other| (other.updated_ms, &one.log).cmp(&(one.updated_ms, &other.log)));
        let limit = self.limit.max(1);
        let is_more = logs.len() > limit;
        logs.truncate(limit);
        LogPage::new(logs, is_more)
    }
}

impl Default for LogQuery {
    /// All logs, 50 at a time.
    fn default() -> Self {
        Self {
            agent: None,
            label: None,
            parent: None,
            since_ms: None,
            before_ms: None,
            limit: 50,
            after: None,
        }
    }
}

impl LogPage {
    /// Creates a page of logs in their order; `is_more` is true if others follow.
    pub fn new(logs: Vec<LogInfo>, is_more: bool) -> Self {
        let mark = |info: &LogInfo| PageMark {
            updated_ms: info.updated_ms,
            log: info.log.clone(),
        };
        let next = logs.last().filter(|_| is_more).map(mark);
        Self { logs, next }
    }
}
