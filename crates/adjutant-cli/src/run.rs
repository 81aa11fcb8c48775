//! `adjutant run`: one prompt, one agent, one run.

use std::{io, sync::Arc};

use adjutant::{
    Agent, Cancel, Event, EventKind, Limits, RunOptions, Running,
    llm::{FixedWorld, Options, ToolDecl},
    toolkit::Files,
    tools::Tools,
};
use tokio::time::Instant;

use crate::{
    answer::Answer,
    args::{MaxTurns, Run},
    cast::Cast,
    ending,
    exit::Exit,
    interrupt,
    problem::Problem,
    prompt,
    screen::{self, Chatter, Screen},
    show::{self, Line, Said, Show},
};

/// What the agent is told about itself.
const INSTRUCTIONS: &str = "\
You answer questions about the files of one directory. You can list, read and search them with your tools; you can \
change nothing. Paths are relative to that directory.
Look before you answer: use the tools, and answer from what they return, not from what such directories usually hold. \
Name the files that you rely on. If the files do not hold the answer, say so.";

/// A run in the making: what it is made of, and what is needed when it has ended.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) args: &'a Run,
    pub(crate) cast: Cast,
    pub(crate) answer: Option<Answer>,
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[ToolDecl]>,
    pub(crate) options: Options,
    pub(crate) agent: Agent,
    pub(crate) cancel: Cancel,
    /// When everything must have ended.
    pub(crate) until: Option<Instant>,
}

/// Runs an agent on a prompt.
pub(crate) fn run(args: Run) -> Result<Exit, Problem> {
    let tools = Files::new(&args.root)
        .map_err(|error| Problem::of(Exit::Usage, &error).hint("--root names the directory to work on"))?
        .toolbox();
    let answer = args.schema.as_deref().map(Answer::read).transpose()?;
    let prompt = prompt::read(args.prompt.as_deref(), &args.files)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Exit::Failed, "cannot start the runtime").cause(&error))?;
    let ended = runtime.block_on(perform(&args, prompt, tools, answer));
    // A tool that is still reading a file must not hold up the end.
    runtime.shutdown_background();
    ended
}

async fn perform(args: &Run, prompt: String, tools: Tools, answer: Option<Answer>) -> Result<Exit, Problem> {
    let chatter = match (args.quiet, args.json) {
        (true, _) => Chatter::None,
        (false, true) => Chatter::Lines,
        (false, false) => Chatter::Spinner,
    };
    let cancel = Cancel::new();
    interrupt::listen(cancel.clone(), chatter)
        .map_err(|error| Problem::new(Exit::Failed, "cannot listen for Ctrl-C").cause(&error))?;
    let cast = tokio::select! {
        cast = Cast::new(args) => cast?,
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
    };
    let mut screen = Screen::new(chatter);
    cast.notice.iter().for_each(|line| screen.tell(line));
    let job = Job::new(args, cast, tools, answer, cancel);
    let running = job.start(prompt)?;
    let ended = follow(running, args, &mut screen).await;
    screen.rest();
    match ended? {
        Followed::Unread => Ok(Exit::Finished),
        Followed::ToEnd(running) => ending::end(*running, &job, &mut screen).await,
    }
}

impl<'a> Job<'a> {
    fn new(args: &'a Run, cast: Cast, tools: Tools, answer: Option<Answer>, cancel: Cancel) -> Self {
        let mut options = Options::new();
        options.thinking = args.thinking;
        let mut system = INSTRUCTIONS.to_owned();
        if let Some(answer) = &answer {
            options = answer.options(options, &*cast.model);
            system = format!("{system}\n\n{}", answer.instructions());
        }
        let limits = match args.max_turns {
            MaxTurns::AtMost(turns) => Limits::new().max_turns(turns),
            MaxTurns::Unlimited => Limits::new().unlimited_turns(),
        };
        let (system, decls): (Arc<str>, _) = (system.into(), Arc::clone(tools.toolset().decls()));
        let mut agent = Agent::new(Arc::clone(&cast.model)).instructions(Arc::clone(&system)).toolbox(tools);
        agent = agent.options(options.clone()).limits(limits);
        if cast.is_played() {
            // So that two replays give the same events.
            agent = agent.world(FixedWorld::at_ms(0));
        }
        // A clock that stands still knows no deadline.
        let within = args.timeout.filter(|_| !cast.is_played());
        let until = within.and_then(|within| Instant::now().checked_add(within));
        Self { args, cast, answer, system, tools: decls, options, agent, cancel, until }
    }

    fn start(&self, prompt: String) -> Result<Running, Problem> {
        let mut options = RunOptions::new().cancel(self.cancel.clone());
        if let (Some(_), Some(within)) = (self.until, self.args.timeout) {
            options = options.deadline(within);
        }
        self.agent.stream_with(prompt, options).map_err(|error| Problem::of(Exit::Usage, &error))
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
    let said = match (args.last, &args.schema) {
        (true, _) => Said::Last,
        (false, Some(_)) => Said::Nothing,
        (false, None) => Said::Live,
    };
    let mut show = Show::new(said);
    if args.show_thinking {
        show = show.with_thinking();
    }
    while let Some(event) = running.next().await {
        let written = if args.json { write_json(&event, screen) } else { write_lines(&event, &mut show, screen) };
        if !screen::is_read(written)? {
            return Ok(Followed::Unread);
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
