//! Logs the start of a drive and its end; never its messages.

use adjutant_core::{Failure, Outcome, RunResult};
use async_trait::async_trait;
use tokio::time::Instant;

use super::{DriveContext, Middleware, NextDrive};

/// Logs to `tracing` when a drive starts, and how it ended: outcome, duration, usage. Contents are omitted.
///
/// A start and a successful end are logged at the level `INFO`, a failure at `WARN`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Logger;

#[async_trait]
impl Middleware for Logger {
    fn name(&self) -> &str {
        "logger"
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let (agent, session) = (cx.who.path.clone(), cx.log.0.clone());
        tracing::info!(
            agent = &*agent,
            session = &*session,
            prompts = cx.prompts.len(),
            "drive started"
        );
        let began = Instant::now();
        let given = next.run(cx).await;
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let failed = |failure: &Failure| {
            let failure = failure.kind();
            tracing::warn!(
                agent = &*agent,
                session = &*session,
                duration_ms,
                failure,
                "drive failed"
            );
        };
        match &given {
            Err(failure)
            | Ok(RunResult {
                outcome: Outcome::Failed { failure },
                ..
            }) => failed(failure),
            Ok(result) => tracing::info!(
                agent = &*agent,
                session = &*session,
                run = result.run.0,
                outcome = result.outcome.kind(),
                duration_ms,
                turns = result.turns,
                tokens = result.total_usage.total(),
                "drive ended"
            ),
        }
        given
    }
}
