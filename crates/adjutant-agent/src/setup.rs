//! Setup of an executor.

mod call_options;
mod parent_link;
mod policy;
mod prints;
mod standstill;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, LazyLock},
};

use adjutant_llm::{Custom, Model, ModelId, Options, SystemWorld, ThreadId, UserMessage, World};
use adjutant_tool::{Answer, ErasedTool, Identity, Toolbox, Tools};
use serde_json::{Map, Value};

pub use call_options::CallOptions;
pub(crate) use parent_link::ParentLink;
pub(crate) use policy::Policy;
pub(crate) use prints::{Parts, Print, Prints};
pub(crate) use standstill::Standstill;

use crate::{
    effect::Effect,
    floor::Floor,
    hooks::{Hook, Hooks, Point},
    instructions::Instructions,
    middleware::Middleware,
    output::Goal,
    queue::Drains,
    sections::{Section, Sections},
};
use adjutant_core::{Durability, Error, Pause};

/// The setup of an executor: model, tools, prompt and limits of single acts.
#[derive(Clone)]
pub struct Setup {
    pub(crate) model: Arc<dyn Model>,
    /// The system prompt, if it is known without a call.
    pub(crate) system: Arc<str>,
    pub(crate) instructions: Instructions,
    pub(crate) sections: Sections,
    pub(crate) state: Arc<Map<String, Value>>,
    pub(crate) options: Arc<Options>,
    pub(crate) tools: Tools,
    pub(crate) toolboxes: Vec<Arc<dyn Toolbox>>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) who: Arc<Identity>,
    pub(crate) calls: CallOptions,
    /// Other models that a turn may change to, by their ids.
    pub(crate) models: Arc<[Arc<dyn Model>]>,
    pub(crate) effects: Vec<Arc<dyn Effect>>,
    pub(crate) floor: Floor,
    pub(crate) hooks: Hooks,
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) responder: Option<Arc<Responder>>,
    /// The conversion that shows the application's own entries to the model.
    pub(crate) convert: Option<Arc<Convert>>,
    pub(crate) policy: Policy,
    pub(crate) drains: Drains,
    pub(crate) durability: Durability,
    /// The newest fingerprint that was made; shared by all setups that come from this one.
    pub(crate) prints: Arc<Prints>,
    /// True if the instructions in the log of a run are ignored when it is resumed.
    pub(crate) anew: bool,
    /// True if the log stays due when the run has ended.
    pub(crate) awaited: bool,
    /// True if the agent uses the model of the agent that opens it.
    pub(crate) inherits: bool,
    /// The requested answer of runs, if there is one.
    pub(crate) goal: Option<Arc<Goal>>,
    /// The system prompt that the agent has now, if the model may know another one.
    pub(crate) now: Option<Box<Arc<str>>>,
    /// The link of an agent under another one to its parent; none for the first.
    pub(crate) within: Option<Arc<ParentLink>>,
}

/// The parts that every setup begins with. Shared, because programs build agents by the thousand.
static BLANK: LazyLock<Blank> = LazyLock::new(|| Blank {
    state: Arc::default(),
    options: Arc::default(),
    tools: Tools::new("tools"),
    world: Arc::new(SystemWorld),
    who: Arc::new(Identity::root(ThreadId::from("main"), "agent", "agent")),
});

struct Blank {
    state: Arc<Map<String, Value>>,
    options: Arc<Options>,
    tools: Tools,
    world: Arc<dyn World>,
    who: Arc<Identity>,
}

/// Answers pauses in place, while the run waits.
pub(crate) type Responder =
    dyn Fn(Identity, Pause) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send>> + Send + Sync;

pub(crate) type Convert = dyn Fn(&Custom) -> Option<UserMessage> + Send + Sync;

impl Setup {
    /// This model, without tools and instructions, in the thread `main`, with the system's clock.
    pub fn new(model: impl Model + 'static) -> Self {
        Self {
            model: Arc::new(model),
            system: Arc::default(),
            instructions: Instructions::default(),
            sections: Sections::default(),
            state: Arc::clone(&BLANK.state),
            options: Arc::clone(&BLANK.options),
            tools: BLANK.tools.clone(),
            toolboxes: Vec::new(),
            world: Arc::clone(&BLANK.world),
            who: Arc::clone(&BLANK.who),
            calls: CallOptions::default(),
            models: Arc::default(),
            effects: Vec::new(),
            floor: Floor::default(),
            hooks: Hooks::default(),
            middleware: Arc::default(),
            responder: None,
            convert: None,
            policy: Policy::default(),
            drains: Drains::default(),
            durability: Durability::Sync,
            prints: Arc::default(),
            anew: false,
            awaited: false,
            inherits: false,
            goal: None,
            now: None,
            within: None,
        }
    }

    /// Sets what the records survive; a crash of the machine without it.
    #[must_use]
    pub(crate) fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how the model should answer.
    #[must_use]
    pub(crate) fn options(mut self, options: Options) -> Self {
        self.options = Arc::new(options);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl ErasedTool + 'static) -> Self {
        self.add_tool(tool);
        self
    }

    pub(crate) fn add_tool(&mut self, tool: impl ErasedTool + 'static) {
        self.tools = std::mem::replace(&mut self.tools, BLANK.tools.clone()).tool(tool);
    }

    /// Adds a toolbox, after the single tools.
    #[must_use]
    pub(crate) fn toolbox(mut self, toolbox: impl Toolbox + 'static) -> Self {
        self.toolboxes.push(Arc::new(toolbox));
        self
    }

    /// Sets clock, ids and chance.
    #[must_use]
    pub(crate) fn world(mut self, world: impl World + 'static) -> Self {
        self.world = Arc::new(world);
        self
    }

    /// Sets who performs.
    #[must_use]
    pub(crate) fn who(mut self, who: Identity) -> Self {
        self.who = Arc::new(who);
        self
    }
}

impl Setup {
    /// Sets the instructions: a text, a template, or a source that is called when a run starts.
    #[must_use]
    pub(crate) fn instructions(mut self, instructions: impl Into<Instructions>) -> Self {
        self.instructions = instructions.into();
        self.system = self.instructions.static_text().unwrap_or_default();
        self
    }

    /// Adds a section of the system prompt, after the existing ones.
    #[must_use]
    pub(crate) fn section(mut self, section: impl Section + 'static) -> Self {
        self.sections = self.sections.section(section);
        self
    }

    /// Adds the sections that a component registers, with its settings for them.
    #[must_use]
    pub(crate) fn sections(mut self, sections: &Sections) -> Self {
        self.sections = self.sections.merge(sections);
        self
    }

    /// Sets what instructions and sections know by a name.
    #[must_use]
    pub(crate) fn state(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.state).insert(name.into(), value.into());
        self
    }

    /// Sets the model.
    #[must_use]
    pub(crate) fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Arc::new(model);
        self.inherits = false;
        self
    }

    /// Adds a model that a turn may change to, by its id.
    #[must_use]
    pub(crate) fn alternative(mut self, model: impl Model + 'static) -> Self {
        let model: Arc<dyn Model> = Arc::new(model);
        self.models = self.models.iter().cloned().chain([model]).collect();
        self
    }

    /// Adds an effect, after the existing ones.
    #[must_use]
    pub(crate) fn effect(mut self, effect: impl Effect + 'static) -> Self {
        self.effects.push(Arc::new(effect));
        self
    }

    /// Adds hooks, after the existing ones.
    #[must_use]
    pub(crate) fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = self.hooks.and(hooks);
        self
    }

    /// Adds a hook, after the existing ones; the type of its argument selects its point.
    #[must_use]
    pub(crate) fn on<P: Point>(mut self, hook: impl Hook<P> + 'static) -> Self {
        self.hooks = self.hooks.on(hook);
        self
    }

    /// Adds a middleware, inside the existing ones.
    #[must_use]
    pub(crate) fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        let outer = self.middleware.iter().cloned();
        let middleware: Arc<dyn Middleware> = Arc::new(middleware);
        self.middleware = outer.chain([middleware]).collect();
        self
    }

    /// Sets the conversion of the application's own entries for the model; entries that convert to `None` stay
    /// hidden.
    #[must_use]
    pub(crate) fn convert(
        mut self,
        convert: impl Fn(&Custom) -> Option<UserMessage> + Send + Sync + 'static,
    ) -> Self {
        self.convert = Some(Arc::new(convert));
        self
    }

    /// Sets who answers in place what the run waits for.
    #[must_use]
    pub(crate) fn responder<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Identity, Pause) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.responder = Some(Arc::new(move |who, pause| Box::pin(answer(who, pause))));
        self
    }

    /// Returns the chosen model.
    ///
    /// # Errors
    /// `UnknownModel`: no other model is used in its place.
    pub(crate) fn chosen(&self, chosen: Option<&ModelId>) -> Result<&Arc<dyn Model>, Error> {
        let Some(id) = chosen else {
            return Ok(&self.model);
        };
        let known = || std::iter::once(&self.model).chain(&*self.models);
        let unknown = || Error::UnknownModel {
            model: id.clone(),
            known: known().map(|model| model.info().id.clone()).collect(),
        };
        known()
            .find(|model| model.info().id == *id)
            .ok_or_else(unknown)
    }

    /// True if the system prompt is known without a call.
    pub(crate) fn is_instructed(&self) -> bool {
        self.sections.is_empty() && self.instructions.static_text().is_some()
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("model", &self.model)
            .field("tools", &self.tools)
            .field(
                "toolboxes",
                &self
                    .toolboxes
                    .iter()
                    .map(|it| it.name().to_owned())
                    .collect::<Vec<_>>(),
            )
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}
