//! Builds an agent from its part of a manifest.

use std::sync::Arc;

use adjutant_agent::{Agent, Caps, Timeout, effects::Catalogue};
use adjutant_orchestration::{Background, BackgroundOptions, team::Team};
use adjutant_tool::Toolbox;

use super::{
    access,
    agents::Agents,
    bounds,
    member::Member,
    toolbox::{Piece, is_plain, wrap},
};
use crate::manifest::{Durability, TeamSpec, ToolboxSpec};

/// The maximum depth at which agents may have their own teams and background tasks, because these are created in
/// advance.
const MAX_ABOVE: usize = 2;

/// The position of an agent in the tree.
#[derive(Debug, Clone)]
pub(super) struct AgentPosition<'a> {
    /// The permitted number of levels below it; `None` uses the agent's own setting.
    pub(super) left: Option<u16>,
    /// True if it gets its delegation tools here, and not from the agent that delegates to it.
    pub(super) delegates: bool,
    /// The agents whose teams and background tasks it is built for.
    pub(super) above: &'a [Arc<str>],
    /// Additional caps on its runs.
    pub(super) caps: Caps,
}

impl Default for AgentPosition<'_> {
    fn default() -> Self {
        Self {
            left: None,
            delegates: true,
            above: &[],
            caps: Caps::default(),
        }
    }
}

impl Agents {
    /// An agent that receives prompts: it has sessions, memories, and the budget of the manifest.
    pub(super) fn root(self: &Arc<Self>, member: &Arc<Member>, entry: &Arc<Member>) -> Agent {
        let tooling = &self.tooling;
        let place = AgentPosition {
            caps: bounds::caps(&tooling.manifest.budget),
            ..AgentPosition::default()
        };
        let mut agent = self.alone(self.agent(member, &place), member);
        if let Some(memories) = &tooling.memories {
            agent = agent.effect(memories.recall());
            if let (Some(when), Some(model)) = (tooling.extraction(), &entry.model) {
                agent = agent.middleware(memories.clone().model(Arc::clone(model)).extract(when));
            }
        }
        agent
    }

    /// Builds the agent in a new session; without a model it uses the first agent's.
    pub(super) fn alone(self: &Arc<Self>, mut agent: Agent, member: &Member) -> Agent {
        let tooling = &self.tooling;
        let first = super::entry(&tooling.manifest)
            .ok()
            .and_then(|spec| self.member(&spec.name));
        if let (None, Some(model)) = (&member.model, first.and_then(|first| first.model.as_ref())) {
            agent = agent
                .model(Arc::clone(model))
                .name(Arc::clone(&member.spec.name));
        }
        agent = agent
            .world(Arc::clone(&tooling.world))
            .journal(tooling.store.journal());
        if let Some(durability) = tooling.manifest.sessions.durability {
            agent = agent.durability(lasting(durability));
        }
        let agents = Arc::clone(self);
        // The factories of sub-agents hold only weak references; this agent keeps them alive.
        agent.approve_when(move |_, _| {
            let _keeps = &agents;
            None
        })
    }

    /// Builds an agent with all parts of its manifest.
    pub(super) fn agent(
        self: &Arc<Self>,
        member: &Arc<Member>,
        place: &AgentPosition<'_>,
    ) -> Agent {
        let Member {
            spec,
            options,
            limits,
            ..
        } = &**member;
        let mut agent = match &member.model {
            Some(model) => Agent::new(Arc::clone(model)).name(Arc::clone(&spec.name)),
            None => Agent::inheriting(Arc::clone(&spec.name)),
        };
        let caps = limits.caps.within(place.caps);
        agent = agent
            .options(options.clone())
            .limits(adjutant_agent::Limits {
                caps,
                ..limits.clone()
            })
            .sections(&member.sections);
        if let Some(text) = member.instructions.as_ref().filter(|text| !text.is_empty()) {
            agent = agent.instructions(Arc::clone(text));
        }
        if let Some(prefix) = &spec.prefix {
            agent = agent.identify(|who| who.prefix = Arc::clone(prefix));
        }
        agent = member.floor.clone().install(bounded(agent, member));
        agent = member
            .middleware
            .iter()
            .fold(agent, |agent, one| agent.middleware(Arc::clone(one)));
        if let Some(tools) = &member.tools {
            agent = agent.toolbox(tools.clone());
        }
        agent = member.skills.install(self.equipped(agent, member, place));
        agent = member
            .effects
            .iter()
            .fold(agent, |agent, effect| agent.effect(Arc::clone(effect)));
        if let Some(reflections) = &member.reflections {
            agent = reflections.install(agent);
        }
        agent = self.delegating(agent, member, place);
        if let Some(team) = spec.team.as_ref().filter(|_| place.may_open(member)) {
            agent = self.team(member, team, place).install(agent);
        }
        let agent = access::install(agent, &spec.name, &spec.access);
        match &member.rules {
            Some(rules) => access::install_rules(agent, &spec.name, rules),
            None => agent,
        }
    }

    /// Adds the toolboxes.
    fn equipped(
        self: &Arc<Self>,
        mut agent: Agent,
        member: &Arc<Member>,
        place: &AgentPosition<'_>,
    ) -> Agent {
        let is_coordinator = member
            .spec
            .team
            .as_ref()
            .is_some_and(|team| team.coordinator)
            && place.may_open(member);
        let mut servers = None;
        for piece in &member.toolboxes {
            agent = match piece {
                Piece::Toolbox(toolbox) => agent.toolbox(Arc::clone(toolbox)),
                Piece::Server(toolbox) => {
                    servers = Some(
                        servers
                            .unwrap_or_else(Catalogue::default)
                            .toolbox(Arc::clone(toolbox)),
                    );
                    agent
                }
                // The team already provides it to the lead.
                Piece::Board(_) if is_coordinator => agent,
                Piece::Board(toolbox) => agent.toolbox(Arc::clone(toolbox)),
                Piece::Notes(notes) => notes.install(agent),
                Piece::Background(spec) if place.may_open(member) => {
                    self.launching(agent, member, spec, place)
                }
                Piece::Background(_) => agent,
            };
        }
        match servers {
            Some(servers) => agent.effect(servers),
            None => agent,
        }
    }

    /// Adds the tools that start other agents.
    fn launching(
        self: &Arc<Self>,
        agent: Agent,
        member: &Member,
        spec: &ToolboxSpec,
        place: &AgentPosition<'_>,
    ) -> Agent {
        let above = place.below(member);
        let mut background = Background::new(BackgroundOptions::new());
        for other in self
            .others(&member.spec)
            .iter()
            .filter_map(|name| self.member(name))
        {
            let made = self.agent(
                other,
                &AgentPosition {
                    above: &above,
                    ..AgentPosition::default()
                },
            );
            background = background.agent(
                Arc::clone(&other.spec.name),
                Arc::clone(&other.spec.description),
                made,
            );
        }
        if is_plain(spec) {
            return background.install(agent);
        }
        let tools: Arc<dyn Toolbox> = Arc::new(background.toolbox());
        agent.toolbox(wrap(spec, tools))
    }

    /// Builds the team that an agent may lead.
    fn team(self: &Arc<Self>, member: &Member, spec: &TeamSpec, place: &AgentPosition<'_>) -> Team {
        let (above, caps) = (place.below(member), bounds::caps(&spec.member_budget));
        let mut team =
            Team::new(Arc::clone(&member.spec.name)).world(Arc::clone(&self.tooling.world));
        if let Some(size) = spec.size {
            team = team.max_size(usize::try_from(size).unwrap_or(usize::MAX));
        }
        if let Some(timeout) = spec.member_timeout {
            team = team.member_timeout(timeout.0);
        }
        for name in &spec.members {
            let Some(template) = self.member(name) else {
                continue;
            };
            let place = AgentPosition {
                above: &above,
                caps,
                ..AgentPosition::default()
            };
            team = team.template(Arc::clone(name), self.agent(template, &place));
        }
        team = if spec.members.is_empty() {
            team.member_limits(adjutant_agent::Limits {
                caps,
                ..adjutant_agent::Limits::default()
            })
        } else {
            team.templates_only()
        };
        if !spec.coordinator {
            return team;
        }
        let names_board = member
            .toolboxes
            .iter()
            .any(|piece| matches!(piece, Piece::Board(_)));
        let team = team.coordinator();
        match self.tooling.board.as_ref().filter(|_| names_board) {
            Some(board) => {
                team.board_tools(board.tools(adjutant_orchestration::board::BoardTools::new()))
            }
            None => team,
        }
    }
}

impl AgentPosition<'_> {
    /// True if an agent at this position may have a team and background tasks.
    fn may_open(&self, member: &Member) -> bool {
        self.above.len() < MAX_ABOVE && !self.above.contains(&member.spec.name)
    }

    /// Returns the agents above the sub-agents of this one.
    fn below(&self, member: &Member) -> Vec<Arc<str>> {
        self.above
            .iter()
            .cloned()
            .chain([Arc::clone(&member.spec.name)])
            .collect()
    }
}

/// Sets the timeouts and sizes of its calls.
fn bounded(mut agent: Agent, member: &Member) -> Agent {
    let limits = &member.spec.limits;
    if let Some(timeout) = member.timeout() {
        agent = agent.middleware(Timeout(timeout));
    }
    if let Some(timeout) = limits.tool_timeout {
        agent = agent.calls(|calls| calls.timeout = Some(timeout.0));
    }
    if let Some(grace) = limits.grace {
        agent = agent.calls(|calls| calls.grace = grace.0);
    }
    match limits.max_result {
        Some(size) => agent
            .calls(|calls| calls.max_result_bytes = usize::try_from(size.0).unwrap_or(usize::MAX)),
        None => agent,
    }
}

fn lasting(durability: Durability) -> adjutant_agent::Durability {
    match durability {
        Durability::Sync => adjutant_agent::Durability::Sync,
        Durability::Async => adjutant_agent::Durability::Async,
        Durability::OnExit => adjutant_agent::Durability::OnExit,
    }
}
