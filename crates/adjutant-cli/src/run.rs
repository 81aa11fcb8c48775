//! `adjutant run`: one prompt, one agent, one run.

use std::io;

use adjutant::{
    Agent, Cancel, Event, EventKind, Limits, Outcome, RunOptions, Running,
    llm::ErrorKind,
    providers::{Chooser, Chosen, How},
    toolkit::Files,
    tools::Tools,
};

use crate::{
    args::{MaxTurns, Run},
    cure,
    exit::Exit,
    interrupt,
    problem::Problem,
    prompt,
    screen::{Chatter, Screen},
    show::{self, Line, Show},
    summary::summary,
};

/// What the agent is told about itself.
const INSTRUCTIONS: &str = "\
You answer questions about the files of one directory. You can list, read and search them with your tools; you can \
change nothing. Paths are relative to that directory.
Look before you answer: use the tools, and answer from what they return, not from what such directories usually hold. \
Name the files that you rely on. If the files do not hold the answer, say so.";

/// Runs an agent on a prompt.
pub(crate) fn run(args: Run) -> Result<Exit, Problem> {
    let tools = Files::new(&args.root)
        .map_err(|error| Problem::of(Exit::Usage, &error).hint("--root names the directory to work on"))?
        .toolbox();
    let prompt = prompt::read(args.prompt.as_deref(), &args.files)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Exit::Failed, "cannot start the runtime").cause(&error))?;
    let ended = runtime.block_on(perform(&args, prompt, tools));
    // A tool that is still reading a file must not hold up the end.
    runtime.shutdown_background();
    ended
}

async fn perform(args: &Run, prompt: String, tools: Tools) -> Result<Exit, Problem> {
    let chatter = match (args.quiet, args.json) {
        (true, _) => Chatter::None,
        (false, true) => Chatter::Lines,
        (false, false) => Chatter::Spinner,
    };
    let cancel = Cancel::new();
    interrupt::listen(cancel.clone(), chatter)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    let chooser = Chooser::new(|name| std::env::var(name).ok());
    let chosen = tokio::select! {
        chosen = chooser.choose(args.model.as_deref()) => chosen.map_err(|error| Problem::of(Exit::Usage, &error))?,
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
    };
    let mut screen = Screen::new(chatter);
    notice(&chosen).into_iter().for_each(|line| screen.tell(&line));
    let limits = match args.max_turns {
        MaxTurns::AtMost(turns) => Limits::new().max_turns(turns),
        MaxTurns::Unlimited => Limits::new().unlimited_turns(),
    };
    let mut options = RunOptions::new().cancel(cancel);
    if let Some(within) = args.timeout {
        options = options.deadline(within);
    }
    let agent = Agent::new(chosen.model.clone()).instructions(INSTRUCTIONS).toolbox(tools).limits(limits);
    let running = agent.stream_with(prompt, options).map_err(|error| Problem::of(Exit::Usage, &error))?;
    let ended = follow(running, args, &mut screen).await;
    screen.rest();
    let cure = |error: &_| cure::cure(error, &chosen.model.info().id, &chooser.credentials());
    match ended? {
        Followed::Unread => Ok(Exit::Finished),
        Followed::ToEnd(running) => end(*running, args, &screen, cure).await,
    }
}

/// How far a run was followed.
enum Followed {
    /// To its last event.
    ToEnd(Box<Running>),
    /// Until nobody read what was written; the run is cancelled.
    Unread,
}

/// Shows the events of a run as they come.
async fn follow(mut running: Running, args: &Run, screen: &mut Screen) -> Result<Followed, Problem> {
    let mut show = if args.show_thinking { Show::new().with_thinking() } else { Show::new() };
    while let Some(event) = running.next().await {
        let written = if args.json { write_json(&event, screen) } else { write_lines(&event, &mut show, screen) };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Followed::Unread),
            Err(error) => return Err(Problem::new(Exit::Failed, "cannot write to standard output").cause(&error)),
        }
    }
    Ok(Followed::ToEnd(Box::new(running)))
}

fn write_lines(event: &Event, show: &mut Show, screen: &mut Screen) -> io::Result<()> {
    show.event(&event.kind).iter().try_for_each(|line| screen.show(line))
}

fn write_json(event: &Event, screen: &mut Screen) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    screen.write(&line)?;
    match &event.kind {
        EventKind::Warning { warning } => screen.show(&Line::Told(show::of_warning(warning))),
        _ => Ok(()),
    }
}

/// Says how a run ended, and what it took.
async fn end(
    running: Running,
    args: &Run,
    screen: &Screen,
    cure: impl Fn(&adjutant::llm::Error) -> Option<String>,
) -> Result<Exit, Problem> {
    let result = match running.finish().await {
        Ok(result) => result,
        Err(error) => {
            // Wrong before anything was sent: a base URL or a key that cannot be used.
            let configured =
                |error: &adjutant::llm::Error| error.kind() == ErrorKind::Config && error.status().is_none();
            let exit = if error.model_error().is_some_and(configured) { Exit::Usage } else { Exit::Failed };
            let mut problem = Problem::of(exit, &error);
            if let Some(hint) = error.model_error().and_then(cure) {
                problem = problem.hint(hint);
            }
            let exit = problem.report();
            error.result().into_iter().for_each(|result| screen.tell(&summary(result)));
            return Ok(exit);
        }
    };
    let exit = Exit::of(&result.outcome);
    match (&result.outcome, exit) {
        (Outcome::Limit { limit }, _) => {
            let text = format!("the run stopped at its limit: {limit} ({})", result.turns);
            Problem::new(exit, text).hint("--max-turns sets how many requests a run may make").report();
        }
        (_, Exit::Deadline) => {
            let within = args.timeout.unwrap_or_default();
            Problem::new(exit, format!("the run did not end within {within:?}"))
                .hint("--timeout sets the time")
                .report();
        }
        (_, Exit::Cancelled) => screen.tell("cancelled"),
        _ => {}
    }
    screen.tell(&summary(&result));
    Ok(exit)
}

/// How a model came to be chosen, where that was not said on the command line.
fn notice(chosen: &Chosen) -> Option<String> {
    let id = &chosen.model.info().id;
    match &chosen.how {
        How::Asked => None,
        How::Variable => Some(format!("model: {id} (ADJUTANT_MODEL names it)")),
        How::Credential(variable) => Some(format!("model: {id} ({variable} is set)")),
        How::Loopback { server, base_url } => Some(format!("model: {id} ({server} answers at {base_url})")),
        _ => Some(format!(
            "model: {id} (no key and no server on this machine; ANTHROPIC_API_KEY or OPENAI_API_KEY would bring a \
             language model)"
        )),
    }
}
