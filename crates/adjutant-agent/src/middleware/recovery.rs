//! Converts a panic inside into a failure before it reaches outer middleware.

use std::panic::AssertUnwindSafe;

use adjutant_core::{Failure, RunResult};
use async_trait::async_trait;
use futures_util::FutureExt;

use super::{DriveContext, Middleware, NextDrive};

/// Converts a panic inside into a failure, so that outer middleware continues with it.
///
/// Without it a panic fails the run as well, but passes through the middleware outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recovery;

#[async_trait]
impl Middleware for Recovery {
    fn name(&self) -> &str {
        "recovery"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let drive = AssertUnwindSafe(next.run(cx)).catch_unwind().await;
        drive.unwrap_or_else(|panic| Err(panic_failure(&*panic)))
    }
}

/// The failure of a drive with a panic in its middleware.
pub(crate) fn panic_failure(panic: &(dyn std::any::Any + Send)) -> Failure {
    let message = format!(
        "what surrounds the run panicked: {}",
        adjutant_core::panic_text(panic)
    );
    Failure::Middleware {
        message: message.into(),
    }
}
