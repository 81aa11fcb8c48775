//! Running sub-agents: found by name from outside, steered, queried and cancelled.

use std::{fmt, pin::pin, sync::Arc};

use adjutant_core::{CancelBy, Error, EventKind, Journal, Lane, LogId};
use adjutant_llm::{Entry, ThreadId};
use adjutant_tool::Identity;
use futures_util::StreamExt;

use super::AgentQueue;
use crate::{
    inbox::{AtWork, Input},
    listener::{Listeners, Subscription},
    queue::{Manner, Queued},
};

/// The largest number of agents that an error names.
const MAX_NAMED: usize = 20;

/// A sub-agent of a session that was running when it was found.
#[derive(Clone)]
pub struct WorkingAgent {
    /// The agent.
    pub who: Arc<Identity>,
    at_work: AtWork,
    listeners: Arc<Listeners>,
    journal: Arc<dyn Journal>,
    log: LogId,
}

impl AgentQueue<'_> {
    /// Returns the running sub-agents, by thread.
    pub fn agents(self) -> Vec<WorkingAgent> {
        let at_work = self
            .session
            .live()
            .map(|live| live.inbox.at_work())
            .unwrap_or_default();
        at_work
            .into_iter()
            .map(|at_work| self.working(at_work))
            .collect()
    }

    /// Returns the running agent of this name, path or thread.
    ///
    /// # Errors
    /// `Agent` if it does not exist, or several have the name.
    pub fn agent(self, name: &str) -> Result<WorkingAgent, Error> {
        let all = self.agents();
        let is_it = |it: &&WorkingAgent| {
            it.who.thread.as_str() == name || *it.who.path == *name || *it.who.name == *name
        };
        let mut found: Vec<_> = all.iter().filter(is_it).collect();
        if let (Some(one), true) = (found.pop(), found.is_empty()) {
            return Ok(one.clone());
        }
        let names = |all: &mut dyn Iterator<Item = &WorkingAgent>| {
            all.take(MAX_NAMED)
                .map(|it| it.who.thread.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let why = match (all.is_empty(), all.iter().any(|it| is_it(&it))) {
            (true, _) => "no agent is at work".to_owned(),
            (_, true) => format!(
                "several have the name; hint: use a thread: {}",
                names(&mut all.iter().filter(is_it))
            ),
            (_, false) => format!("hint: at work are {}", names(&mut all.iter())),
        };
        Err(Error::Agent(name.into(), why.into()))
    }

    fn working(self, at_work: AtWork) -> WorkingAgent {
        let (listeners, journal) = (
            Arc::clone(self.session.listeners()),
            Arc::clone(self.session.journal()),
        );
        let (who, log) = (Arc::clone(&at_work.who), self.session.id().clone());
        WorkingAgent {
            who,
            at_work,
            listeners,
            journal,
            log,
        }
    }
}

impl WorkingAgent {
    /// Queues a message for its next request: see [`AgentQueue::steer`]. It is dropped if the agent ends before.
    ///
    /// # Errors
    /// Like [`AgentQueue::steer`].
    pub fn steer(&self, message: impl Into<Entry>) -> Result<Queued, Error> {
        self.at_work
            .queues
            .push(Lane::Steering, message.into(), Manner::Waits)
    }

    /// Sends it a question, and waits for the text of the first reply after it: the agent continues its work.
    ///
    /// Cancel: the question stays queued.
    ///
    /// # Errors
    /// Like [`AgentQueue::steer`], and `Agent` if it ends without a reply.
    pub async fn ask(&self, question: impl Into<Entry>) -> Result<String, Error> {
        let first = self
            .who
            .thread
            .as_str()
            .split('/')
            .next()
            .unwrap_or_default();
        let first = Arc::new(Identity::root(ThreadId::from(first), "", ""));
        let (listeners, journal) = (Arc::clone(&self.listeners), Arc::clone(&self.journal));
        let mut events = Subscription::new(listeners, journal, self.log.clone(), first);
        let question = self.steer(question)?;
        let (mut is_placed, mut ended) = (false, pin!(self.at_work.inbox.wait_for_end()));
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = &mut ended => None,
            };
            let Some(event) = event else { break };
            match &event.kind {
                _ if event.who.thread != self.who.thread => {}
                EventKind::MessagePlaced { item } => is_placed |= question.item() == Some(*item),
                EventKind::ReplyFinished { reply, .. }
                    if is_placed && !reply.text().trim().is_empty() =>
                {
                    return Ok(reply.text());
                }
                EventKind::RunFinished { .. } => break,
                _ => {}
            }
        }
        // It will not be answered.
        let _ = question.withdraw();
        Err(Error::Agent(
            Arc::clone(&self.who.name),
            "it has ended without a word".into(),
        ))
    }

    /// Cancels it, with all agents under it.
    pub fn stop(&self) {
        self.at_work.inbox.push(Input::Cancel(CancelBy::User));
    }
}

impl fmt::Debug for WorkingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkingAgent")
            .field("who", &self.who.path)
            .finish_non_exhaustive()
    }
}
