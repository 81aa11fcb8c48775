//! Middleware: wraps a drive, from the first hook of a run to its last.

mod function;
mod input_guardrail;
mod logger;
mod output_guardrail;
mod recovery;
mod start;
mod state;
mod timeout;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_llm::Entry;
use adjutant_tool::{Cancel, Identity};
use async_trait::async_trait;

pub use function::{BoxDrive, FnMiddleware, middleware_fn};
pub use input_guardrail::InputGuardrail;
pub use logger::Logger;
pub use output_guardrail::OutputGuardrail;
pub use recovery::Recovery;
pub(crate) use recovery::panic_failure;
pub use start::DriveStart;
pub(crate) use state::MiddlewareState;
pub use timeout::Timeout;

use crate::inbox::Stopper;
use adjutant_core::{Failure, LogId, Outcome, RunResult};

/// Wraps a drive. The first that is listed is outermost.
///
/// The log contains the end of the drive; a middleware that returns another outcome overrules it, in the log too.
/// Only the outcome of the returned result counts.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    note = "`middleware_fn` makes a middleware of a function"
)]
pub trait Middleware: Send + Sync {
    /// Returns its name, in snake case.
    fn name(&self) -> &str;

    /// Called when the drive has started and is in the log, before any request; not if the drive only ends the run.
    ///
    /// Use it to continue agents that survived the loss of a program, and to inform the agent about them. After a
    /// cancellation request it has only the grace period.
    async fn on_start(&self, cx: &DriveStart) {
        let _ = cx;
    }

    /// Performs a drive, or keeps it from being performed.
    ///
    /// A drive that is dropped in the middle is cancelled, and its turn is closed, before the run ends. The same
    /// happens if the middleware panics, or does not end within the grace period after a cancellation request.
    ///
    /// Cancel: the drive is cancelled; the next driver closes its turn.
    ///
    /// # Errors
    /// Why the run counts as failed, whatever it came to.
    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure>;
}

#[async_trait]
impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        (**self).drive(cx, next).await
    }
}

/// The drive that a middleware wraps.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriveContext {
    /// The agent.
    pub who: Arc<Identity>,
    /// The log of its session.
    pub log: LogId,
    /// The prompt of the run; empty if it continues with the existing entries.
    pub prompts: Arc<[Entry]>,
    /// The running time of earlier drives of the run.
    pub at_work: Duration,
    /// True if the log was read for this drive: another program may have written it since this one did last.
    pub is_reopened: bool,
    /// Stops the run.
    pub stopper: Stopper,
    /// The cancellation token of the run.
    pub cancel: Cancel,
    pub(crate) shared: Arc<MiddlewareState>,
}

/// The rest of the chain: the middleware inside, and the drive itself.
pub struct NextDrive<'a> {
    pub(crate) chain: &'a [Arc<dyn Middleware>],
    pub(crate) judge: &'a Judge,
    pub(crate) last: Box<dyn FnOnce(DriveContext) -> Last<'a> + Send + 'a>,
}

pub(crate) type Last<'a> = std::pin::Pin<Box<dyn Future<Output = RunResult> + Send + 'a>>;

/// Notes which middleware had the last word about an outcome.
#[derive(Debug, Default)]
pub(crate) struct Judge(Mutex<Option<(Outcome, Arc<str>)>>);

impl NextDrive<'_> {
    /// Performs the rest of the chain. A failed run is a result with that outcome.
    ///
    /// # Errors
    /// Why a middleware inside fails the run.
    pub async fn run(self, cx: DriveContext) -> Result<RunResult, Failure> {
        let Some((first, chain)) = self.chain.split_first() else {
            let result = (self.last)(cx).await;
            self.judge.note("", &result.outcome);
            return Ok(result);
        };
        let given = first
            .drive(
                cx,
                NextDrive {
                    chain,
                    judge: self.judge,
                    last: self.last,
                },
            )
            .await;
        match &given {
            Ok(result) => self.judge.note(first.name(), &result.outcome),
            Err(failure) => self.judge.note(
                first.name(),
                &Outcome::Failed {
                    failure: failure.clone(),
                },
            ),
        }
        given
    }
}

impl Judge {
    fn note(&self, by: &str, outcome: &Outcome) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(old, _)| !old.is_same(outcome)) {
            *last = Some((outcome.clone(), by.into()));
        }
    }

    /// Returns the name of the middleware that changed the outcome last.
    pub(crate) fn last(self) -> Option<Arc<str>> {
        let last = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        last.map(|(_, by)| by).filter(|by| !by.is_empty())
    }
}

impl fmt::Debug for NextDrive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextDrive")
            .field("inside", &self.chain.len())
            .finish_non_exhaustive()
    }
}
