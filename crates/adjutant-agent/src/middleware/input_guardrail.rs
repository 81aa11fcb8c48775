//! A check of a run's prompt, before any of it is recorded or sent.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use adjutant_core::{Failure, RunResult};
use adjutant_llm::Entry;
use async_trait::async_trait;
use futures_util::FutureExt;

use super::{DriveContext, Middleware, NextDrive};

/// Fails a run whose prompt does not pass a check; nothing of the prompt is recorded, and no model is called.
///
/// A check that panics rejects. A drive that continues a parked run has no prompt, and is not checked.
pub struct InputGuardrail<F> {
    name: Arc<str>,
    check: F,
}

impl<F> InputGuardrail<F> {
    /// A check with a name: it gives why the prompt is rejected, if it is.
    pub fn new<Fut>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(Arc<[Entry]>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<(), Arc<str>>> + Send,
    {
        Self {
            name: name.into(),
            check,
        }
    }
}

#[async_trait]
impl<F, Fut> Middleware for InputGuardrail<F>
where
    F: Fn(Arc<[Entry]>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), Arc<str>>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        if !cx.prompts.is_empty() {
            let prompts = Arc::clone(&cx.prompts);
            verdict(&self.name, async { (self.check)(prompts).await }).await?;
        }
        next.run(cx).await
    }
}

/// Returns the verdict of a check; a panic of it rejects.
pub(super) async fn verdict(
    by: &Arc<str>,
    check: impl Future<Output = Result<(), Arc<str>>> + Send,
) -> Result<(), Failure> {
    let reason = match AssertUnwindSafe(check).catch_unwind().await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(reason)) => reason,
        Err(panic) => format!("the check panicked: {}", adjutant_core::panic_text(&*panic)).into(),
    };
    Err(Failure::Guardrail {
        by: Arc::clone(by),
        reason,
    })
}

impl<F> fmt::Debug for InputGuardrail<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputGuardrail")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
