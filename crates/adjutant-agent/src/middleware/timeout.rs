//! A limit on the running time of a run.

use std::{pin::pin, time::Duration};

use adjutant_core::{CancelBy, Failure, RunResult};
use async_trait::async_trait;

use super::{DriveContext, Middleware, NextDrive};

/// Cancels a run that runs for too long, as a deadline would, and waits until its turn is closed.
///
/// The drives of a run share the time; while it is parked, none passes.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(
    /// The maximum running time of a run.
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
