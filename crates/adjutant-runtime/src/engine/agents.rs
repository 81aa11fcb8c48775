//! The agents of an engine, and their permissions to delegate.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{Agent, ChildRole, LogInfo};
use adjutant_orchestration::{Delegation, HandoffChain, HandoffTarget, Registry};

use super::{
    agent::AgentPosition,
    member::Member,
    tooling::{Tooling, unknown},
};
use crate::{
    error::{Error, ErrorKind},
    manifest::{AgentSpec, DelegationPlace},
    prompt::Lead,
};

/// The agents that an agent may delegate to.
type Set = BTreeSet<Arc<str>>;

/// The agents of an engine.
pub(super) struct Agents {
    pub(super) tooling: Tooling,
    members: BTreeMap<Arc<str>, Arc<Member>>,
    /// True if all delegating agents may delegate to the same agents; then one registry tracks their depth.
    is_uniform: bool,
    /// Keyed by their members and, if relevant, the permitted levels below the caller.
    registries: Mutex<BTreeMap<(Set, Option<u16>), Registry>>,
}

impl Agents {
    /// # Errors
    /// `Config` if an agent names a missing one.
    pub(super) fn new(tooling: Tooling, members: Vec<Member>) -> Result<Arc<Self>, Error> {
        let members: BTreeMap<_, _> = members
            .into_iter()
            .map(|member| (Arc::clone(&member.spec.name), Arc::new(member)))
            .collect();
        check(&members)?;
        let placed = members
            .values()
            .find(|member| member.spec.delegation.on == DelegationPlace::Fleet);
        if let Some(member) = placed.filter(|_| tooling.placement.is_none()) {
            let name = &member.spec.name;
            let message = format!(
                "the agent {name} gives tasks `on: fleet`, and no fleet runs it; hint: adjutant worker"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let all: Set = members.keys().cloned().collect();
        let giving = members
            .values()
            .filter(|member| member.spec.delegation.depth > 0);
        let sets: BTreeSet<Set> = giving.map(|member| set_of(&member.spec, &all)).collect();
        Ok(Arc::new(Self {
            tooling,
            members,
            is_uniform: sets.len() <= 1,
            registries: Mutex::default(),
        }))
    }

    /// Returns an agent by its name.
    pub(super) fn member(&self, name: &str) -> Option<&Arc<Member>> {
        self.members.get(name)
    }

    /// Returns the other agents that an agent may delegate to or start.
    pub(super) fn others(&self, spec: &AgentSpec) -> Set {
        let mut set = set_of(spec, &self.members.keys().cloned().collect());
        set.remove(&spec.name);
        set
    }

    /// Returns the agents that answer prompts.
    ///
    /// # Errors
    /// `Config` if the agents cannot hand the conversation to each other.
    pub(super) fn lead(self: &Arc<Self>, entry: &Arc<Member>) -> Result<Lead, Error> {
        if entry.spec.transfers.is_empty() {
            return Ok(Lead::Agent(self.root(entry, entry)));
        }
        let mut chain = vec![Arc::clone(entry)];
        let mut at = 0;
        while let Some(member) = chain.get(at).cloned() {
            for name in &member.spec.transfers {
                if let Some(next) = self
                    .member(name)
                    .filter(|_| chain.iter().all(|it| it.spec.name != *name))
                {
                    chain.push(Arc::clone(next));
                }
            }
            at += 1;
        }
        let targets = chain.iter().map(|member| {
            let spec = &member.spec;
            let agent = self.root(member, entry);
            HandoffTarget::new(Arc::clone(&spec.name), Arc::clone(&spec.description), agent)
                .to(spec.transfers.iter().cloned())
        });
        HandoffChain::new(targets)
            .map(Lead::HandoffChain)
            .map_err(|error| {
                Error::new(ErrorKind::Config, "the conversation cannot be handed over")
                    .with_source(error)
            })
    }

    /// Returns the agent of a child session; `None` if the session is not a child.
    ///
    /// # Errors
    /// `Config` if there is no such agent.
    pub(super) fn child(self: &Arc<Self>, info: &LogInfo) -> Option<Result<Agent, Error>> {
        let role = ChildRole::from_info(info)?;
        let registry = Registry::new();
        if let Some(member) = self.member(&role.agent) {
            let place = AgentPosition {
                left: Some(role.levels),
                ..AgentPosition::default()
            };
            let agent = self.alone(self.agent(member, &place), member);
            registry.register(member.profile(0), move || agent.clone());
        }
        let made = Delegation::new(registry).child(info)?;
        Some(made.map_err(|error| {
            Error::new(ErrorKind::Config, "the manifest has no such agent").with_source(error)
        }))
    }

    /// Adds the tools for delegation, up to the permitted depth.
    pub(super) fn delegating(
        self: &Arc<Self>,
        agent: Agent,
        member: &Member,
        place: &AgentPosition<'_>,
    ) -> Agent {
        let spec = &member.spec;
        let depth = place.left.map_or(spec.delegation.depth, |left| {
            left.min(spec.delegation.depth)
        });
        if depth == 0 || !place.delegates || self.others(spec).is_empty() {
            return agent;
        }
        let registry = self.registry(spec, depth);
        let mut delegation = Delegation::new(registry)
            .max_depth(depth)
            .max_handoffs(spec.delegation.handoffs);
        if let (DelegationPlace::Fleet, Some(placement)) =
            (spec.delegation.on, &self.tooling.placement)
        {
            delegation = delegation.on(Arc::clone(placement));
        }
        if let Some(board) = &self.tooling.board {
            delegation = delegation.board(board.clone());
        }
        if let Some(reflections) = &member.reflections {
            delegation = delegation.reflections(reflections.clone());
        }
        delegation.install(agent)
    }

    /// Returns the registry of the agents that an agent can delegate to.
    fn registry(self: &Arc<Self>, spec: &AgentSpec, depth: u16) -> Registry {
        let set = set_of(spec, &self.members.keys().cloned().collect());
        let key = (set, (!self.is_uniform).then_some(depth));
        let mut registries = self
            .registries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = registries.get(&key) {
            return known.clone();
        }
        let mut registry = Registry::new();
        if self.tooling.board.is_some() {
            // A board identifies workers by their names, and other programs may use the same board.
            registry = registry.worker(&format!("{:06x}", self.tooling.world.id() & 0xff_ffff));
        }
        for name in &key.0 {
            let Some(member) = self.members.get(name) else {
                continue;
            };
            let own = if self.is_uniform {
                member.spec.delegation.depth
            } else {
                0
            };
            // The agent owns them, so they must not own the agent.
            let (agents, member, uniform) =
                (Arc::downgrade(self), Arc::clone(member), self.is_uniform);
            registry.register(member.profile(own), move || match agents.upgrade() {
                Some(agents) => {
                    let left = (!uniform).then(|| depth.saturating_sub(1));
                    agents.agent(
                        &member,
                        &AgentPosition {
                            left,
                            delegates: !uniform,
                            ..AgentPosition::default()
                        },
                    )
                }
                None => Agent::inheriting(Arc::clone(&member.spec.name)),
            });
        }
        registries.insert(key, registry.clone());
        registry
    }
}

/// Returns the agents that an agent may delegate to. It may be in its own set, but never delegates to itself.
fn set_of(spec: &AgentSpec, all: &Set) -> Set {
    spec.delegation
        .agents
        .as_ref()
        .map_or_else(|| all.clone(), |named| named.iter().cloned().collect())
}

/// Checks the names that agents use against the existing ones.
fn check(members: &BTreeMap<Arc<str>, Arc<Member>>) -> Result<(), Error> {
    let known: Vec<&str> = members.keys().map(|name| &**name).collect();
    for member in members.values() {
        let spec = &member.spec;
        let team = spec.team.iter().flat_map(|team| &team.members);
        let named = spec
            .delegation
            .agents
            .iter()
            .flatten()
            .chain(&spec.transfers)
            .chain(team);
        if let Some(wrong) = named.into_iter().find(|name| !members.contains_key(*name)) {
            return Err(unknown(spec, "agent", wrong, &known));
        }
    }
    Ok(())
}
