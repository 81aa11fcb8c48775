//! Permits: a limit of agents at a time is no failure as long as one of the same call will make room.

use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_agent::{MemberRun, OpenedAgent};
use adjutant_tool::{Cancel, ToolError, ToolErrorKind};
use tokio::sync::Notify;

/// The agents of one call that are at work.
#[derive(Debug, Default)]
pub(super) struct Permits {
    taken: AtomicUsize,
    left: Notify,
}

/// The permit of an agent at work, until it is dropped.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    /// Begins a task as soon as there is a permit; `None` if it should not begin any more.
    pub(super) async fn begin(
        &self,
        member: &OpenedAgent,
        task: &str,
        stop: &Cancel,
    ) -> Option<Result<(MemberRun, Permit<'_>), ToolError>> {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            match member.stream(task) {
                Ok(run) => {
                    self.taken.fetch_add(1, Ordering::AcqRel);
                    return Some(Ok((run, Permit(self))));
                }
                // What a prompt is denied for at once is the limit of agents; what hooks deny is heard later.
                Err(error) if error.kind == ToolErrorKind::Denied && self.taken.load(Ordering::Acquire) > 0 => {}
                Err(error) => return Some(Err(error)),
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = left => {}
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.left.notify_waiters();
    }
}
