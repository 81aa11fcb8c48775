//! The end of a run: what is said about it, the answer by a schema, and the exit code.

use std::{path::Path, sync::Arc};

use adjutant::{
    CancelBy, ErrorKind, Outcome, RunResult, Running,
    llm::{self, Shaped, Violation},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    answer::{Answer, AnswerRequest},
    exit::Exit,
    job::Job,
    meter::{Meter, Spent},
    plain,
    problem::Problem,
    screen::{self, Screen},
    summary::Took,
    trouble, waits,
};

/// Says how a run ended, gives the answer by a schema if one is wished, and says what everything took.
pub(crate) async fn end(running: Running, job: &Job<'_>, screen: &mut Screen) -> Result<Exit, Problem> {
    let result = match running.finish().await {
        Ok(result) => result,
        Err(error) => {
            let exit = failed(job, &error).report();
            error.result().into_iter().for_each(|result| screen.tell(&Took::of(result).to_string()));
            return Ok(exit);
        }
    };
    let (exit, took) = match (&result.outcome, &job.answer) {
        (Outcome::Finished { .. }, Some(answer)) => answered(job, answer, &result, screen).await?,
        (outcome, _) => {
            stopped(job, outcome, &result, screen);
            (Exit::of(outcome), Took::of(&result))
        }
    };
    if job.model.left() > 0 {
        screen.tell(&format!("warning: {} exchanges of the cassette were not played", job.model.left()));
    }
    screen.tell(&took.to_string());
    Ok(exit)
}

/// The problem that an error of a run is.
pub(crate) fn failed(job: &Job<'_>, error: &adjutant::Error) -> Problem {
    match (error.kind(), error.journal_error(), &job.kept) {
        (ErrorKind::Paused, _, Some(kept)) => waits::waiting(kept),
        (ErrorKind::Answers, ..) => Problem::of(Exit::Usage, error),
        (_, Some(error), Some(kept)) => trouble::of_session(error, &kept.name.0),
        _ => of_model(job, error.model_error(), error),
    }
}

/// The problem that an error of a model is.
fn of_model(job: &Job<'_>, model: Option<&llm::Error>, error: &dyn std::error::Error) -> Problem {
    // Wrong before anything was sent: a base URL or a key that cannot be used.
    let configured = |error: &llm::Error| error.kind() == llm::ErrorKind::Config && error.details().status.is_none();
    let exit = if model.is_some_and(configured) { Exit::Usage } else { Exit::Failed };
    let problem = Problem::of(exit, error);
    match model.and_then(|error| job.model.cure(error)) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// Says what ended a run before its answer.
fn stopped(job: &Job<'_>, outcome: &Outcome, result: &RunResult, screen: &Screen) {
    match outcome {
        Outcome::Limit { limit } => {
            let text = format!("the run stopped at its limit: {limit} ({})", result.turns);
            Problem::new(Exit::Limit, text).hint("--max-turns sets how many requests a run may make").report();
        }
        Outcome::Cancelled { by: CancelBy::Deadline } => late(job),
        Outcome::Cancelled { .. } => screen.tell("cancelled"),
        Outcome::Paused { pauses } => {
            let root = job.how.root.as_deref().unwrap_or(Path::new("."));
            waits::tell(pauses, Some(root), job.kept.as_ref(), screen);
        }
        _ => {}
    }
}

fn late(job: &Job<'_>) {
    let within = job.how.timeout.unwrap_or_default();
    let text = format!("the run did not end within {within:?}");
    Problem::new(Exit::Deadline, text).hint("--timeout sets the time").report();
}

/// Writes the answer that fits the schema; asks for it if the run did not end in it.
async fn answered(
    job: &Job<'_>,
    answer: &Answer,
    result: &RunResult,
    screen: &mut Screen,
) -> Result<(Exit, Took), Problem> {
    let meter = Meter::new(Arc::clone(&job.model.model));
    let exit = match answer.find(&result.text()) {
        Ok(value) => write(job, &value, meter.spent(), screen)?,
        Err(wrong) => {
            screen.tell("the answer does not fit the schema, and is asked for again");
            screen.wait("waiting for the model");
            let asked = ask(job, answer, &meter, &wrong).await;
            screen.rest();
            match asked {
                Ok(shaped) => write(job, &shaped.value, meter.spent(), screen)?,
                Err(Unanswered::Run(error)) => failed(job, &error).report(),
                Err(Unanswered::Model(error)) => unfit(job, &error),
                Err(Unanswered::Cancelled) => {
                    screen.tell("cancelled");
                    Exit::Cancelled
                }
                Err(Unanswered::Late) => {
                    late(job);
                    Exit::Deadline
                }
            }
        }
    };
    Ok((exit, Took::of(result).and(meter.spent())))
}

/// The reason why an answer did not come.
enum Unanswered {
    Run(adjutant::Error),
    Model(llm::Error),
    Cancelled,
    Late,
}

/// Asks for the answer by itself, unless someone wishes to stop or the time is up.
async fn ask(job: &Job<'_>, answer: &Answer, meter: &Meter, wrong: &[Violation]) -> Result<Shaped<Value>, Unanswered> {
    // The parts that the engine, skills and agents add stand in every request of the run.
    let request = job.agent.log().preview(llm::UserMessage::text("What is the answer?")).await;
    let llm::Request { system, tools, .. } = request.map_err(Unanswered::Run)?;
    let asked = AnswerRequest { system, tools, entries: job.agent.log().transcript(), options: job.options.clone() };
    tokio::select! {
        shaped = answer.ask(meter, asked, wrong) => shaped.map_err(Unanswered::Model),
        () = job.cancel.cancelled() => Err(Unanswered::Cancelled),
        () = overdue(job.until) => Err(Unanswered::Late),
    }
}

/// Says why there is no answer.
fn unfit(job: &Job<'_>, error: &llm::Error) -> Exit {
    match error.kind() {
        llm::ErrorKind::Protocol | llm::ErrorKind::Invalid if job.model.cure(error).is_none() => {
            let problem = Problem::new(Exit::Unfit, "no answer fits the schema").cause(error);
            problem.hint("ask for less, take a simpler schema, or another model").report()
        }
        _ => of_model(job, Some(error), error).report(),
    }
}

/// Writes the answer as one line.
fn write(job: &Job<'_>, value: &Value, spent: Spent, screen: &mut Screen) -> Result<Exit, Problem> {
    let Spent { requests, usage, cost } = spent;
    let line = if job.how.json {
        plain::json_line(json!({
            "event": "answer", "value": value, "requests": requests, "usage": usage, "cost": cost,
        }))
    } else {
        plain::json_line(value)
    };
    // The run has finished, even if nobody reads this line.
    screen::is_read(screen.write(&line))?;
    Ok(Exit::Finished)
}

/// Waits until the time of `--timeout` is up; for ever without it.
pub(crate) async fn overdue(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
