//! The end of a run: the messages about it, the answer by a schema, and the exit code.

use std::path::Path;

use adjutant::{CancelBy, ErrorKind, Outcome, RunResult, Running, agent::Failure, llm};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    exit::Exit,
    job::Job,
    plain,
    problem::Problem,
    screen::{self, Screen},
    summary::Took,
    trouble, waits,
};

/// Prints how a run ended, the answer by a schema if one is requested, and the total usage.
pub(crate) async fn end(
    running: Running,
    job: &Job<'_>,
    screen: &mut Screen,
) -> Result<Exit, Problem> {
    let result = match running.finish().await {
        Ok(result) => result,
        Err(error) => {
            let exit = failed(job, &error).report();
            error
                .result()
                .into_iter()
                .for_each(|result| screen.tell(&Took::from_result(result).to_string()));
            return Ok(exit);
        }
    };
    let exit = match (&result.outcome, &result.output) {
        (Outcome::Finished { .. }, Some(value)) => {
            write(job, value, screen)?;
            Exit::Finished
        }
        (Outcome::Finished { .. }, None) if job.wants_output => {
            unfit("the run ended before it").report()
        }
        (outcome, _) => {
            stopped(job, outcome, &result, screen);
            Exit::from_outcome(outcome)
        }
    };
    if job.model.left() > 0 {
        screen.tell(&format!(
            "warning: {} exchanges of the cassette were not played",
            job.model.left()
        ));
    }
    screen.tell(&Took::from_result(&result).to_string());
    Ok(exit)
}

/// Converts an error of a run to a problem.
pub(crate) fn failed(job: &Job<'_>, error: &adjutant::Error) -> Problem {
    match (error.kind(), error.journal_error(), &job.kept) {
        (ErrorKind::Paused, _, Some(kept)) => waits::waiting(kept),
        (ErrorKind::Answers, ..) => Problem::from_error(Exit::Usage, error),
        (_, Some(error), Some(kept)) => trouble::session_problem(error, &kept.name.0),
        _ if let Some(Failure::Output { reason }) = error.result().and_then(failure) => {
            unfit(reason)
        }
        _ => model_problem(job, error.model_error(), error),
    }
}

fn failure(result: &RunResult) -> Option<&Failure> {
    match &result.outcome {
        Outcome::Failed { failure } => Some(failure),
        _ => None,
    }
}

/// Returns the problem that no answer matches the schema.
fn unfit(why: &str) -> Problem {
    let problem = Problem::new(Exit::Unfit, "no answer fits the schema").because(why);
    problem.hint("request less, or use a simpler schema or another model")
}

/// Converts an error of a model to a problem.
fn model_problem(
    job: &Job<'_>,
    model: Option<&llm::Error>,
    error: &dyn std::error::Error,
) -> Problem {
    // Failed before a request was sent: a base URL or a key that cannot be used.
    let configured = |error: &llm::Error| {
        error.kind() == llm::ErrorKind::Config && error.details().status.is_none()
    };
    let exit = if model.is_some_and(configured) {
        Exit::Usage
    } else {
        Exit::Failed
    };
    let problem = Problem::from_error(exit, error);
    match model.and_then(|error| job.model.cure(error)) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// Prints the outcome that ended a run before its answer.
fn stopped(job: &Job<'_>, outcome: &Outcome, result: &RunResult, screen: &Screen) {
    match outcome {
        Outcome::Limit { limit } => {
            let text = format!("the run stopped at its limit: {limit} ({})", result.turns);
            Problem::new(Exit::Limit, text)
                .hint("--max-turns sets how many requests a run may make")
                .report();
        }
        Outcome::Cancelled {
            by: CancelBy::Deadline,
        } => late(job),
        Outcome::Cancelled { .. } => screen.tell("cancelled"),
        Outcome::Paused { pauses } => {
            let root = job.how.root.as_deref().unwrap_or(Path::new("."));
            waits::tell(pauses, Some(root), job.kept.as_ref(), screen);
            if job.kept.is_none() {
                screen.tell(
                    "hint: --session NAME keeps the run, so that it can be answered; --mode says what needs no word",
                );
            }
        }
        _ => {}
    }
}

fn late(job: &Job<'_>) {
    let within = job.how.timeout.unwrap_or_default();
    let text = format!("the run did not end within {within:?}");
    Problem::new(Exit::Deadline, text)
        .hint("--timeout sets the time")
        .report();
}

/// Writes the answer as one line.
fn write(job: &Job<'_>, value: &Value, screen: &mut Screen) -> Result<(), Problem> {
    let line = if job.how.json {
        plain::json_line(json!({ "event": "answer", "value": value }))
    } else {
        plain::json_line(value)
    };
    // The run has finished, even if this line has no reader.
    screen::is_read(screen.write(&line))?;
    Ok(())
}

/// Waits until the time of `--timeout` is up; forever without it.
pub(crate) async fn overdue(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
