//! A drive that may not take longer than a time.

use std::{pin::pin, time::Duration};

use adjutant_core::{CancelBy, Failure, RunResult};
use async_trait::async_trait;

use super::{DriveContext, Middleware, NextDrive};

/// Cancels a drive that takes too long, as a deadline would, and waits until its turn is closed.
///
/// The time counts from the start of the drive: a run that was parked has all of it again.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(
    /// The longest time that a drive may take.
    pub Duration,
);

#[async_trait]
impl Middleware for Timeout {
    fn name(&self) -> &str {
        "timeout"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let stopper = cx.stopper.clone();
        let mut drive = pin!(next.run(cx));
        tokio::select! {
            biased;
            result = &mut drive => return result,
            () = tokio::time::sleep(self.0) => stopper.stop(CancelBy::Deadline),
        }
        drive.await
    }
}
