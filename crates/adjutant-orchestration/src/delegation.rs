//! Delegation: an agent gives tasks to agents of a registry, and gets their results.

mod agents;
mod board;
mod brief;
mod delegate;
mod delegated_task;
mod driver;
mod handoff;
mod interactive;
mod names;
mod placed;
mod plan;
mod protocol;
mod questions;
mod reflections;
mod report;
mod task_run;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use adjutant_agent::{Agent, ChildRole, LogInfo, Placement};
use adjutant_tool::CallContext;

pub(crate) use driver::{Recall, Recalled, TaskDriver, TaskEnd};

use crate::{
    Error, Profile, Registry,
    registry::{Slot, Spawned},
};

/// How many bytes of the results of one call the model is shown.
const MAX_SHOWN_BYTES: usize = 600_000;
/// How long one call may take: agents have limits of their own.
const TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What lets an agent give tasks to agents of a registry; see [`Delegation::install`].
///
/// An agent that is given a task has nothing of the one that gives it but this: the registry, and where tasks and
/// reflections are kept. Its tools are its own.
///
/// # Example
/// ```
/// use adjutant_agent::Agent;
/// use adjutant_llm::{Script, ScriptedModel};
/// use adjutant_orchestration::{Delegation, Profile, Registry};
/// use serde_json::json;
///
/// let registry = Registry::new();
/// registry.register(Profile::new("coder", "Writes code."), || {
///     let done = json!({ "status": "completed", "summary": "The parser is fixed." });
///     Agent::new(ScriptedModel::new([Script::new().call("task_complete", done)]))
/// });
/// let tasks = json!({ "tasks": [{ "agent": "coder", "task": "Fix the parser.", "context": "It is in Rust." }] });
/// let lead = ScriptedModel::new([Script::new().call("delegate", tasks), Script::new().text("All is done.")]);
/// let lead = Delegation::new(registry).max_depth(1).install(Agent::new(lead).name("lead"));
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
/// let result = lead.run("Get the parser fixed.").await?;
/// assert_eq!(result.calls[0].result.details[0]["agent"], "coder-fix-1");
/// assert_eq!(result.calls[0].result.details[0]["result"], "The parser is fixed.");
/// # Ok::<(), adjutant_agent::Error>(())
/// # }).expect("the run finishes");
/// ```
#[derive(Clone)]
pub struct Delegation {
    shared: Arc<DelegationShared>,
    place: DelegationLevel,
}

/// What all agents under one delegation share.
#[derive(Clone)]
pub(crate) struct DelegationShared {
    pub(crate) registry: Registry,
    pub(crate) board: Option<Arc<dyn TaskDriver>>,
    pub(crate) reflections: Option<Arc<dyn Recall>>,
    /// Where the agents work; with the agent that delegates if there is none.
    placement: Option<Arc<dyn Placement>>,
    /// Whether agents may ask those who gave them tasks.
    is_interactive: bool,
    pending: Arc<questions::PendingDelegations>,
}

/// Where an agent stands among those that delegate.
#[derive(Debug, Clone)]
pub(crate) struct DelegationLevel {
    /// How many levels of agents it may have under itself.
    pub(crate) left: u16,
    /// How often a task that it delegates may be handed on.
    pub(crate) max_handoffs: u32,
    /// Its place among those of its entry that may work at a time; none for the first agent.
    pub(crate) slot: Option<Slot>,
}

impl Delegation {
    /// Tasks for the agents of this registry, which cannot delegate themselves unless more depth is set.
    pub fn new(registry: Registry) -> Self {
        let shared = DelegationShared {
            registry,
            board: None,
            reflections: None,
            placement: None,
            is_interactive: false,
            pending: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
            place: DelegationLevel {
                left: 1,
                max_handoffs: 0,
                slot: None,
            },
        }
    }

    /// Sets how many levels of agents may stand under the one that it is installed in; 1 without it, and with 0 nobody can delegate.
    ///
    /// An agent below may have as many under itself as its profile says, and fewer if fewer are left.
    #[must_use]
    pub fn max_depth(mut self, levels: u16) -> Self {
        self.place.left = levels;
        self
    }

    /// Sets how often a task may be handed on from one agent to a peer; 0 without it, and then it cannot be.
    #[must_use]
    pub fn max_handoffs(mut self, handoffs: u32) -> Self {
        self.place.max_handoffs = handoffs;
        self
    }

    /// Lets agents ask those who gave them tasks, where these say so: adds `answer_questions` and the `mode` of tasks.
    ///
    /// An agent that may ask belongs to the run that delegated to it, and nobody else can be asked by it. After a crash it goes on only if the call that
    /// delegated had not ended; else its questions are gone, and its task can be delegated again.
    #[must_use]
    pub fn interactive(mut self) -> Self {
        Arc::make_mut(&mut self.shared).is_interactive = true;
        self
    }

    /// Lets agents work in sessions of their own, wherever there is room: on the workers of a fleet.
    ///
    /// Each task is a session, in which an agent that [`child`](Delegation::child) makes works by itself; the call waits for all of
    /// them, and the run may park meanwhile. Hooks of those above hear that it begins and ends, and nothing else of it; it is lent
    /// a share of what the run may use. A call with a task of a board, or with one whose agent may ask, stays with the agent that
    /// delegates, and no task is handed on. `max_concurrency` of a profile does not count there.
    #[must_use]
    pub fn on(mut self, placement: impl Placement + 'static) -> Self {
        Arc::make_mut(&mut self.shared).placement = Some(Arc::new(placement));
        self
    }

    /// The agent of a session that an agent of this delegation was ordered in; `None` if the session is no child.
    ///
    /// One that [inherits](Agent::inheriting) its model has none there.
    ///
    /// # Errors
    /// `Missing` if the registry has no such agent.
    pub fn child(&self, info: &LogInfo) -> Option<Result<Agent, Error>> {
        let role = ChildRole::from_info(info)?;
        let spawned = self.shared.registry.spawn_as(&role.agent, &role.name);
        Some(spawned.map(|spawned| {
            // What is below it is bound by the one that delegated, and by its profile.
            let above = DelegationLevel {
                left: role.levels.saturating_add(1),
                max_handoffs: 0,
                slot: None,
            };
            equip(&spawned, &self.shared, &above, 0)
        }))
    }

    /// Adds `list_agents`, `delegate` and the section that lists the agents to an agent; nothing if no depth is left.
    #[must_use]
    pub fn install(&self, agent: Agent) -> Agent {
        if self.place.left == 0 {
            return agent;
        }
        let agent = agent
            .tool(agents::tool(&self.shared.registry))
            .tool(delegate::tool(&self.shared, &self.place))
            .section(agents::section(&self.shared.registry))
            .middleware(names::KnownNames(self.shared.registry.clone()));
        match self.shared.is_interactive {
            true => interactive::install(agent, &self.shared, &self.place),
            false => agent,
        }
    }

    /// Sets where tasks are kept.
    pub(crate) fn driven_by(mut self, board: Arc<dyn TaskDriver>) -> Self {
        Arc::make_mut(&mut self.shared).board = Some(board);
        self
    }

    /// Sets where it is kept what was learned of failures.
    pub(crate) fn learning_from(mut self, reflections: Arc<dyn Recall>) -> Self {
        Arc::make_mut(&mut self.shared).reflections = Some(reflections);
        self
    }
}

impl DelegationLevel {
    /// How many levels of agents one of this profile may have under itself, below this place.
    fn below(&self, profile: &Profile) -> u16 {
        profile.max_depth.min(self.left.saturating_sub(1))
    }

    /// Waits for agents of one's own; another instance of one's entry may work meanwhile.
    async fn away<T>(&self, cx: &CallContext, waits: impl Future<Output = T>) -> T {
        let away = self.slot.as_ref().map(|slot| slot.leave());
        let done = waits.await;
        if let Some(away) = away {
            tokio::select! {
                () = away.back() => {}
                () = cx.cancel.cancelled() => {}
            }
        }
        done
    }
}

/// Equips an instance that is given a task: it can say that it is done, hand on, and delegate as far as depth is left.
pub(crate) fn equip(
    spawned: &Spawned,
    shared: &Arc<DelegationShared>,
    above: &DelegationLevel,
    handoffs: u32,
) -> Agent {
    let profile = &spawned.profile;
    let mut agent = protocol::install(spawned.agent.clone());
    if handoffs > 0 {
        agent = handoff::install(agent, &shared.registry);
    }
    let place = DelegationLevel {
        left: above.below(profile),
        max_handoffs: profile.max_handoffs,
        slot: Some(spawned.slot.clone()),
    };
    Delegation {
        shared: Arc::clone(shared),
        place,
    }
    .install(agent)
}

impl fmt::Debug for Delegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Delegation");
        shown
            .field("registry", &self.shared.registry)
            .field("place", &self.place);
        shown
            .field("board", &self.shared.board.is_some())
            .field("reflections", &self.shared.reflections.is_some());
        shown.finish()
    }
}
