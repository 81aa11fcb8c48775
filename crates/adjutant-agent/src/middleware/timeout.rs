//! A run that may not be at work for longer than a time.

use std::{pin::pin, time::Duration};

use adjutant_core::{CancelBy, Failure, RunResult};
use async_trait::async_trait;

use super::{DriveContext, Middleware, NextDrive};

/// Cancels a run that is at work for too long, as a deadline would, and waits until its turn is closed.
///
/// The drives of a run share the time; while it is parked, none passes.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(
    /// The longest time that a run may be at work.
    pub Duration,
);

#[async_trait]
impl Middleware for Timeout {
    fn name(&self) -> &str {
        "timeout"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let (stopper, left) = (cx.stopper.clone(), self.0.saturating_sub(cx.at_work));
        let mut drive = pin!(next.run(cx));
        tokio::select! {
            biased;
            result = &mut drive => return result,
            () = tokio::time::sleep(left) => stopper.stop(CancelBy::Deadline),
        }
        drive.await
    }
}
