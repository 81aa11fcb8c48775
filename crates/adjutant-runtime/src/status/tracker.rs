//! Holds the status of an agent, and notifies watchers: intermediate statuses can be missed, the latest one never.

use std::{net::SocketAddr, time::Duration};

use tokio::sync::watch;

use super::Status;
use crate::{Error, ErrorKind};

/// Holds the status of an agent.
///
/// Invariant: its value changes only according to [`Status::may_become`], and changes are reported in order.
#[derive(Debug)]
pub struct StatusTracker {
    sender: watch::Sender<TrackedStatus>,
}

/// Watches the status of an agent.
///
/// A slow watcher misses intermediate statuses, but never the latest.
#[derive(Debug, Clone)]
pub struct StatusWatch {
    receiver: watch::Receiver<TrackedStatus>,
    over: bool,
}

#[derive(Debug)]
struct TrackedStatus {
    status: Status,
    address: Option<SocketAddr>,
}

impl StatusTracker {
    /// Creates a tracker with this status.
    pub fn new(status: Status) -> Self {
        Self {
            sender: watch::Sender::new(TrackedStatus {
                status,
                address: None,
            }),
        }
    }

    /// Returns its current status.
    pub fn get(&self) -> Status {
        self.sender.borrow().status.clone()
    }

    /// Returns its current or last address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.sender.borrow().address
    }

    /// Changes the status, and notifies all watchers. Setting the current status is not a change.
    ///
    /// # Errors
    /// `Conflict` if the transition is not permitted; the status is unchanged.
    pub fn set(&self, status: Status) -> Result<(), Error> {
        let mut refused = None;
        self.sender.send_if_modified(|held| {
            if held.status == status {
                return false;
            }
            if !held.status.may_become(&status) {
                refused = Some(held.status.word());
                return false;
            }
            held.status = status.clone();
            true
        });
        match refused {
            None => Ok(()),
            Some(word) => Err(Error::new(
                ErrorKind::Conflict,
                format!("{word} cannot become {}", status.word()),
            )),
        }
    }

    /// Changes the status unless the guard is true for the current one or the transition is not permitted; returns
    /// whether it has this status now.
    ///
    /// Guard and change are atomic.
    pub fn set_unless(&self, status: Status, guard: impl FnOnce(&Status) -> bool) -> bool {
        let mut stands = false;
        self.sender.send_if_modified(|held| {
            stands = held.status == status;
            if stands || guard(&held.status) || !held.status.may_become(&status) {
                return false;
            }
            held.status = status;
            stands = true;
            true
        });
        stands
    }

    /// Sets the address. Watchers see it as a change with the same status.
    pub fn set_address(&self, address: Option<SocketAddr>) {
        self.sender.send_if_modified(|held| {
            let changed = held.address != address;
            held.address = address;
            changed
        });
    }

    /// Creates a watch, which reports changes after this call.
    pub fn subscribe(&self) -> StatusWatch {
        StatusWatch {
            receiver: self.sender.subscribe(),
            over: false,
        }
    }

    /// Returns the number of watches.
    pub fn watches(&self) -> usize {
        self.sender.receiver_count()
    }
}

impl StatusWatch {
    /// Returns its current status.
    pub fn current(&self) -> Status {
        self.receiver.borrow().status.clone()
    }

    /// Returns its current or last address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.receiver.borrow().address
    }

    /// Waits for a status after the last reported one, and returns the latest; `None` after `removed`, or when all
    /// handles of the agent are dropped. An equal status means that the address changed.
    ///
    /// Cancel: nothing is lost.
    pub async fn changed(&mut self) -> Option<Status> {
        if self.over || self.receiver.changed().await.is_err() {
            self.over = true;
            return None;
        }
        let status = self.receiver.borrow_and_update().status.clone();
        self.over = status == Status::Removed;
        Some(status)
    }

    /// Waits until the status matches, starting with the current one.
    ///
    /// Cancel: nothing is lost.
    ///
    /// # Errors
    /// `Closed` if it never will: the agent was removed, or all its handles are dropped.
    pub async fn wait_for(&mut self, fits: impl Fn(&Status) -> bool) -> Result<Status, Error> {
        loop {
            let status = self.receiver.borrow_and_update().status.clone();
            if fits(&status) {
                return Ok(status);
            }
            if status == Status::Removed || self.receiver.changed().await.is_err() {
                let word = self.current();
                return Err(Error::new(
                    ErrorKind::Closed,
                    format!("the agent will not get there: it is {}", word.word()),
                ));
            }
        }
    }

    /// Like `wait_for`, with a timeout.
    ///
    /// # Errors
    /// `TimedOut` after the timeout, and like `wait_for`.
    pub async fn wait_for_within(
        &mut self,
        time: Duration,
        fits: impl Fn(&Status) -> bool,
    ) -> Result<Status, Error> {
        let watch = self.clone();
        tokio::time::timeout(time, self.wait_for(fits))
            .await
            .unwrap_or_else(|_| {
                let word = watch.current();
                Err(Error::new(
                    ErrorKind::TimedOut,
                    format!(
                        "waited {} ms, and the agent is {}",
                        time.as_millis(),
                        word.word()
                    ),
                ))
            })
    }
}
