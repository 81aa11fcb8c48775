//! Lists the calls that a session would repeat, and the differences of current requests; runs nothing.

use std::{fmt::Write as _, sync::Arc};

use adjutant::{
    Cancel,
    agent::{Difference, ResumeAction, Run},
    llm::{ChunkStream, Error, ErrorKind, ModelInfo, Request, model_fn},
};
use futures_util::stream;

use crate::{
    args::How, chooser, chosen_model::ChosenModel, exit::Exit, job::Job, plain, problem::Problem,
    run_manifest::RunManifest, screen, store::StoredRun, waits,
};

/// The maximum number of characters of a value.
const MAX_VALUE: usize = 60;

/// Prints the calls that would be repeated if the session continued.
pub(crate) async fn explain(
    how: &How,
    made: RunManifest,
    kept: &StoredRun,
    run: &Run,
) -> Result<Exit, Problem> {
    let job = silent(how, made, kept).await?;
    let reruns = job
        .agent
        .log()
        .explain()
        .await
        .map_err(|error| Problem::from_error(Exit::Failed, &error))?;
    let mut text = String::new();
    if !run.is_open() {
        text += "no run is open: nothing would be done again\n";
    }
    for rerun in reruns {
        let line = match &rerun.redo {
            ResumeAction::Wait { pause } => {
                let [thread, id] = [&*rerun.thread.to_string(), &pause.id.0].map(plain::whole);
                format!("{thread}: {id} waits: {}", waits::about(pause))
            }
            _ => plain::line(&rerun.to_string()),
        };
        let _ = writeln!(text, "{line}");
    }
    if let Some(recorded) = run.config() {
        let now = job
            .agent
            .log()
            .config()
            .await
            .map_err(|error| Problem::from_error(Exit::Failed, &error))?;
        for difference in recorded.differences(&now) {
            let _ = writeln!(text, "differs: {}", line(&difference));
        }
    }
    screen::write(&text)?;
    Ok(Exit::Finished)
}

/// Formats a different field in one line.
pub(crate) fn line(difference: &Difference) -> String {
    let value = |value: &Option<Arc<str>>| match value {
        Some(value) => plain::line(&value.chars().take(MAX_VALUE).collect::<String>()),
        None => "nothing".to_owned(),
    };
    format!(
        "{}: was {}, is {}",
        plain::line(&difference.field),
        value(&difference.recorded),
        value(&difference.now)
    )
}

/// Creates a job with only the name of a model: it makes no calls, and needs no key.
pub(crate) async fn silent<'a>(
    how: &'a How,
    mut made: RunManifest,
    kept: &StoredRun,
) -> Result<Job<'a>, Problem> {
    let name = how.models.first().map_or("offline/planner", String::as_str);
    let chooser = chooser::chooser()?;
    let known = chooser
        .models()
        .find(|info| info.id.as_str() == name)
        .cloned();
    let info = known.unwrap_or_else(|| ModelInfo::unknown(name));
    // A read-only command has no memory.
    made.manifest.memory = None;
    let model = ChosenModel::alone(Arc::new(model_fn(info, refuse)));
    Job::new(
        how,
        made,
        model,
        Cancel::new(),
        Some(&kept.store),
        Some(kept.clone()),
    )
    .await
}

fn refuse(_: Request) -> ChunkStream {
    Box::pin(stream::iter([Err(Error::new(
        ErrorKind::Config,
        "this model is only a name",
    ))]))
}
