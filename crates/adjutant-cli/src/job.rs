//! A run in the making: who answers, with which tools, and where it is kept.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use adjutant::{
    Agent, Cancel, Limits, Prompt, RunBuilder,
    context::{Extraction, Memories},
    llm::{FixedWorld, Options, SystemWorld, ToolDecl},
    orchestration::board::Board,
    skills::Skills,
    toolkit::Files,
    tools::Tools,
};
use tokio::time::Instant;

use crate::{
    answer::Answer,
    args::{How, MaxTurns},
    cast::Cast,
    crew::{Crew, Gear, with_tools},
    exit::Exit,
    problem::Problem,
    screen::Screen,
    staff::{self, Staff},
    store::{Store, StoredRun},
    taught,
};

/// What the agent is told about itself.
const INSTRUCTIONS: &str = "\
You answer questions about the files of one directory. You can list, read and search them with your tools; you can \
change nothing. Paths are relative to that directory.
Look before you answer: use the tools, and answer from what they return, not from what such directories usually hold. \
Name the files that you rely on. If the files do not hold the answer, say so.";

/// What an agent works with, whoever answers.
#[derive(Debug)]
pub(crate) struct Kit {
    tools: Tools,
    answer: Option<Answer>,
    asked: BTreeSet<String>,
    skills: Skills,
    staff: Staff,
    crew: Crew,
}

/// A run in the making: what it is made of, and what is needed when it has ended.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) how: &'a How,
    pub(crate) cast: Cast,
    pub(crate) answer: Option<Answer>,
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[ToolDecl]>,
    pub(crate) options: Options,
    pub(crate) agent: Agent,
    pub(crate) cancel: Cancel,
    /// When everything must have ended.
    pub(crate) until: Option<Instant>,
    pub(crate) kept: Option<StoredRun>,
    /// Whether something adds to the system prompt and to the tools.
    pub(crate) is_extended: bool,
    crew: Crew,
    gear: Gear,
}

impl Kit {
    /// The tools of a directory, its skills, and the schema of the answer.
    pub(crate) fn new(how: &How, root: &Path) -> Result<Self, Problem> {
        let files = Files::new(root);
        let tools = files
            .map_err(|error| Problem::of(Exit::Usage, &error).hint("--root names the directory to work on"))?
            .toolbox();
        let answer = how.schema.as_deref().map(Answer::read).transpose()?;
        let skills = taught::find(&how.taught, root)?;
        let staff = staff::find(&how.staffed, &how.taught, root)?;
        let crew = Crew::new(&how.staffed, &staff, &skills)?;
        Self { tools, answer, asked: BTreeSet::new(), skills, staff, crew }.asking(how.ask.iter().cloned())
    }

    /// Lets calls of these tools wait for approval too.
    ///
    /// # Errors
    /// `Usage` if there is no such tool.
    pub(crate) fn asking(mut self, names: impl IntoIterator<Item = String>) -> Result<Self, Problem> {
        for name in names {
            if self.tools.names().all(|known| known.as_str() != name) {
                let known: Vec<&str> = self.tools.names().map(|known| known.as_str()).collect();
                let problem = Problem::new(Exit::Usage, format!("no tool has this name: {name}"));
                return Err(problem.hint(format!("the tools are {}", known.join(", "))));
            }
            self.asked.insert(name);
        }
        Ok(self)
    }

    /// Tells what is wrong or noteworthy with skills and agents.
    pub(crate) fn tell(&self, screen: &Screen) {
        taught::tell(&self.skills, screen);
        self.staff.tell(screen);
    }

    /// The agents of the run.
    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// The tools whose calls wait for approval.
    pub(crate) fn asked(&self) -> &BTreeSet<String> {
        &self.asked
    }
}

impl<'a> Job<'a> {
    pub(crate) fn new(how: &'a How, kit: Kit, cast: Cast, cancel: Cancel) -> Self {
        let Kit { tools, answer, asked, skills, crew, .. } = kit;
        let mut options = Options::new();
        options.thinking = how.thinking;
        let gear = Gear { files: tools.clone(), asked: asked.clone(), options: options.clone() };
        let lead = crew.lead.as_ref();
        let (tools, skills) = match lead {
            Some(lead) => (Some(tools).filter(|_| lead.has_files()), lead.skills.clone()),
            None => (Some(tools), skills),
        };
        let mut system = lead.map_or(INSTRUCTIONS, |lead| &lead.definition.instructions).to_owned();
        if let Some(answer) = &answer {
            options = answer.options(options, &*cast.model);
            system = format!("{system}\n\n{}", answer.instructions());
        }
        let system: Arc<str> = system.into();
        let decls = tools.as_ref().map(|tools| Arc::clone(tools.toolset().decls())).unwrap_or_default();
        let mut agent = Agent::new(Arc::clone(&cast.model)).name(crew.name()).instructions(Arc::clone(&system));
        agent = agent.options(options.clone()).limits(limits(how, lead.and_then(|lead| lead.definition.max_turns)));
        if let Some(tools) = tools {
            agent = with_tools(agent, tools, asked);
        }
        agent = skills.install(agent);
        if cast.is_played() {
            // So that two replays give the same events.
            agent = agent.world(FixedWorld::at_ms(0));
        }
        // A clock that stands still knows no deadline.
        let within = how.timeout.filter(|_| !cast.is_played());
        let until = within.and_then(|within| Instant::now().checked_add(within));
        Self {
            how,
            cast,
            answer,
            system,
            tools: decls,
            options,
            agent,
            cancel,
            until,
            kept: None,
            is_extended: !skills.is_empty() || !crew.is_alone(),
            crew,
            gear,
        }
    }

    /// Lets the agent give tasks to others, and work on a board; the store is where the board is.
    ///
    /// # Errors
    /// `Usage` if the store has no board, or if the model of an agent cannot be used.
    pub(crate) fn crewed(self, store: Option<&Store>) -> Result<Self, Problem> {
        let board = match (self.crew.board(), store) {
            (Some(name), Some(store)) => Some(Board::new(store.board(name)?, Arc::new(SystemWorld))),
            _ => None,
        };
        let agent = self.crew.install(self.agent, board.as_ref(), &self.gear, &self.cast)?;
        Ok(Self { agent, ..self })
    }

    /// Keeps the run in a session, if there is one.
    pub(crate) fn kept(mut self, kept: Option<StoredRun>) -> Self {
        if let Some(StoredRun { store, name }) = &kept {
            let mut agent = store.keeps(self.agent).session(name.clone());
            if let Some(survives) = self.how.durability {
                agent = agent.durability(survives.into());
            }
            self.agent = if self.how.take_over { agent.take_over() } else { agent };
        }
        Self { kept, ..self }
    }

    /// Recalls what is remembered, and remembers what is learned.
    ///
    /// # Errors
    /// `Usage` if the store has no memory, or if the model is no language model.
    pub(crate) fn remembering(self, store: Option<&Store>) -> Result<Self, Problem> {
        let (Some(owner), Some(store)) = (&self.how.memory, store) else { return Ok(self) };
        if self.cast.is_planner() {
            let problem = Problem::new(Exit::Usage, "the planner is no language model: it learns nothing");
            return Err(problem.hint("--model names a language model; without one, leave --memory out"));
        }
        let memories = Memories::new(store.memory()?, owner.as_str()).model(Arc::clone(&self.cast.model));
        let agent = self.agent.middleware(memories.extract(Extraction::Awaited)).effect(memories.recall());
        Ok(Self { agent, ..self })
    }

    /// Lets go of the session.
    pub(crate) async fn close(self) {
        drop(self.agent);
        if let Some(kept) = self.kept {
            kept.store.settle(&kept.name).await;
        }
    }

    /// A run that begins now.
    pub(crate) fn run(&self, prompt: Prompt) -> RunBuilder {
        let run = self.agent.run(prompt).cancel(self.cancel.clone());
        match (self.until, self.how.timeout) {
            (Some(_), Some(within)) => run.deadline(within),
            _ => run,
        }
    }
}

/// The smaller of what the command line and the file of the agent say.
fn limits(how: &How, own: Option<u32>) -> Limits {
    match (how.max_turns, own) {
        (MaxTurns::AtMost(turns), own) => Limits::new().max_turns(own.map_or(turns, |own| own.min(turns))),
        (MaxTurns::Unlimited, Some(own)) => Limits::new().max_turns(own),
        (MaxTurns::Unlimited, None) => Limits::new().unlimited_turns(),
    }
}
