//! Steering and follow-ups: messages for a run that is at work, or for the next one.

use std::sync::Arc;

use adjutant_core::{Error, Lane};
use adjutant_llm::{Entry, UserMessage};

use super::Agent;
use crate::{
    queue::{Drain, Drains, Manner, QueueItem, Queued, Queues},
    running::Running,
    setup::Setup,
};

/// How messages are queued; `Agent` and `Running` share the queues of their session.
impl Agent {
    /// Queues a message for the next request: after the results of the calls at work, before the run would end.
    ///
    /// Any time and from any thread; while no run is at work it waits for the next one, whose prompt it follows.
    ///
    /// # Errors
    /// `Prompt` if the message is empty, `Full` if 1,000 messages wait.
    pub fn steer(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.steer_entry(message.into())
    }

    /// Queues a message or a custom entry for the next request.
    ///
    /// # Errors
    /// Like [`steer`](Agent::steer), and `Prompt` if it is a turn or a summary.
    pub fn steer_entry(&self, entry: impl Into<Entry>) -> Result<Queued, Error> {
        self.session.queues().push(Lane::Steering, entry.into(), Manner::Waits)
    }

    /// Queues a message for when the run would end: it goes on then, and the message is what it answers next.
    ///
    /// # Errors
    /// Like [`steer`](Agent::steer).
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.follow_up_entry(message.into())
    }

    /// Queues a message or a custom entry for when the run would end.
    ///
    /// # Errors
    /// Like [`steer_entry`](Agent::steer_entry).
    pub fn follow_up_entry(&self, entry: impl Into<Entry>) -> Result<Queued, Error> {
        self.session.queues().push(Lane::FollowUp, entry.into(), Manner::Waits)
    }

    /// Queues a message for the next request, and ends the reply that is on its way; calls go on.
    ///
    /// What was said is kept as an interrupted reply. All that waits before the message is placed with it.
    ///
    /// # Errors
    /// Like [`steer`](Agent::steer).
    pub fn interrupt(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        interrupt(self.session.queues(), message.into())
    }

    /// Takes a message back; false if it does not wait any more, or is of another session.
    #[must_use]
    pub fn withdraw(&self, queued: &Queued) -> bool {
        queued.is_of(self.session.queues()) && queued.withdraw()
    }

    /// Sets how much steering is placed at a time, in later runs; one message without it.
    #[must_use]
    pub fn steering_mode(self, drain: Drain) -> Self {
        self.with(|setup| Setup { drains: Drains { steering: drain, ..setup.drains }, ..setup })
    }

    /// Sets how many follow-ups are placed at a time, in later runs; one message without it.
    #[must_use]
    pub fn follow_up_mode(self, drain: Drain) -> Self {
        self.with(|setup| Setup { drains: Drains { follow_up: drain, ..setup.drains }, ..setup })
    }

    /// Takes back all steering that waits, and gives it, oldest first.
    #[must_use]
    pub fn clear_steering(&self) -> Vec<Entry> {
        self.session.queues().clear(Lane::Steering)
    }

    /// Takes back all follow-ups that wait, and gives them, oldest first.
    #[must_use]
    pub fn clear_follow_up(&self) -> Vec<Entry> {
        self.session.queues().clear(Lane::FollowUp)
    }

    /// Takes back everything that waits, and gives it: steering first, each oldest first.
    #[must_use]
    pub fn clear_queues(&self) -> Vec<Entry> {
        let mut cleared = self.clear_steering();
        cleared.extend(self.clear_follow_up());
        cleared
    }

    /// Whether a message waits. What a log holds is known once the session's first run began.
    pub fn has_queued(&self) -> bool {
        self.session.queues().is_filled()
    }

    /// What waits: steering first, each oldest first. What a log holds is known once the session's first run began.
    pub fn queued(&self) -> Vec<QueueItem> {
        self.session.queues().waiting()
    }
}

impl Running {
    /// Queues a message for the next request: see [`Agent::steer`].
    ///
    /// # Errors
    /// `Prompt` if the message is empty, `Full` if 1,000 messages wait.
    pub fn steer(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.session().queues().push(Lane::Steering, message.into().into(), Manner::Waits)
    }

    /// Queues a message for when the run would end: see [`Agent::follow_up`].
    ///
    /// # Errors
    /// Like [`steer`](Running::steer).
    pub fn follow_up(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        self.session().queues().push(Lane::FollowUp, message.into().into(), Manner::Waits)
    }

    /// Queues a message for the next request, and ends the reply that is on its way: see [`Agent::interrupt`].
    ///
    /// # Errors
    /// Like [`steer`](Running::steer).
    pub fn interrupt(&self, message: impl Into<UserMessage>) -> Result<Queued, Error> {
        interrupt(self.session().queues(), message.into())
    }
}

fn interrupt(queues: &Arc<Queues>, message: UserMessage) -> Result<Queued, Error> {
    queues.push(Lane::Steering, message.into(), Manner::Interrupts)
}
