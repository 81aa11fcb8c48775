//! A cached summary of each session: its state and usage. If a log has grown, only the new part is read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{LogId, LogInfo, Outcome, Record, Seq, Sessions, Stamped, Work};
use adjutant_llm::{NanoUsd, ThreadId, Usage};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::{SessionInfo, SessionTable, told};
use crate::Error;

/// The maximum number of records that are read for a page of sessions: the usage of a longer log becomes known after
/// several pages.
pub(super) const MAX_READ: u64 = 20_000;
/// The maximum number of cached sessions.
const MAX_KEPT: usize = 10_000;

/// The state of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionState {
    /// It has no messages yet.
    #[default]
    New,
    /// A run is active.
    Working,
    /// A run waits for an answer.
    Waiting,
    /// A run is unfinished, and no process runs it.
    Open,
    /// Its latest run has ended.
    Done,
    /// Its latest run failed, in the part of its log that was read.
    Failed,
    /// A run is unfinished and quarantined, until a retry is requested.
    Aside,
}

/// The cache of summaries.
#[derive(Debug, Default)]
pub(crate) struct Glances {
    kept: Mutex<BTreeMap<LogId, Glance>>,
    /// The active sessions of this process, if they run in it.
    table: Option<Arc<SessionTable>>,
}

/// The data from the first records of a log.
#[derive(Debug, Clone, Default)]
struct Glance {
    created_ms: u64,
    at: Seq,
    first: Option<ThreadId>,
    usage: Usage,
    cost: Option<NanoUsd>,
    has_failed: bool,
    /// True if a run of the first agent is unfinished: journals do not report that for a copy.
    is_open: bool,
}

impl Glances {
    /// Creates the cache for the sessions of this table.
    pub(crate) fn with_table(table: &Arc<SessionTable>) -> Self {
        Self {
            table: Some(Arc::clone(table)),
            ..Self::default()
        }
    }

    /// Summarizes a session; reads at most `most` records, and subtracts their number.
    pub(super) async fn at(
        &self,
        sessions: &Sessions,
        info: LogInfo,
        most: &mut u64,
    ) -> Result<SessionInfo, Error> {
        let known = self.kept(|kept| kept.get(&info.log).cloned());
        let mut glance = known
            .filter(|it| it.created_ms == info.created_ms && it.at <= info.head)
            .unwrap_or_default();
        glance.created_ms = info.created_ms;
        let until = Seq(info.head.0.min(glance.at.0.saturating_add(*most)));
        if glance.at < until {
            *most -= until.0 - glance.at.0;
            let mut records = sessions.journal().read(&info.log, glance.at);
            while glance.at < until
                && let Some(stamped) = records.next().await
            {
                glance.take(&*stamped.map_err(told::journal_error)?);
            }
            let now = glance.clone();
            self.kept(|kept| {
                if kept.len() >= MAX_KEPT {
                    kept.pop_first();
                }
                kept.insert(info.log.clone(), now);
            });
        }
        let is_known = glance.at >= info.head;
        let state = match &self.table {
            // An approval for an interrupted run holds its log, and runs nothing.
            Some(table) if table.is_left(&info.log.0) => SessionState::Waiting,
            _ => state(sessions, &info, &glance).await?,
        };
        Ok(SessionInfo {
            state,
            usage: is_known.then_some(glance.usage),
            cost: glance.cost.filter(|_| is_known),
            ..SessionInfo::from_log(info)
        })
    }

    fn kept<T>(&self, with: impl FnOnce(&mut BTreeMap<LogId, Glance>) -> T) -> T {
        with(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Glance {
    fn take(&mut self, stamped: &Stamped) {
        self.at = stamped.seq;
        let is_first = *self.first.get_or_insert_with(|| stamped.thread.clone()) == stamped.thread;
        // The usage of subagents is in their own records.
        let (usage, cost) = match &stamped.record {
            Record::Replied {
                reply,
                original,
                cost,
                ..
            } => (original.as_ref().unwrap_or(reply).usage, *cost),
            Record::Retracted { usage, cost, .. }
            | Record::Spent { usage, cost, .. }
            | Record::Billed { usage, cost, .. } => (*usage, *cost),
            Record::Prepared { spent, cost, .. } => (*spent, *cost),
            Record::Ended { outcome, .. } | Record::Overruled { outcome, .. } if is_first => {
                (self.is_open, self.has_failed) =
                    (false, matches!(outcome, Outcome::Failed { .. }));
                return;
            }
            Record::Began { .. } if is_first => {
                self.is_open = true;
                return;
            }
            _ => return,
        };
        self.usage += usage;
        self.cost = NanoUsd::sum_known(self.cost, cost);
    }
}

async fn state(
    sessions: &Sessions,
    info: &LogInfo,
    glance: &Glance,
) -> Result<SessionState, Error> {
    let ended = if glance.has_failed {
        SessionState::Failed
    } else {
        SessionState::Done
    };
    let at_work = if info.is_owned {
        SessionState::Working
    } else {
        SessionState::Open
    };
    Ok(match &info.work {
        _ if info.head == Seq(0) => SessionState::New,
        Some(Work::Idle) if glance.is_open && glance.at == info.head => SessionState::Open,
        Some(Work::Idle) => ended,
        Some(Work::Open) => at_work,
        Some(Work::Parked { .. }) => SessionState::Waiting,
        Some(Work::Aside { .. }) => SessionState::Aside,
        // The journal has no information about it, or it is newer.
        _ => match sessions.open_run(info).await.map_err(told::journal_error)? {
            None => ended,
            Some(open) if open.pauses.is_empty() => at_work,
            Some(_) => SessionState::Waiting,
        },
    })
}

/// True if a process runs the session and can still write to its log.
pub(super) fn is_driven(info: &LogInfo) -> bool {
    match &info.work {
        Some(work) => *work == Work::Open,
        None => info.is_owned,
    }
}

impl SessionInfo {
    /// Converts the information about a session without its log.
    pub(super) fn from_log(info: LogInfo) -> Self {
        Self {
            name: info.log.0,
            changed_ms: info.updated_ms,
            created_ms: info.created_ms,
            records: info.head.0,
            state: SessionState::default(),
            title: info.about.title,
            agent: info.about.agent,
            labels: info.about.labels.into_iter().collect(),
            parent: info.about.parent,
            usage: None,
            cost: None,
        }
    }
}
