//! Steering and follow-ups: messages for a running run, or for the next one.

use adjutant_core::{Error, Lane, Post, PostNo};
use adjutant_llm::{Entry, UserMessage};

use super::Agent;
use crate::{
    queue::{Manner, QueueItem, Queued},
    running::Running,
    session::Session,
};

/// The queue of a session: messages besides its prompts, at any time and from any thread.
#[derive(Debug, Clone, Copy)]
pub struct AgentQueue<'a> {
    pub(super) session: &'a Session,
}

impl Agent {
    /// Returns the queue for messages besides prompts: steering, follow-ups, posts.
    pub fn queue(&self) -> AgentQueue<'_> {
        AgentQueue {
            session: &self.session,
        }
    }
}

impl Running {
    /// Returns the queue for messages to the run besides its prompt: see [`Agent::queue`].
    pub fn queue(&self) -> AgentQueue<'_> {
        AgentQueue {
            session: self.session(),
        }
    }
}

impl AgentQueue<'_> {
    /// Queues a message or a custom entry for the next request: after the results of the running calls, before the
    /// run would end.
    ///
    /// Without an active run it waits for the next one, after whose prompt it is placed.
    ///
    /// # Errors
    /// `Prompt` if the message is empty, a turn or a summary, `Full` if 1,000 messages wait.
    pub fn steer(self, message: impl Into<Entry>) -> Result<Queued, Error> {
        self.push(Lane::Steering, message.into(), Manner::Waits)
    }

    /// Queues a message or a custom entry for the end of the run: the run continues, and answers it next.
    ///
    /// # Errors
    /// Like [`steer`](AgentQueue::steer).
    pub fn follow_up(self, message: impl Into<Entry>) -> Result<Queued, Error> {
        self.push(Lane::FollowUp, message.into(), Manner::Waits)
    }

    /// Queues a message for the next request, and interrupts the current reply; calls continue.
    ///
    /// The text so far is stored as an interrupted reply. All earlier messages in the queue are placed with it.
    ///
    /// # Errors
    /// Like [`steer`](AgentQueue::steer).
    pub fn interrupt(self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.push(Lane::Steering, message.into().into(), Manner::Interrupts)
    }

    /// Removes the messages from these lanes, and returns them: lane by lane, each oldest first.
    #[must_use]
    pub fn clear(self, lanes: &[Lane]) -> Vec<Entry> {
        lanes
            .iter()
            .flat_map(|lane| self.session.queues().clear(*lane))
            .collect()
    }

    /// True if no message waits. The content of a log is known once the session's first run began.
    pub fn is_empty(self) -> bool {
        !self.session.queues().is_filled()
    }

    /// Returns the waiting messages: steering first, each oldest first. The messages in a log are known once the
    /// session's first run began.
    pub fn items(self) -> Vec<QueueItem> {
        self.session.queues().waiting()
    }

    /// Posts a message to the session, even if another process owns its log. The current or the next run receives it.
    ///
    /// An answer to a pause of a parked run counts when that run is resumed; a cancellation counts only for an open
    /// run.
    ///
    /// # Errors
    /// `Journal` if there is no such log yet, too many posts wait, or the journal does not support posts.
    pub async fn post(self, post: Post) -> Result<PostNo, Error> {
        Ok(self.session.journal().post(self.session.id(), post).await?)
    }

    fn push(self, lane: Lane, entry: Entry, manner: Manner) -> Result<Queued, Error> {
        self.session.queues().push(lane, entry, manner)
    }
}
