//! An agent: shared configuration and one session.

mod calls;
mod child;
mod delegate;
mod explain;
mod factory;
mod post;
mod preview;
mod queue;
mod resume;
mod snapshot;
mod turns;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use adjutant_core::{Durability, Error, Journal, Limits, LogId, MemoryJournal, Responder, RunOptions, RunResult};
use adjutant_llm::{Custom, Entry, Model, Options, Transcript, UserMessage, World, telemetry::Contents};
use adjutant_tool::{ErasedTool, Identity, Toolbox};
use serde_json::Value;

use crate::{
    begin::Begin,
    effect::Effect,
    hooks::{Hook, Hooks, Point},
    instructions::Instructions,
    middleware::Middleware,
    prompt::Prompt,
    running::Running,
    sections::{Section, Sections},
    session::{Session, Start},
    setup::Setup,
};

pub use delegate::agent_tool;
pub use factory::{AgentFactory, MemberRun, OpenedAgent};

/// An agent: shared configuration and one session; cheap to clone, and clones share the session.
///
/// A second run continues the conversation. Setters change this handle, not clones that were made before.
#[derive(Clone)]
pub struct Agent {
    setup: Arc<Setup>,
    limits: Limits,
    /// Without one, a session is kept in memory as long as someone holds it.
    journal: Option<Arc<dyn Journal>>,
    session: Arc<Session>,
}

impl Agent {
    /// An agent with this model, without tools and instructions, in a new session that lives in memory.
    pub fn new(model: impl Model + 'static) -> Self {
        let mut setup = Setup::new(model);
        let (id, journal) = (new_id(&*setup.world), Arc::new(MemoryJournal::new()));
        Arc::make_mut(&mut setup.who).agent_id = Arc::clone(&id);
        Self {
            setup: Arc::new(setup),
            limits: Limits::new(),
            journal: None,
            session: Arc::new(Session::new(LogId(id), journal)),
        }
    }

    /// Sets the agent's name; `agent` without it.
    #[must_use]
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        let old = Arc::clone(&self.setup.who);
        let who = Identity::root(old.thread.clone(), Arc::clone(&old.agent_id), name);
        self.with(|setup| setup.who(who))
    }

    /// Changes who the agent is: the names of an instance, its task, its prefix.
    #[must_use]
    pub fn identify(self, change: impl FnOnce(&mut Identity)) -> Self {
        let mut who = Identity::clone(&self.setup.who);
        change(&mut who);
        self.with(|setup| setup.who(who))
    }

    /// Sets the instructions: a text, which is the system prompt exactly, a template, or what a source says at each start.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<Instructions>) -> Self {
        self.with(|setup| setup.instructions(instructions))
    }

    /// Adds a section of the system prompt, after those that are there.
    #[must_use]
    pub fn section(self, section: impl Section + 'static) -> Self {
        self.with(|setup| setup.section(section))
    }

    /// Adds the sections that a component registers, and what it says about them.
    #[must_use]
    pub fn sections(self, sections: &Sections) -> Self {
        self.with(|setup| setup.sections(sections))
    }

    /// Sets what instructions and sections know by a name.
    #[must_use]
    pub fn state(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(|setup| setup.state(name, value))
    }

    /// Sets how the model should answer.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        self.with(|setup| setup.options(options))
    }

    /// Adds a tool; the first one of a name stays.
    #[must_use]
    pub fn tool(mut self, tool: impl ErasedTool + 'static) -> Self {
        Arc::make_mut(&mut self.setup).add_tool(tool);
        self
    }

    /// Adds a toolbox, after the single tools.
    #[must_use]
    pub fn toolbox(self, toolbox: impl Toolbox + 'static) -> Self {
        self.with(|setup| setup.toolbox(toolbox))
    }

    /// Sets the model of later runs.
    #[must_use]
    pub fn model(self, model: impl Model + 'static) -> Self {
        self.with(|setup| setup.model(model))
    }

    /// Adds a model that a turn may change to, by its id.
    #[must_use]
    pub fn alternative(self, model: impl Model + 'static) -> Self {
        self.with(|setup| setup.alternative(model))
    }

    /// Adds an effect, after those that are there.
    #[must_use]
    pub fn effect(self, effect: impl Effect + 'static) -> Self {
        self.with(|setup| setup.effect(effect))
    }

    /// Sets the hooks.
    #[must_use]
    pub fn hooks(self, hooks: Hooks) -> Self {
        self.with(|setup| setup.hooks(hooks))
    }

    /// Adds a hook, after those that are there; the type of its point says where it stands.
    #[must_use]
    pub fn on<P: Point>(self, hook: impl Hook<P> + 'static) -> Self {
        self.with(|setup| setup.on(hook))
    }

    /// Adds a middleware, inside those that are there.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware + 'static) -> Self {
        self.with(|setup| setup.middleware(middleware))
    }

    /// Sets what the model is shown of the application's own entries; those that give `None` stay hidden.
    ///
    /// What an entry becomes is recorded when the first request after it is made, and stays.
    #[must_use]
    pub fn convert(self, convert: impl Fn(&Custom) -> Option<UserMessage> + Send + Sync + 'static) -> Self {
        self.with(|setup| setup.convert(convert))
    }

    /// Sets who answers in place what a run waits for.
    #[must_use]
    pub fn responder(self, responder: impl Responder + 'static) -> Self {
        self.with(|setup| setup.responder(responder))
    }

    /// Sets the limits of every run: turns, parallel calls.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many requests one run may make; 50 without it.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.limits = self.limits.max_turns(turns);
        self
    }

    /// Lowers how many requests one run may make; a number above what it may make already changes nothing.
    #[must_use]
    pub fn cap_turns(self, turns: u32) -> Self {
        let most = self.limits.max_turns.map_or(turns, |most| most.min(turns));
        self.max_turns(most)
    }

    /// Sets how long one call may take, unless its tool says otherwise; 10 minutes without it.
    #[must_use]
    pub fn tool_timeout(self, timeout: Duration) -> Self {
        self.with(|setup| setup.tool_timeout(timeout))
    }

    /// Sets how long a cancelled call may take to end well; 2 seconds without it.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.with(|setup| setup.grace(grace))
    }

    /// Sets how many bytes of text one result may put into the context; 100,000 without it.
    #[must_use]
    pub fn max_result_bytes(self, bytes: usize) -> Self {
        self.with(|setup| setup.max_result_bytes(bytes))
    }

    /// Sets whether spans of calls hold arguments and results; they do not without it.
    #[must_use]
    pub fn traced_contents(self, contents: Contents) -> Self {
        self.with(|setup| setup.traced_contents(contents))
    }

    /// Sets clock, ids and chance, and begins a new session with an id of that world.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        self.with(|setup| setup.world(world)).new_session()
    }

    /// Sets where sessions are kept, and begins a new one there; without it, in memory as long as it is held.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal + 'static) -> Self {
        self.journal = Some(Arc::new(journal));
        self.new_session()
    }

    /// Sets what the records of later runs survive; a crash of the machine without it.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.with(|setup| setup.durability(durability))
    }

    /// The same agent in a new, empty session.
    #[must_use]
    pub fn new_session(&self) -> Self {
        let id = new_id(&*self.setup.world);
        let mut setup = Setup::clone(&self.setup);
        Arc::make_mut(&mut setup.who).agent_id = Arc::clone(&id);
        let (limits, journal) = (self.limits.clone(), self.journal.clone());
        let session = Arc::new(Session::new(LogId(id), self.journal_of_session()));
        Self { setup: Arc::new(setup), limits, journal, session }
    }

    /// The same agent in the session of that log; what its journal holds is read when the first run begins.
    #[must_use]
    pub fn session(&self, log: LogId) -> Self {
        Self { session: Arc::new(Session::new(log, self.journal_of_session())), ..self.clone() }
    }

    /// The same agent in the same session, taking its log from whoever has it: another process, or another agent here.
    ///
    /// Whoever had it is fenced: nothing that it does is recorded any more.
    #[must_use]
    pub fn take_over(&self) -> Self {
        let session = Session::new(self.session.id().clone(), Arc::clone(self.session.journal())).taking_over();
        Self { session: Arc::new(session), ..self.clone() }
    }

    /// The same agent in the session of another one, whose conversation it continues with its own configuration.
    ///
    /// One of them runs at a time, and both see what the other has said.
    #[must_use]
    pub fn in_session_of(&self, other: &Agent) -> Self {
        Self { session: Arc::clone(&other.session), journal: other.journal.clone(), ..self.clone() }
    }

    /// The log of the session.
    pub fn session_id(&self) -> &LogId {
        self.session.id()
    }

    /// Who the agent is.
    pub fn identity(&self) -> &Identity {
        &self.setup.who
    }

    /// Everything that was said in the session, as of the newest run that ended.
    pub fn transcript(&self) -> Transcript {
        self.session.history()
    }

    /// Runs the agent to the end of its answer: a collect over [`stream`](Agent::stream).
    ///
    /// Cancel: the run is cancelled; its turn is closed in the background.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Prompt` if the prompt is empty, `Failed` if the run failed (the error holds
    /// its result), `Journal` if the log could not be used. Limits and cancels are outcomes, not errors.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<RunResult, Error> {
        self.stream(prompt)?.finish().await
    }

    /// Runs the agent, with options of this run.
    ///
    /// # Errors
    /// Like [`run`](Agent::run).
    pub async fn run_with(&self, prompt: impl Into<Prompt>, options: RunOptions) -> Result<RunResult, Error> {
        self.stream_with(prompt, options)?.finish().await
    }

    /// Runs the agent as a stream of events.
    ///
    /// # Errors
    /// `Busy` if the session is running, `Prompt` if the prompt is empty. How the run ends is its last event.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> Result<Running, Error> {
        self.stream_with(prompt, RunOptions::new())
    }

    /// Runs the agent as a stream of events, with options of this run.
    ///
    /// # Errors
    /// Like [`stream`](Agent::stream).
    pub fn stream_with(&self, prompt: impl Into<Prompt>, options: RunOptions) -> Result<Running, Error> {
        let prompts = prompt.into().checked()?;
        self.begin(prompts, options)
    }

    /// Begins a run; without prompts it goes on with what is there.
    fn begin(&self, prompts: Vec<Entry>, options: RunOptions) -> Result<Running, Error> {
        let claim = self.session.claim()?;
        let mut limits = self.limits.clone();
        limits.max_turns = options.max_turns.unwrap_or(limits.max_turns);
        if let Some(within) = options.deadline {
            let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
            limits.deadline_ms = Some(self.setup.world.now_ms().saturating_add(within));
        }
        let mut setup = Arc::clone(&self.setup);
        if let Some(model) = options.model {
            Arc::make_mut(&mut setup).model = model;
        }
        if !options.state.is_empty() {
            Arc::make_mut(&mut Arc::make_mut(&mut setup).state).extend(options.state);
        }
        let begin = Begin::Run { prompts, limits };
        let start = Start { setup, session: Arc::clone(&self.session), begin, cancel: options.cancel };
        Ok(Running::new(start, claim))
    }

    fn journal_of_session(&self) -> Arc<dyn Journal> {
        self.journal.clone().unwrap_or_else(|| Arc::new(MemoryJournal::new()))
    }

    fn with(mut self, change: impl FnOnce(Setup) -> Setup) -> Self {
        self.setup = Arc::new(change(Arc::unwrap_or_clone(self.setup)));
        self
    }
}

/// An id that no session had before, as 32 hexadecimal digits.
fn new_id(world: &dyn World) -> Arc<str> {
    let id = world.id();
    let digit = |at: u32| char::from_digit((id >> (124 - 4 * at)) as u32 & 15, 16).unwrap_or('0') as u8;
    let digits: [u8; 32] = std::array::from_fn(|at| digit(at as u32));
    std::str::from_utf8(&digits).unwrap_or_default().into()
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("setup", &self.setup).field("session", self.session.id()).finish_non_exhaustive()
    }
}
