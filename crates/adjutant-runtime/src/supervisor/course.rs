//! The decisions about one agent: a pure function of its desired state, its status, and its history.

use std::{collections::VecDeque, time::Duration};

use crate::{
    error::ErrorKind,
    home::{Course, Desired, Goal},
    status::{Reason, Status},
};

/// The first pause before a retry; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The maximum pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The number of crashes after which an agent is not restarted, and the time within which they count.
const CRASHES: usize = 5;
const CRASHES_WITHIN: Duration = Duration::from_secs(5 * 60);
/// The time for which an agent must be ready until earlier failures are forgotten.
const SETTLED: Duration = Duration::from_secs(60);

/// The operations that are in progress for an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flight {
    /// It is being started.
    pub(super) starting: bool,
    /// It is being stopped or removed.
    pub(super) ending: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorStep {
    /// Nothing.
    Rest,
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Delete it.
    Remove,
    /// Wait until this time, in milliseconds since 1970-01-01 UTC.
    Pause { until_ms: u64 },
    /// Wait until another agent stops.
    Queue,
}

/// The reason why an agent is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DownReason {
    /// A retry may succeed.
    Heals,
    /// A retry may succeed, but it counts towards the limit of crashes.
    Crash,
    /// Only a change of its configuration can fix it.
    Stays,
}

impl Course {
    /// Processes an order; a new one resets the history.
    pub(super) fn take(&mut self, desired: &Desired) -> bool {
        if desired.order <= self.order {
            return false;
        }
        let restart = desired.restart || (self.restart && desired.goal == Goal::Running);
        *self = Self {
            order: desired.order,
            up_since: self.up_since,
            restart,
            ..Self::default()
        };
        true
    }

    /// Processes the agent's status while no operation is in progress. Returns whether it is a new failure.
    ///
    /// `unit` returns a number in [0, 1).
    pub(super) fn see(&mut self, status: &Status, now_ms: u64, unit: impl FnOnce() -> f64) -> bool {
        match (self.up_since, status) {
            (None, Status::Ready | Status::Working) => {
                self.up_since = Some(now_ms);
                self.is_waiting = false;
                self.next_ms = None;
                false
            }
            (Some(since), Status::Ready | Status::Working) => {
                if is_over(since, now_ms, SETTLED) {
                    (self.attempts, self.crashes) = (0, VecDeque::new());
                }
                false
            }
            (Some(_), Status::Failed { reason, message }) => {
                self.fail(DownReason::from_reason(*reason), message, now_ms, unit());
                true
            }
            (Some(_), Status::Stopped) => {
                self.fail(DownReason::Crash, "it ended by itself", now_ms, unit());
                true
            }
            _ => false,
        }
    }

    /// Records that it could not be started, or ended without a request.
    pub(super) fn fail(&mut self, fault: DownReason, message: &str, now_ms: u64, unit: f64) {
        if self
            .up_since
            .take()
            .is_some_and(|since| is_over(since, now_ms, SETTLED))
        {
            (self.attempts, self.crashes) = (0, VecDeque::new());
        }
        self.attempts = self.attempts.saturating_add(1);
        self.next_ms = Some(now_ms.saturating_add(millis(pause(self.attempts, unit))));
        match fault {
            DownReason::Heals => {}
            DownReason::Stays => self.give_up(message.to_owned()),
            DownReason::Crash => {
                self.crashes.push_back(now_ms);
                // A crash in the future was before the clock was set back, so its time is unknown.
                self.crashes
                    .retain(|at| *at <= now_ms && !is_over(*at, now_ms, CRASHES_WITHIN));
                self.crashes
                    .drain(..self.crashes.len().saturating_sub(CRASHES));
                if self.crashes.len() >= CRASHES {
                    self.give_up(format!(
                        "it crashed {CRASHES} times within 5 minutes, the last time so: {message}"
                    ));
                }
            }
        }
    }

    fn give_up(&mut self, why: String) {
        (self.given_up, self.next_ms) = (Some(why.into()), None);
    }

    /// Records that it is being started; counts a restart if it had failed before.
    pub(super) fn starts(&mut self) {
        self.restarts += u64::from(self.attempts > 0);
        (self.next_ms, self.is_waiting, self.restart) = (None, false, false);
    }

    /// Records that it was stopped on request.
    pub(super) fn stopped(&mut self) {
        (self.up_since, self.restart) = (None, false);
    }

    /// Records that it could not be stopped or removed; the operation is retried after a pause.
    pub(super) fn hindered(&mut self, now_ms: u64, unit: f64) {
        self.attempts = self.attempts.saturating_add(1);
        self.next_ms = Some(now_ms.saturating_add(millis(pause(self.attempts, unit))));
    }

    /// Returns the next step.
    pub(super) fn step(
        &self,
        goal: Goal,
        status: &Status,
        flight: Flight,
        has_place: bool,
        now_ms: u64,
    ) -> SupervisorStep {
        if flight.ending {
            return SupervisorStep::Rest;
        }
        let is_up = flight.starting || is_up(status);
        // Waits for a start that is already in progress, by calling it again.
        let is_begun = flight.starting || matches!(status, Status::Ready | Status::Working);
        let wanted = match goal {
            _ if matches!(status, Status::Removed) => SupervisorStep::Rest,
            // A started removal is finished regardless of the order.
            _ if matches!(status, Status::Removing) => SupervisorStep::Remove,
            Goal::Removed => SupervisorStep::Remove,
            Goal::Stopped if is_up => SupervisorStep::Stop,
            Goal::Stopped => SupervisorStep::Rest,
            Goal::Running if is_up && self.restart => SupervisorStep::Stop,
            Goal::Running if is_begun || self.given_up.is_some() => SupervisorStep::Rest,
            Goal::Running => SupervisorStep::Start,
        };
        // A pause longer than the maximum began before the clock was set back, so it is over.
        let next_ms = self
            .next_ms
            .filter(|next| *next > now_ms && *next - now_ms <= millis(LONGEST_PAUSE));
        match (wanted, next_ms) {
            (SupervisorStep::Rest, _) => SupervisorStep::Rest,
            (_, Some(until_ms)) => SupervisorStep::Pause { until_ms },
            (SupervisorStep::Start, None) if !has_place => SupervisorStep::Queue,
            (wanted, None) => wanted,
        }
    }
}

impl DownReason {
    /// Returns the reason for a failure of this kind.
    pub(super) fn from_reason(reason: Reason) -> Self {
        match reason {
            Reason::Init | Reason::Pull | Reason::Model | Reason::Readiness => DownReason::Heals,
            Reason::Config => DownReason::Stays,
            Reason::Crashed | Reason::Frozen => DownReason::Crash,
        }
    }

    /// Returns the reason for an error at a start.
    pub(super) fn from_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Crashed | ErrorKind::Killed | ErrorKind::Frozen => DownReason::Crash,
            ErrorKind::Config | ErrorKind::Manifest | ErrorKind::Invalid => DownReason::Stays,
            _ => DownReason::Heals,
        }
    }
}

/// True if an agent with this status is running or starting.
pub(super) fn is_up(status: &Status) -> bool {
    matches!(
        status,
        Status::Preparing | Status::Starting | Status::Ready | Status::Working
    )
}

/// Returns the pause after this number of consecutive failures: 1 s, doubled each time, at most 30 s, with a jitter of
/// up to a quarter.
fn pause(attempts: u32, unit: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(
        1_u32
            .checked_shl(attempts.saturating_sub(1))
            .unwrap_or(u32::MAX),
    );
    doubled
        .min(LONGEST_PAUSE)
        .mul_f64(0.75 + 0.5 * unit.clamp(0.0, 1.0))
        .min(LONGEST_PAUSE)
}

fn is_over(since_ms: u64, now_ms: u64, time: Duration) -> bool {
    now_ms.saturating_sub(since_ms) >= millis(time)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
