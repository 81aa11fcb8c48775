//! The configuration of an agent: each setter changes this handle, not clones that were made before.

use std::sync::Arc;

use adjutant_core::{Caps, Durability, Lane, Limits, Pause};
use adjutant_llm::{Custom, Effort, Model, Options, UserMessage};
use adjutant_tool::{Answer, Ask, ErasedTool, Identity, ToolSpec, Toolbox, Tools};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Agent;
use crate::{
    effect::Effect,
    floor::Floor,
    hooks::{Hook, Hooks, Point},
    instructions::Instructions,
    middleware::Middleware,
    output::Output,
    queue::Drain,
    sections::{Section, Sections},
    setup::{CallOptions, Setup},
};

impl Agent {
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

    /// Sets the instructions: a text, which is the exact system prompt, a template, or a source that is called at
    /// each start.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<Instructions>) -> Self {
        self.with(|setup| setup.instructions(instructions))
    }

    /// Adds a section of the system prompt, after the existing ones.
    #[must_use]
    pub fn section(self, section: impl Section + 'static) -> Self {
        self.with(|setup| setup.section(section))
    }

    /// Adds the sections that a component registers, with its settings for them.
    #[must_use]
    pub fn sections(self, sections: &Sections) -> Self {
        self.with(|setup| setup.sections(sections))
    }

    /// Sets the requested answer of each run: [`RunResult::output`](adjutant_core::RunResult::output).
    #[must_use]
    pub fn output<T: DeserializeOwned>(self, output: Output<T>) -> Self {
        self.with(|setup| Setup {
            goal: Some(output.goal()),
            ..setup
        })
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

    /// Adds an effect, after the existing ones.
    #[must_use]
    pub fn effect(self, effect: impl Effect + 'static) -> Self {
        self.with(|setup| setup.effect(effect))
    }

    /// Adds hooks, after the existing ones.
    #[must_use]
    pub fn hooks(self, hooks: Hooks) -> Self {
        self.with(|setup| setup.hooks(hooks))
    }

    /// Adds a hook, after the existing ones; the type of its argument selects its point.
    #[must_use]
    pub fn on<P: Point>(self, hook: impl Hook<P> + 'static) -> Self {
        self.with(|setup| setup.on(hook))
    }

    /// Adds a middleware, inside the existing ones.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware + 'static) -> Self {
        self.with(|setup| setup.middleware(middleware))
    }

    /// Sets the conversion of the application's own entries for the model; entries that convert to `None` stay
    /// hidden.
    ///
    /// The result of a conversion is recorded with the first request after the entry, and stays.
    #[must_use]
    pub fn convert(
        self,
        convert: impl Fn(&Custom) -> Option<UserMessage> + Send + Sync + 'static,
    ) -> Self {
        self.with(|setup| setup.convert(convert))
    }

    /// Sets the function that answers pauses in place, while the run waits; by default the run parks.
    ///
    /// It receives the agent and the pause, and returns `None` if it cannot answer: the run parks then, unless
    /// another answer arrives. An answer that does not fit the question is ignored with a warning. The pause expires
    /// at its deadline. A panic denies approvals, and leaves every other pause unanswered. If the run is cancelled,
    /// the pause stays open.
    #[must_use]
    pub fn responder<F, Fut>(self, answer: F) -> Self
    where
        F: Fn(Identity, Pause) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.with(|setup| setup.responder(answer))
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
        self.limits.max_turns = Some(turns);
        self
    }

    /// Lowers the maximum number of requests of one run; a number above the current limit changes nothing.
    #[must_use]
    pub fn cap_turns(self, turns: u32) -> Self {
        let most = self.limits.max_turns.map_or(turns, |most| most.min(turns));
        self.max_turns(most)
    }

    /// Lowers what every run may spend: to these caps, where they are less than its own.
    #[must_use]
    pub fn cap(mut self, caps: Caps) -> Self {
        self.limits.caps = self.limits.caps.within(caps);
        self
    }

    /// Changes how calls are performed: how long they may take, how much a result may hold, who runs them.
    #[must_use]
    pub fn calls(self, change: impl FnOnce(&mut CallOptions)) -> Self {
        self.with(|setup| setup.calls(change))
    }

    /// Adds a rule that decides which calls need an approval; it receives validated arguments. Its panic refuses the
    /// call.
    #[must_use]
    pub fn approve_when(
        self,
        when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static,
    ) -> Self {
        self.with(|setup| setup.approve_when(when))
    }

    /// Sets how much of a lane is placed at a time, in later runs; one message without it.
    #[must_use]
    pub fn drain(self, lane: Lane, drain: Drain) -> Self {
        self.with(|mut setup| {
            match lane {
                Lane::Steering => setup.drains.steering = drain,
                Lane::FollowUp => setup.drains.follow_up = drain,
            }
            setup
        })
    }

    /// Sets how much the model thinks, in later runs.
    #[must_use]
    pub fn thinking(self, effort: Effort) -> Self {
        self.with(|setup| {
            let mut options = Options::clone(&setup.options);
            options.thinking = Some(effort);
            setup.options(options)
        })
    }

    /// Sets the single tools of later runs; toolboxes stay.
    #[must_use]
    pub fn tools(self, tools: Tools) -> Self {
        self.with(|setup| Setup { tools, ..setup })
    }

    /// Sets what the records of later runs survive; a crash of the machine without it.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.with(|setup| setup.durability(durability))
    }
}

impl Floor {
    /// Returns the agent with this context fitting instead of the previous one.
    #[must_use]
    pub fn install(self, agent: Agent) -> Agent {
        agent.with(|setup| Setup {
            floor: self,
            ..setup
        })
    }
}
