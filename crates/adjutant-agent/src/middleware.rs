//! Middleware: wraps a drive, from the first hook of a run to its last.

use std::{fmt, sync::Arc};

use adjutant_llm::Entry;
use adjutant_tool::{Cancel, Identity};
use async_trait::async_trait;

use crate::{Failure, LogId, RunResult, Stopper};

/// Wraps a drive. The first that is listed is outermost.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    note = "`middleware_fn` makes a middleware of a function"
)]
pub trait Middleware: Send + Sync {
    /// What it is called, in snake case.
    fn name(&self) -> &str;

    /// Performs a drive, or keeps it from being performed.
    ///
    /// Cancel: the drive is cancelled; its turn is closed by whoever drives next.
    ///
    /// # Errors
    /// Why the run counts as failed, whatever it came to.
    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure>;
}

/// The drive that a middleware wraps.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriveContext {
    /// The agent.
    pub who: Arc<Identity>,
    /// The log of its session.
    pub log: LogId,
    /// What the run is prompted with; empty if it goes on with what is there.
    pub prompts: Arc<[Entry]>,
    /// Stops the run.
    pub stopper: Stopper,
    /// The caller's wish to stop.
    pub cancel: Cancel,
}

/// The rest of the chain: the middleware inside, and the drive itself.
pub struct NextDrive<'a> {
    pub(crate) chain: &'a [Arc<dyn Middleware>],
    pub(crate) last: Box<dyn FnOnce() -> Last<'a> + Send + 'a>,
}

pub(crate) type Last<'a> = std::pin::Pin<Box<dyn Future<Output = Result<RunResult, Failure>> + Send + 'a>>;

impl NextDrive<'_> {
    /// Performs the rest of the chain.
    ///
    /// # Errors
    /// Why a middleware inside, or what is done before the first turn, fails the run.
    pub async fn run(self, cx: DriveContext) -> Result<RunResult, Failure> {
        match self.chain.split_first() {
            Some((first, chain)) => first.drive(cx, NextDrive { chain, last: self.last }).await,
            None => (self.last)().await,
        }
    }
}

impl fmt::Debug for NextDrive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextDrive").field("inside", &self.chain.len()).finish_non_exhaustive()
    }
}
