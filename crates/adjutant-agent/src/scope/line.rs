//! A line from a call to its run, which stays when the call has ended.

use std::{fmt, sync::Arc};

use adjutant_core::{Caps, Error, Lane, Limit, Record, Spend, Tally};
use adjutant_llm::{CallId, Entry, NanoUsd, ThreadId, UserMessage};
use adjutant_tool::{CallContext, Identity, ToolError, ToolErrorKind};
use serde_json::Value;

use super::KEPT;
use crate::{
    budget::Budget,
    event_sink::EventSink,
    hooks::{HookContext, Point, Verdict},
    inbox::{Inbox, Input},
    queue::{Manner, Queued, Queues},
    turn_position::TurnPosition,
};

/// A line from a call to its run, for later reports. Cheap to clone.
///
/// It stays usable when the call has ended. When the run has ended too, messages wait for the next run of the session,
/// and records are dropped.
#[derive(Clone)]
pub struct RunLine {
    feed: Arc<EventSink>,
    inbox: Arc<Inbox>,
    queues: Arc<Queues>,
    /// The call.
    pub call: CallId,
    place: TurnPosition,
    budget: Option<Budget>,
    /// The time by which the run must have ended.
    deadline_ms: Option<u64>,
}

/// A part of a run's budget, lent to other agents. It counts as used until this is dropped, and the part of each
/// agent as long as a call waits for the [`ChildLink`](crate::ChildLink) that names it.
#[derive(Debug)]
#[must_use = "the loan is returned when this is dropped"]
pub struct Loan {
    /// The most that each of them may use.
    pub caps: Caps,
    held: Option<(Budget, Spend)>,
}

/// Creates a line on request; most calls never need one.
pub(super) trait HasLine: Send + Sync {
    fn line(&self) -> RunLine;
}

impl RunLine {
    /// The line of a call.
    ///
    /// # Errors
    /// `Failed` if the context does not belong to a call of a run.
    pub fn from_context(cx: &CallContext) -> Result<Self, ToolError> {
        let scope = cx.get::<dyn HasLine>();
        scope
            .map(|scope| scope.line())
            .ok_or_else(|| ToolError::failed("only a call of a run has a line to one"))
    }

    pub(super) fn new(
        feed: Arc<EventSink>,
        inbox: Arc<Inbox>,
        call: CallId,
        place: TurnPosition,
    ) -> Self {
        let queues = feed.queues();
        Self {
            feed,
            inbox,
            queues,
            call,
            place,
            budget: None,
            deadline_ms: None,
        }
    }

    /// The same line, of a run that is bound by these.
    pub(super) fn with_limits(self, budget: Option<Budget>, deadline_ms: Option<u64>) -> Self {
        Self {
            budget,
            deadline_ms,
            ..self
        }
    }

    /// Returns the remaining budget of the run and the runs above it; the possible usage of other running agents
    /// counts as used.
    ///
    /// `wall_ms` is the time that is left, by budgets or by the run's deadline.
    pub fn remaining(&self) -> Caps {
        let now_ms = self.feed.setup.world.now_ms();
        let until = Caps {
            wall_ms: self.deadline_ms.map(|at| at.saturating_sub(now_ms)),
            ..Caps::default()
        };
        self.budget
            .as_ref()
            .map_or(until, |budget| budget.remaining().within(until))
    }

    /// Lends everything that is left, in equal parts, to a number of agents in their own sessions, one level below
    /// this one.
    ///
    /// # Errors
    /// `Denied` if nothing is left of some limit.
    pub fn lend(&self, shares: u32) -> Result<Loan, ToolError> {
        let left = self.remaining();
        let over = [
            (left.tokens == Some(0), Limit::Tokens),
            (left.cost == Some(NanoUsd(0)), Limit::Money),
            (left.requests == Some(0), Limit::Requests),
            (left.wall_ms == Some(0), Limit::Time),
            (left.depth == Some(0), Limit::Depth),
            (left.agents == Some(0), Limit::Agents),
        ];
        if let Some((_, limit)) = over.iter().find(|(is_over, _)| *is_over) {
            let message = format!("no agent can be opened: the limit of {limit} is reached");
            return Err(ToolError::new(ToolErrorKind::Denied, message));
        }
        let held = self
            .budget
            .as_ref()
            .map(|budget| (budget.clone(), budget.lend(shares)));
        let caps = held
            .as_ref()
            .map_or_else(Caps::default, |(_, (caps, _))| *caps);
        Ok(Loan {
            caps: caps.within(Caps {
                wall_ms: left.wall_ms,
                ..Caps::default()
            }),
            held: held.map(|(budget, (_, held))| (budget, held)),
        })
    }

    /// Counts what the call used in another program: in the log, in the result of the run, and in every budget above.
    pub fn spent(&self, tally: Tally) {
        let Tally {
            usage,
            cost,
            requests,
            tool_calls,
        } = tally;
        let record = Record::Spent {
            call: self.call,
            usage,
            cost,
            requests,
            tool_calls,
        };
        self.inbox.push(Input::Kept {
            record: Box::new(record),
            done: None,
        });
    }

    /// The thread of an agent that the call [keeps](crate::Spawn::keep) under this key.
    pub fn thread_for_key(&self, key: &str) -> ThreadId {
        ThreadId::from(format!("{}/{KEPT}{}/{key}", self.who().thread, self.call))
    }

    /// The agent that called.
    pub(crate) fn who(&self) -> &Identity {
        &self.feed.setup.who
    }

    /// Queues a message for the next request of the agent: see [`AgentQueue::steer`](crate::AgentQueue::steer).
    ///
    /// # Errors
    /// `Prompt` if the message is empty, `Full` if 1,000 messages wait.
    pub fn steer(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.push(Lane::Steering, message.into().into())
    }

    /// Queues a message for when the run would end: see [`AgentQueue::follow_up`](crate::AgentQueue::follow_up).
    ///
    /// # Errors
    /// Like [`steer`](RunLine::steer).
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.push(Lane::FollowUp, message.into().into())
    }

    /// Records something of the application in the agent's thread, which observers see as an event.
    ///
    /// The kind of a record names its author: `board.claimed`, for example.
    pub fn app(&self, kind: impl Into<Arc<str>>, version: u32, data: Value) {
        let record = Record::App {
            kind: kind.into(),
            version,
            data,
        };
        self.inbox.push(Input::Kept {
            record: Box::new(record),
            done: None,
        });
    }

    /// Passes a point through the hooks of the agent.
    pub async fn pass<P: Point>(&self, point: P) -> Verdict<P> {
        let setup = &self.feed.setup;
        if !setup.hooks.hears::<P>() {
            return Verdict::Pass(point);
        }
        let cx = HookContext {
            who: Arc::new(setup.who.within(self.call)),
            run: self.place.run,
            turn: self.place.turn,
            at_ms: setup.world.now_ms(),
            cancel: self.feed.stop.clone(),
        };
        let verdict = self.feed.pass(&cx, point).await;
        if let Verdict::Deny(reason) = &verdict {
            let record = Record::Denied {
                point: P::NAME.into(),
                reason: Arc::clone(reason),
                call: Some(self.call),
            };
            self.inbox.push(Input::Kept {
                record: Box::new(record),
                done: None,
            });
        }
        verdict
    }

    /// True if a message of this agent waits to be placed.
    pub fn has_queued(&self) -> bool {
        self.queues.is_filled()
    }

    fn push(&self, lane: Lane, content: Entry) -> Result<Queued, Error> {
        self.queues.push(lane, content, Manner::Waits)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some((budget, held)) = self.held.take() {
            budget.give_back(held);
        }
    }
}

impl fmt::Debug for RunLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLine")
            .field("who", &self.who().path)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
