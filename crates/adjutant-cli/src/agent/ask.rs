//! Prompting running agents.

use std::{path::Path, sync::Arc};

use adjutant::{
    Cancel, EventKind, Outcome, RunResult,
    agent::Failure,
    runtime::{
        Entry, Prompter,
        http::Client,
        prompt::{Control, EventStream, ObjectRequest, PromptRequest, ResumeRequest},
    },
};
use futures_util::StreamExt;

use super::{
    answer,
    place::AgentFolder,
    standing::{self, AgentStanding},
};
use crate::{
    args::agent::{Object, Prompt, This},
    consent::is_on_terminal,
    exit::Exit,
    file,
    follow::View,
    plain,
    problem::Problem,
    prompt,
    run::begin,
    screen::{self, Chatter, Screen, write},
    trouble::runtime_problem,
};

/// Prompts an agent, and writes its answer as it arrives.
pub(super) async fn prompt(args: &Prompt) -> Result<Exit, Problem> {
    let text = prompt::read(args.text.as_deref(), &[], false)?;
    let (entry, client) = connect(&args.this).await?;
    let (cancel, chatter) = begin(args.quiet, args.json)?;
    let mut request = PromptRequest::new(text);
    request.session = args.session.as_deref().map(Arc::from);
    let events = tokio::select! {
        events = client.stream(request) => events.map_err(|error| agent_problem(&entry, &error))?,
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
    };
    // Printed in messages, because ids are unique only within a session.
    let default = || {
        entry
            .resolved
            .manifest
            .sessions
            .default_session
            .clone()
            .unwrap_or_else(|| "main".into())
    };
    let session = args.session.as_deref().map_or_else(default, Arc::from);
    let asking = Asking {
        option: AgentFolder::new(&args.this.homed, Path::new("."))
            .option()
            .to_owned(),
        session: Some(session),
        // A program that reads JSON answers with another command.
        is_on_terminal: !args.json && is_on_terminal(),
        is_json: args.json,
        owns: true,
    };
    converse(&entry, &client, events, &asking, (&cancel, chatter)).await
}

/// The options for following a run, and for answering its questions.
pub(super) struct Asking {
    /// The option that names the directory of agents, for hints.
    pub(super) option: String,
    pub(super) session: Option<Arc<str>>,
    pub(super) is_on_terminal: bool,
    pub(super) is_json: bool,
    /// True if the run is cancelled when this command ends: a prompt needs its result, an answer does not.
    pub(super) owns: bool,
}

/// Follows a run to its end; its questions are answered on the terminal if there is one, and printed otherwise.
pub(super) async fn converse(
    entry: &Entry,
    client: &Client,
    mut events: EventStream,
    asking: &Asking,
    (cancel, chatter): (&Cancel, Chatter),
) -> Result<Exit, Problem> {
    let (mut screen, mut is_owned, mut asks) =
        (Screen::new(chatter), asking.owns, asking.is_on_terminal);
    loop {
        let result = follow(entry, events, asking.is_json, cancel, &mut screen).await;
        screen.rest();
        let result = match result? {
            Followed::Ended(result) => result,
            Followed::Left(Exit::Cancelled) if !asking.owns => {
                screen.tell("the run goes on");
                return Ok(Exit::Cancelled);
            }
            Followed::Left(exit) => {
                // A run that was answered continues after its stream is dropped.
                if exit == Exit::Cancelled {
                    if !is_owned {
                        let stop = client
                            .control(asking.session.as_deref(), Control::Stop {})
                            .await;
                        stop.map_err(|error| agent_problem(entry, &error))?;
                    }
                    screen.tell("cancelled");
                }
                return Ok(exit);
            }
        };
        let Outcome::Paused { pauses } = &result.outcome else {
            return ended(&result, &screen);
        };
        let given = if asks {
            answer::ask(pauses, cancel, &screen).await?
        } else {
            Vec::new()
        };
        if given.is_empty() || cancel.is_cancelled() {
            answer::tell(entry, pauses, asking, &screen);
            return Ok(Exit::Waits);
        }
        // Open questions are not repeated.
        asks = given.len() == pauses.len();
        let mut request = ResumeRequest::new(given);
        request.session.clone_from(&asking.session);
        events = client
            .resume(request)
            .await
            .map_err(|error| agent_problem(entry, &error))?;
        is_owned = false;
    }
}

/// The result of following a run.
enum Followed {
    Ended(Arc<RunResult>),
    /// The result is not needed.
    Left(Exit),
}

async fn follow(
    entry: &Entry,
    mut events: EventStream,
    is_json: bool,
    cancel: &Cancel,
    screen: &mut Screen,
) -> Result<Followed, Problem> {
    let (mut view, mut last) = (View::live(), None);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            // Dropping the stream of a prompt cancels its run.
            () = cancel.cancelled() => return Ok(Followed::Left(Exit::Cancelled)),
        };
        let Some(event) = event else { break };
        let event = event.map_err(|error| agent_problem(entry, &error))?;
        let written = if is_json {
            view.write_json(&event, screen)
        } else {
            view.write_lines(&event, screen)
        };
        if !screen::is_read(written)? {
            return Ok(Followed::Left(Exit::Finished));
        }
        last = Some(event);
    }
    match last.map(|event| event.kind) {
        Some(EventKind::RunFinished { result } | EventKind::RunPaused { result }) => {
            Ok(Followed::Ended(result))
        }
        _ => Err(Problem::new(
            Exit::Failed,
            "the connection ended before the answer",
        )),
    }
}

/// Prints the outcome of the run.
fn ended(result: &RunResult, screen: &Screen) -> Result<Exit, Problem> {
    let exit = Exit::from_outcome(&result.outcome);
    match &result.outcome {
        Outcome::Failed { failure } => return Err(failure_problem(exit, failure)),
        Outcome::Limit { limit } => {
            Problem::new(
                exit,
                format!("the run stopped at its limit: {limit} ({})", result.turns),
            )
            .report();
        }
        Outcome::Cancelled { .. } => screen.tell("cancelled"),
        _ => {}
    }
    Ok(exit)
}

fn failure_problem(exit: Exit, failure: &Failure) -> Problem {
    match failure {
        Failure::Model { error } => Problem::from_error(exit, error),
        Failure::Refused { text } => Problem::new(exit, format!("the model refused: {text}")),
        other => Problem::new(exit, format!("the run failed: {other:?}")),
    }
}

/// Requests an object that matches a schema from an agent.
pub(super) async fn object(args: &Object) -> Result<Exit, Problem> {
    let schema = file::text(&args.schema, "the schema")?;
    let schema = serde_json::from_str(&schema).map_err(|error| {
        Problem::new(
            Exit::Usage,
            format!("cannot use the schema: {}", args.schema.display()),
        )
        .cause(&error)
    })?;
    let text = prompt::read(args.text.as_deref(), &[], false)?;
    let (entry, client) = connect(&args.this).await?;
    let mut request = ObjectRequest::new(text, schema);
    request.session = args.session.as_deref().map(Arc::from);
    let value = client
        .object(request)
        .await
        .map_err(|error| agent_problem(&entry, &error))?;
    write(&plain::json_line(value))?;
    Ok(Exit::Finished)
}

/// Returns a client for an agent.
///
/// # Errors
/// `Usage` if the agent does not exist, or is not running.
pub(super) async fn connect(this: &This) -> Result<(Entry, Client), Problem> {
    let place = AgentFolder::new(&this.homed, Path::new("."));
    let entry = place.find(&this.name)?;
    if !entry
        .workspace
        .is_hosted()
        .map_err(|error| runtime_problem(&error))?
    {
        let standing = AgentStanding::read(&place.home, &entry).await;
        let stands = standing.map_or("removed".to_owned(), |it| it.line(super::reach::now_ms()));
        let problem = Problem::new(
            Exit::Usage,
            format!("the agent {} does not run: it is {stands}", entry.name),
        );
        let command = place.command(&format!("agent start {}", plain::word(&entry.name)));
        return Err(problem.hint(format!("`{command}` starts it")));
    }
    standing::awake(&entry)?;
    let client = standing::client(&entry)?;
    Ok((entry, client))
}

/// An error of a running agent.
pub(super) fn agent_problem(entry: &Entry, error: &adjutant::runtime::Error) -> Problem {
    use adjutant::runtime::ErrorKind::{Agent, Connection};
    match error.kind() {
        Connection => {
            let text = format!("the agent {} does not answer", entry.name);
            // The reason of the lost connection is irrelevant here.
            let why = adjutant::runtime::Error::new(Connection, error.message());
            Problem::new(Exit::Failed, text)
                .cause_of(&why)
                .hint("`adjutant agent ps` shows its state")
        }
        Agent => Problem::from_error(Exit::Failed, error),
        _ => runtime_problem(error),
    }
}
