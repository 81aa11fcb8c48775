//! The state of a team during a run of its lead: one roster for each active session.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use adjutant_agent::{
    DriveContext, DriveStart, Failure, LogId, Middleware, NextDrive, Outcome, RunResult,
};
use adjutant_llm::ThreadId;
use adjutant_tool::{CallContext, ToolError};
use async_trait::async_trait;

use super::{TeamPlan, roster::Roster};

/// The largest number of rosters that are kept for later drives; the oldest goes first, and is found in the log again.
const MAX_KNOWN: usize = 256;

tokio::task_local! {
    /// The surroundings of the drive that is performed here.
    static AROUND: Arc<Around>;
}

/// The rosters of a team that are open, by the thread of the lead.
#[derive(Default)]
pub(super) struct OpenRosters {
    state: Mutex<State>,
}

type RosterKey = (LogId, ThreadId);

#[derive(Default)]
struct State {
    rosters: BTreeMap<RosterKey, Arc<Roster>>,
    /// Of runs that wait for the outside or have ended, oldest first.
    known: Vec<(RosterKey, Arc<Roster>)>,
}

/// A team around a drive, and those around that one.
struct Around {
    open: Weak<OpenRosters>,
    /// `None` for an agent under a lead, which is not a lead itself.
    roster: Option<Arc<Roster>>,
    outer: Option<Arc<Around>>,
}

/// Surrounds the drives of a lead.
pub(super) struct Surround {
    pub(super) plan: Arc<TeamPlan>,
    pub(super) open: Arc<OpenRosters>,
}

/// A roster in its place, which is left when the drive ends, whichever way.
struct Seated<'a> {
    open: &'a OpenRosters,
    key: RosterKey,
    roster: Arc<Roster>,
    parks: bool,
}

impl OpenRosters {
    /// The roster of the drive that is performed here.
    pub(super) fn here(self: &Arc<Self>) -> Option<Arc<Roster>> {
        self.around().and_then(|around| around.roster.clone())
    }

    /// True if the current drive belongs to an agent under a lead of this team.
    pub(super) fn is_nested(self: &Arc<Self>) -> bool {
        self.around().is_some_and(|around| around.roster.is_none())
    }

    fn around(self: &Arc<Self>) -> Option<Arc<Around>> {
        let mut around = AROUND.try_with(Arc::clone).ok();
        while let Some(it) = around.take_if(|it| !std::ptr::eq(it.open.as_ptr(), Arc::as_ptr(self)))
        {
            around = it.outer.clone();
        }
        around
    }

    /// The roster of the lead that makes a call.
    pub(super) fn roster_for(&self, cx: &CallContext) -> Result<Arc<Roster>, ToolError> {
        let log = cx.get::<LogId>();
        let key = log.map(|log| (LogId::clone(&log), cx.who.thread.clone()));
        let roster = key.and_then(|key| self.state().rosters.get(&key).cloned());
        roster.ok_or_else(|| {
            ToolError::failed("only the lead of a team, within its run, may do this")
        })
    }

    /// Becomes the lead; `None` for an agent under a lead. Also returns the remainders of an earlier run.
    fn enter(
        &self,
        plan: &Arc<TeamPlan>,
        key: &RosterKey,
        (resumes, is_reopened): (bool, bool),
    ) -> (Option<Arc<Roster>>, Option<Arc<Roster>>) {
        let mut state = self.state();
        if state
            .rosters
            .keys()
            .any(|(log, thread)| *log == key.0 && is_under(&key.1, thread))
        {
            return (None, None);
        }
        let known = state
            .known
            .iter()
            .position(|(known, _)| known == key)
            .map(|at| state.known.remove(at).1);
        let (known, left) = if resumes {
            (known, None)
        } else {
            (known.as_ref().map(|it| it.after()), known)
        };
        // Another program may have changed it: the log knows better.
        let known = known.filter(|_| !is_reopened);
        let roster = known.unwrap_or_else(|| Roster::new(plan, key.1.clone()));
        state.rosters.insert(key.clone(), Arc::clone(&roster));
        (Some(roster), left)
    }

    fn leave(&self, key: &RosterKey, roster: &Arc<Roster>, parks: bool) -> Vec<Arc<Roster>> {
        let mut state = self.state();
        state.rosters.remove(key);
        state.known.push((key.clone(), Arc::clone(roster)));
        let many = state.known.len().saturating_sub(MAX_KNOWN);
        let gone = state.known.drain(..many).map(|(_, roster)| roster);
        gone.chain((!parks).then(|| Arc::clone(roster))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Middleware for Surround {
    fn name(&self) -> &str {
        "team"
    }

    async fn on_start(&self, cx: &DriveStart) {
        if let Some(roster) = self
            .open
            .here()
            .filter(|roster| roster.lead == cx.who.thread)
        {
            roster.find(cx).await;
        }
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let key = (cx.log.clone(), cx.who.thread.clone());
        let (roster, left) =
            self.open
                .enter(&self.plan, &key, (cx.prompts.is_empty(), cx.is_reopened));
        left.iter().for_each(|roster| roster.end());
        let outer = AROUND.try_with(Arc::clone).ok();
        let around = Arc::new(Around {
            open: Arc::downgrade(&self.open),
            roster: roster.clone(),
            outer,
        });
        let mut seated = roster.map(|roster| Seated {
            open: &self.open,
            key,
            roster,
            parks: false,
        });
        if let Some(seated) = &seated {
            seated.roster.begin();
        }
        let result = AROUND.scope(around, next.run(cx)).await;
        if let Some(seated) = &mut seated {
            seated.parks =
                matches!(&result, Ok(result) if matches!(result.outcome, Outcome::Paused { .. }));
        }
        result
    }
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.open
            .leave(&self.key, &self.roster, self.parks)
            .iter()
            .for_each(|roster| roster.end());
    }
}

fn is_under(thread: &ThreadId, above: &ThreadId) -> bool {
    thread
        .as_str()
        .strip_prefix(above.as_str())
        .is_some_and(|rest| rest.starts_with('/'))
}
