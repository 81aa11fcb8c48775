//! The roster of one run: the members, unread messages and waiters. One lock, never held while waiting.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use adjutant_agent::{Caps, Child, Limit, Queued, RunLine, Spend};
use adjutant_llm::{CallId, Reply, ThreadId};
use tokio::sync::watch;

use super::{Address, LEAD, MemberReport, MemberStatus, MessageKind, TeamPlan, TeamReport, texts};

/// The roster of one run of a lead.
pub(super) struct Roster {
    me: Weak<Roster>,
    pub(super) plan: Arc<TeamPlan>,
    /// The room of its messages, permanently unique.
    room: OnceLock<Arc<str>>,
    /// The conversation of the lead.
    pub(super) lead: ThreadId,
    state: Mutex<State>,
    /// Changes with every event that can end a wait.
    changed: watch::Sender<u64>,
}

/// The state of a team.
#[derive(Default)]
pub(super) struct State {
    pub(super) members: BTreeMap<Arc<str>, Member>,
    /// The number of members that joined.
    pub(super) joined: u64,
    /// The number of times that a member began to work.
    pub(super) begun: u64,
    /// The number of messages that were sent.
    pub(super) sent: u64,
    /// The messages that each agent has not read, oldest first.
    pub(super) unread: BTreeMap<Arc<str>, VecDeque<MessageHeader>>,
    pub(super) waits: BTreeMap<u64, Waiter>,
    pub(super) waited: u64,
    /// The amounts that members spent on tasks, by the number of the task.
    pub(super) spent: BTreeMap<u64, Spend>,
    pub(super) requests: u64,
    pub(super) rule: Rule,
    pub(super) line: Option<RunLine>,
    /// Joining, working and writing are no longer possible.
    pub(super) closed: bool,
    /// True if the state in the log is known.
    pub(super) known: bool,
}

/// A member.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) id: Arc<str>,
    pub(super) task: Arc<str>,
    pub(super) status: MemberStatus,
    pub(super) since_ms: u64,
    pub(super) result: Arc<str>,
    /// None until it is opened.
    pub(super) child: Option<Arc<Child>>,
    /// The number of its current or last work.
    pub(super) work: u64,
    /// True if the lead requested it to stop.
    pub(super) stopping: bool,
    /// True if it has ended, and the lead is about to be notified.
    pub(super) ending: bool,
    /// The recipe to open it again; `None` if that is no longer possible.
    pub(super) recipe: Option<super::recipe::Recipe>,
    /// The thread of its conversation, once it was opened.
    pub(super) thread: Option<ThreadId>,
    /// The number of tasks that its conversation was given.
    pub(super) works: usize,
    /// The call of its newest task.
    pub(super) call: Option<CallId>,
    /// True if it did nothing in this run.
    pub(super) earlier: bool,
}

/// The header of an unread message.
#[derive(Debug, Clone)]
pub(super) struct MessageHeader {
    pub(super) number: u64,
    pub(super) from: Arc<str>,
    pub(super) kind: MessageKind,
}

/// A waiting agent.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) who: Arc<str>,
    pub(super) what: Wants,
    /// True if it was found that nothing will come.
    pub(super) in_vain: bool,
}

/// The event that an agent waits for.
#[derive(Debug, Clone)]
pub(super) enum Wants {
    /// A message, of this sender or of any.
    Message(Option<Arc<str>>),
    /// Running work.
    Work,
}

/// The memory of the rule of the end.
#[derive(Default)]
pub(super) struct Rule {
    /// The states that the lead was notified of.
    pub(super) told: BTreeSet<String>,
    /// True if the lead was reminded in the turn before.
    pub(super) reminded: bool,
    pub(super) reminder: Option<Queued>,
    /// The lead's answer at the time of the reminder; the flag is true if it has called a tool since.
    pub(super) answer: Option<(Arc<Reply>, bool)>,
    pub(super) reported: bool,
}

impl Roster {
    pub(super) fn new(plan: &Arc<TeamPlan>, lead: ThreadId) -> Arc<Self> {
        Self::with(plan, lead, State::default())
    }

    /// The roster of the run after a known one: its members can get a new task.
    pub(super) fn after(&self) -> Arc<Self> {
        let before = self.state();
        let mut members = before.members.clone();
        for member in members.values_mut() {
            if member.is_at_work() {
                member.status = MemberStatus::Left;
            }
            (member.child, member.earlier, member.ending, member.stopping) =
                (None, true, false, false);
        }
        let (joined, begun) = (before.joined, before.begun);
        let state = State {
            members,
            joined,
            begun,
            known: before.known,
            ..State::default()
        };
        Self::with(&self.plan, self.lead.clone(), state)
    }

    fn with(plan: &Arc<TeamPlan>, lead: ThreadId, state: State) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            plan: Arc::clone(plan),
            room: OnceLock::new(),
            lead,
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        })
    }

    /// The room of its messages: the run's, if an earlier program assigned one.
    pub(super) fn room(&self) -> &Arc<str> {
        self.room
            .get_or_init(|| format!("{:032x}", self.plan.world.id()).into())
    }

    /// Sets the room from an earlier program.
    pub(super) fn in_room(&self, room: Arc<str>) {
        // The room is not used before the team is known.
        let _ = self.room.set(room);
    }

    /// A drive of the run begins.
    pub(super) fn begin(&self) {
        self.state().closed = false;
    }

    /// The run has ended: waiters are notified, and the remainders are reported.
    pub(super) fn end(&self) {
        let report = {
            let mut state = self.state();
            if std::mem::replace(&mut state.closed, true) {
                return;
            }
            state.line = None;
            if let Some(reminder) = state.rule.reminder.take() {
                let _ = reminder.withdraw();
            }
            self.report_of(&state, |member| !member.earlier)
        };
        self.bump();
        self.plan.mailbox.close(self.room());
        if let Some(told) = self
            .plan
            .reports
            .as_ref()
            .filter(|_| !report.members.is_empty())
        {
            // The run has ended: it can no longer fail.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| told(&report)));
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn me(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.plan.world.now_ms()
    }

    /// Wakes all who wait, so that they look again.
    pub(super) fn bump(&self) {
        self.changed
            .send_modify(|version| *version = version.wrapping_add(1));
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the address of an agent's messages. A name that is used again has a separate address.
    pub(super) fn address_of(&self, state: &State, name: &str) -> Address {
        let id = state.members.get(name).map_or(name, |member| &member.id);
        self.address(id)
    }

    pub(super) fn address(&self, id: &str) -> Address {
        Address::new(Arc::clone(self.room()), id)
    }

    pub(super) fn line(&self) -> Option<RunLine> {
        self.state().line.clone()
    }

    /// Returns the report on all agents, including members of earlier runs.
    pub(super) fn report(&self) -> TeamReport {
        self.report_of(&self.state(), |_| true)
    }

    /// Returns the report on the agents that were active in this run.
    pub(super) fn report_of_run(&self) -> TeamReport {
        self.report_of(&self.state(), |member| !member.earlier)
    }

    pub(super) fn report_of(&self, state: &State, is_in: impl Fn(&Member) -> bool) -> TeamReport {
        let member = |(name, member): (&Arc<str>, &Member)| MemberReport {
            id: Arc::clone(&member.id),
            name: Arc::clone(name),
            status: member.status,
            task: texts::clip(&member.task, texts::MAX_TASK_SHOWN),
            since_ms: member.since_ms,
            waiting: state.waits.values().any(|wait| wait.who == *name),
            result: texts::clip(&member.result, texts::MAX_RESULT_SHOWN),
            unread: state.unread_ids(name),
        };
        let members = state
            .members
            .iter()
            .filter(|(_, member)| is_in(member))
            .map(member)
            .collect();
        TeamReport {
            team: Arc::clone(&self.plan.name),
            members,
            unread: state.unread_ids(LEAD),
        }
    }
}

impl State {
    pub(super) fn is_active(&self, name: &str) -> bool {
        self.members
            .get(name)
            .is_some_and(|member| member.is_at_work() && !member.ending)
    }

    /// Returns the members that work.
    pub(super) fn active(&self) -> impl Iterator<Item = (&Arc<str>, &Member)> {
        self.members
            .iter()
            .filter(|(_, member)| member.is_at_work() && !member.ending)
    }

    pub(super) fn unread_of(&self, name: &str) -> impl DoubleEndedIterator<Item = &MessageHeader> {
        self.unread.get(name).into_iter().flatten()
    }

    fn unread_ids(&self, name: &str) -> Vec<Arc<str>> {
        self.unread_of(name)
            .map(|header| texts::message_id(header.number))
            .collect()
    }

    /// True if there is a message for a waiter.
    pub(super) fn is_served(&self, wait: &Waiter) -> bool {
        match &wait.what {
            Wants::Message(from) => self
                .unread_of(&wait.who)
                .any(|header| from.as_ref().is_none_or(|from| *from == header.from)),
            Wants::Work => self
                .unread_of(&wait.who)
                .any(|header| header.kind == MessageKind::Said),
        }
    }

    /// If all agents wait and nothing can arrive, the waiters are notified.
    pub(super) fn look_for_standstill(&mut self) {
        let waits = |who: &str| self.waits.values().any(|wait| &*wait.who == who);
        let all = waits(LEAD) && self.active().all(|(name, _)| waits(name));
        let served = self.waits.values().any(|wait| self.is_served(wait));
        // A wait for work ends automatically when the work has no worker.
        let for_work = self
            .waits
            .values()
            .all(|wait| matches!(wait.what, Wants::Work));
        // The end of a member is a message to come.
        let ending = self.members.values().any(|member| member.ending);
        if all && !served && !for_work && !ending {
            self.waits.values_mut().for_each(|wait| wait.in_vain = true);
        }
    }

    /// The limit of all members together that leaves no further request.
    pub(super) fn find_exhausted(&self, caps: &Caps) -> Option<Limit> {
        let spent = self
            .spent
            .values()
            .fold(Spend::default(), |sum, spent| sum + *spent);
        if caps.requests.is_some_and(|cap| self.requests >= cap) {
            return Some(Limit::Requests);
        }
        if caps.tokens.is_some_and(|cap| spent.tokens >= cap) {
            return Some(Limit::Tokens);
        }
        caps.cost
            .filter(|cap| spent.cost >= *cap)
            .map(|_| Limit::Money)
    }
}
