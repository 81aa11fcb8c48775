//! A check of the answer of a run, when it has one.

use std::{fmt, sync::Arc};

use adjutant_core::{Failure, Outcome, RunResult};
use adjutant_llm::Reply;
use async_trait::async_trait;

use super::{DriveContext, Middleware, NextDrive, input_guardrail::verdict};

/// Fails a run whose answer does not pass a check. The answer stays in the transcript; the outcome contains the
/// reason.
///
/// A check that panics rejects. A run that failed, was cancelled, reached a limit or waits has no answer, and is not
/// checked.
pub struct OutputGuardrail<F> {
    name: Arc<str>,
    check: F,
}

impl<F> OutputGuardrail<F> {
    /// A check with a name: it gives why the answer is rejected, if it is.
    pub fn new<Fut>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(Arc<Reply>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<(), Arc<str>>> + Send,
    {
        Self {
            name: name.into(),
            check,
        }
    }
}

#[async_trait]
impl<F, Fut> Middleware for OutputGuardrail<F>
where
    F: Fn(Arc<Reply>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), Arc<str>>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let result = next.run(cx).await?;
        if let Outcome::Finished { reply, .. } = &result.outcome {
            let reply = Arc::clone(reply);
            verdict(&self.name, async { (self.check)(reply).await }).await?;
        }
        Ok(result)
    }
}

impl<F> fmt::Debug for OutputGuardrail<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputGuardrail")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
