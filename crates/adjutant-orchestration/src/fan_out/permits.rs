//! Permits: reaching the limit of agents is no failure while another one of the same call will make space.

use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_agent::{MemberRun, OpenedAgent};
use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use tokio::sync::Notify;

/// The running agents of one call.
#[derive(Debug, Default)]
pub(super) struct Permits {
    taken: AtomicUsize,
    /// The number of agents that have not tried to begin: one of them may have a place that was kept for it.
    untried: AtomicUsize,
    left: Notify,
}

/// An agent that has not tried to begin, until this is dropped.
pub(super) struct Untried<'a>(&'a Permits);

/// The permit of a running agent, until it is dropped.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    /// An agent is about to begin.
    pub(super) fn announce(&self) -> Untried<'_> {
        self.untried.fetch_add(1, Ordering::AcqRel);
        Untried(self)
    }

    /// Starts a task as soon as there is a permit; `None` if it should no longer start.
    ///
    /// A refused agent waits while another one of the call is running, or has not tried yet: finally one runs or all
    /// have tried in vain, so no agent waits forever.
    pub(super) async fn begin(
        &self,
        member: &OpenedAgent,
        task: &str,
        stop: &Cancel,
        untried: Untried<'_>,
    ) -> Option<Result<(MemberRun, Permit<'_>), ToolError>> {
        let mut untried = Some(untried);
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            match member.stream(task) {
                Ok(run) => {
                    self.taken.fetch_add(1, Ordering::AcqRel);
                    return Some(Ok((run, Permit(self))));
                }
                // A prompt is denied immediately only by the limit of agents; denials of hooks come later.
                Err(error) => {
                    untried.take();
                    if error.kind != ToolErrorKind::Denied || !self.makes_room() {
                        return Some(Err(error));
                    }
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = left => {}
            }
        }
    }
}

impl Permits {
    /// True if a place may become free without intervention.
    fn makes_room(&self) -> bool {
        self.taken.load(Ordering::Acquire) > 0 || self.untried.load(Ordering::Acquire) > 0
    }
}

impl Drop for Untried<'_> {
    fn drop(&mut self) {
        self.0.untried.fetch_sub(1, Ordering::AcqRel);
        self.0.left.notify_waiters();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.left.notify_waiters();
    }
}
