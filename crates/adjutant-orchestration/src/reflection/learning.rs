//! The middleware `reflections`: evaluates runs that received reflections, and records failures.

use std::{fmt, sync::Arc};

use adjutant_agent::{
    Completion, DriveContext, Failure, Middleware, NextDrive, Outcome as Ended, RunResult,
};
use adjutant_llm::{Warning, WarningKind};
use async_trait::async_trait;
use serde::Deserialize;

use super::{Failed, MAX_CAVEATS_BYTES, MAX_SUMMARY_BYTES, Outcome, Reflections, recalling};
use crate::text;

/// The largest number of failed calls in a note.
const MAX_CALLS: usize = 5;
/// The largest number of bytes of a call's result in a note.
const MAX_CALL_BYTES: usize = 400;
/// The tool with which an agent reports the end of its task.
const COMPLETE: &str = "task_complete";

type Judge = dyn Fn(&RunResult) -> Outcome + Send + Sync;

/// Counts the outcomes of runs that received reflections, and records failures.
///
/// It calls no model: a note contains the outcome of the run, the last text of the agent, and its last failed calls.
/// A failure to count or record is a warning, never the end of the run. A run that is failed by a middleware inside
/// this one is ignored.
#[derive(Clone)]
pub struct Learning {
    reflections: Reflections,
    judge: Arc<Judge>,
}

/// The statement of an agent about its task when it ended it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskEnding {
    status: Arc<str>,
    summary: Arc<str>,
    caveats: Option<Arc<str>>,
    files_modified: Vec<Arc<str>>,
}

/// Returns the outcome of a run for its reflections.
///
/// `Useless` if it reached a limit, if a model refused or a guardrail rejected it, or if the agent called `task_complete`
/// with the status `failed`; `Helped` if it finished otherwise; `Unknown` if it was cancelled, cut off, or failed for reasons
/// that no reflection can change.
pub fn judge(result: &RunResult) -> Outcome {
    match &result.outcome {
        _ if find_ending(result).is_some_and(|said| &*said.status == "failed") => Outcome::Useless,
        Ended::Finished {
            why: Completion::Answer | Completion::Terminated | Completion::Stopped,
            ..
        } => Outcome::Helped,
        Ended::Limit { .. }
        | Ended::Failed {
            failure: Failure::Refused { .. } | Failure::Guardrail { .. },
        } => Outcome::Useless,
        _ => Outcome::Unknown,
    }
}

impl Learning {
    pub(super) fn new(reflections: Reflections) -> Self {
        Self {
            reflections,
            judge: Arc::new(judge),
        }
    }

    /// Sets the function that determines the outcome of runs; [`judge`] by default.
    #[must_use]
    pub fn with_judge(self, judge: impl Fn(&RunResult) -> Outcome + Send + Sync + 'static) -> Self {
        Self {
            judge: Arc::new(judge),
            ..self
        }
    }
}

#[async_trait]
impl Middleware for Learning {
    fn name(&self) -> &str {
        recalling::KIND
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        let given = next.run(cx.clone()).await;
        match &given {
            Ok(result) if !matches!(result.outcome, Ended::Paused { .. }) => {
                self.learn(&cx, result).await
            }
            _ => {}
        }
        given
    }
}

impl Learning {
    async fn learn(&self, cx: &DriveContext, result: &RunResult) {
        let (outcome, shown) = (
            (self.judge)(result),
            Reflections::find_shown(&result.entries),
        );
        let counted = self.reflections.outcome(&shown, outcome).await;
        let recorded = match outcome {
            Outcome::Useless => self.record(result).await,
            Outcome::Helped | Outcome::Unknown => Ok(()),
        };
        for error in [counted, recorded].into_iter().filter_map(Result::err) {
            let message: Arc<str> = format!("nothing was learned from the run: {error}").into();
            tracing::warn!(session = &*cx.log.0, "{message}");
            cx.warn(Warning {
                kind: WarningKind::HookFailed,
                message,
            });
        }
    }

    async fn record(&self, result: &RunResult) -> Result<(), crate::Error> {
        let failed = describe(result);
        if failed.task.is_empty() {
            return Ok(());
        }
        self.reflections.record(&failed).await.map(drop)
    }
}

/// Returns the content of a note on a run.
fn describe(result: &RunResult) -> Failed {
    let task = recalling::collect_message_text(&result.entries);
    let agent = Arc::clone(&result.agent.config_name);
    if let Some(TaskEnding {
        summary,
        caveats,
        files_modified,
        ..
    }) = find_ending(result).filter(|said| !said.summary.is_empty())
    {
        return Failed {
            agent,
            task: task.into(),
            summary,
            caveats,
            files_modified,
        };
    }
    let how = match &result.outcome {
        Ended::Limit { limit } => format!(
            "The run reached its limit of {limit} after {} turns.",
            result.turns
        ),
        Ended::Failed { failure } => format!("The run failed: {failure}."),
        other => format!(
            "The run ended as {}, without what it should reach.",
            other.kind()
        ),
    };
    let last = result.text();
    let last = if last.trim().is_empty() {
        String::new()
    } else {
        format!("\nThe last words were: {}", last.trim())
    };
    Failed {
        agent,
        task: task.into(),
        summary: text::clip_text(&format!("{how}{last}"), MAX_SUMMARY_BYTES).into(),
        caveats: format_failed_calls(result),
        files_modified: Vec::new(),
    }
}

/// The calls that failed last, if any did.
fn format_failed_calls(result: &RunResult) -> Option<Arc<str>> {
    let failed: Vec<_> = result
        .calls
        .iter()
        .filter(|report| report.result.is_error())
        .collect();
    let newest = failed
        .get(failed.len().saturating_sub(MAX_CALLS)..)
        .unwrap_or_default();
    let line = |report: &&adjutant_agent::CallReport| {
        format!(
            "- {} failed: {}",
            report.name.as_str(),
            text::line(&report.result.text(), MAX_CALL_BYTES)
        )
    };
    let lines: Vec<String> = newest.iter().map(line).collect();
    (!lines.is_empty()).then(|| text::clip_text(&lines.join("\n"), MAX_CAVEATS_BYTES).into())
}

/// Returns the agent's statement about its task, if it made one.
fn find_ending(result: &RunResult) -> Option<TaskEnding> {
    let mut calls = result
        .calls
        .iter()
        .filter(|report| report.name.as_str() == COMPLETE && !report.result.is_error());
    calls.find_map(|report| TaskEnding::deserialize(&report.result.details).ok())
}

impl fmt::Debug for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learning")
            .field("reflections", &self.reflections)
            .finish_non_exhaustive()
    }
}
