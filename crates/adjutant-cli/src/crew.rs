//! The agents of a run, equipped: who answers, and who can be given tasks.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use adjutant::{
    Agent, Model,
    llm::Options,
    orchestration::{
        Definition, Delegation, Registry,
        board::{Board, BoardTools},
    },
    skills::{Root, Skill, Skills},
    tools::{Ask, Confirm, Tools},
};

use crate::{args::Staffed, cast::Cast, exit::Exit, near, problem::Problem, staff::Staff, taught, waits};

/// What the usual agent is called.
pub(crate) const NAME: &str = "adjutant";
/// The toolbox of the files.
const FILES: &str = "files";
/// The toolbox of the board.
const BOARD: &str = "board";
/// How many levels of agents may stand under the one that is asked, if nothing is said.
const DEPTH: u16 = 1;
/// How much of a session's name is in the name of an agent that works on a board.
const MAX_NAME: usize = 24;

/// The agents of a run.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    /// The one that answers, if it is not the usual one.
    pub(crate) lead: Option<Member>,
    /// Those that can be given tasks.
    others: Vec<Member>,
    depth: u16,
    /// The name of the board.
    board: Option<String>,
}

/// An agent, and what its file names.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) definition: Arc<Definition>,
    pub(crate) skills: Skills,
}

/// What all agents of a run share.
#[derive(Debug, Clone)]
pub(crate) struct Gear {
    pub(crate) files: Tools,
    /// The tools whose calls wait for approval.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) options: Options,
}

impl Crew {
    /// The crew that the command line wishes for.
    ///
    /// # Errors
    /// `Usage` if an agent, a toolbox or a skill that is named is none.
    pub(crate) fn new(staffed: &Staffed, staff: &Staff, skills: &Skills) -> Result<Self, Problem> {
        let is_lead = |name: &str| staffed.agent.as_deref() == Some(name);
        let mut crew = Self { board: staffed.board.clone(), ..Self::default() };
        for definition in &staff.used {
            check(definition, staffed)?;
            let member = Member { definition: Arc::new(definition.clone()), skills: chosen(definition, skills)? };
            if is_lead(&definition.name) {
                crew.lead = Some(member);
            } else {
                crew.others.push(member);
            }
        }
        if let (Some(name), None) = (&staffed.agent, &crew.lead) {
            return Err(missing(name, staff));
        }
        crew.depth = if crew.others.is_empty() { 0 } else { staffed.depth.unwrap_or(DEPTH) };
        Ok(crew)
    }

    /// What the agent that answers is called.
    pub(crate) fn name(&self) -> &str {
        self.lead.as_ref().map_or(NAME, |lead| &lead.definition.name)
    }

    /// The model that the agent that answers names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.lead.as_ref().and_then(|lead| lead.definition.model.as_deref())
    }

    /// Whether the agent that answers has tools of the crew.
    pub(crate) fn is_alone(&self) -> bool {
        self.depth == 0 && self.board.is_none()
    }

    /// The name of the board.
    pub(crate) fn board(&self) -> Option<&str> {
        self.board.as_deref()
    }

    /// Lets an agent give tasks to the others, and work on the board.
    ///
    /// # Errors
    /// `Usage` if the model of one of them cannot be used.
    pub(crate) fn install(
        &self,
        agent: Agent,
        board: Option<&Board>,
        gear: &Gear,
        cast: &Cast,
    ) -> Result<Agent, Problem> {
        let (mut agent, mut shift) = (agent, 0);
        if let Some(board) = board {
            shift = shift_of(&agent);
            // Two commands may work on one board, which tells workers apart by their names.
            let name = format!("{}-{}", self.name(), short(&agent));
            agent = agent.identify(|who| who.name = name.into()).toolbox(board.tools(BoardTools::new()));
        }
        if self.depth == 0 {
            return Ok(agent);
        }
        let registry = Registry::new();
        for member in &self.others {
            member.register(&registry, board, gear, cast)?;
            if shift > 0 {
                // The numbers of instances go on behind this one, for the same reason.
                let name = &member.definition.name;
                drop(registry.spawn_as(name, &format!("{name}-{shift}")));
            }
        }
        let handoffs = self.lead.as_ref().map_or(0, |lead| lead.definition.profile().max_handoffs);
        let mut delegation = Delegation::new(registry).max_depth(self.depth).max_handoffs(handoffs);
        if let Some(board) = board {
            delegation = delegation.board(board.clone());
        }
        Ok(delegation.install(agent))
    }
}

impl Member {
    /// Whether it has the tools for files.
    pub(crate) fn has_files(&self) -> bool {
        self.has(FILES)
    }

    fn has(&self, toolbox: &str) -> bool {
        self.definition.toolboxes.iter().any(|name| &**name == toolbox)
    }

    fn register(&self, registry: &Registry, board: Option<&Board>, gear: &Gear, cast: &Cast) -> Result<(), Problem> {
        let model = match &self.definition.model {
            Some(name) => {
                cast.other(name).map_err(|problem| problem.within(&format!("the agent {}", self.definition.name)))?
            }
            None => None,
        };
        let (member, board, gear) = (self.clone(), board.cloned().filter(|_| self.has(BOARD)), gear.clone());
        registry.register(self.definition.profile(), move || member.agent(model.clone(), board.as_ref(), &gear));
        Ok(())
    }

    /// A fresh agent, with nothing of the one that gives it tasks but the model, if it names none.
    fn agent(&self, model: Option<Arc<dyn Model>>, board: Option<&Board>, gear: &Gear) -> Agent {
        let Definition { name, instructions, max_turns, prefix, .. } = &*self.definition;
        let mut agent = Agent::inheriting(Arc::clone(name)).options(gear.options.clone());
        if let Some(model) = model {
            agent = agent.model(model);
        }
        if !instructions.is_empty() {
            agent = agent.instructions(Arc::clone(instructions));
        }
        if let Some(turns) = max_turns {
            agent = agent.max_turns(*turns);
        }
        if let Some(prefix) = prefix {
            agent = agent.identify(|who| who.prefix = Arc::clone(prefix));
        }
        if self.has_files() {
            agent = with_tools(agent, gear.files.clone(), gear.asked.clone());
        }
        if let Some(board) = board {
            agent = agent.toolbox(board.tools(BoardTools::new()));
        }
        self.skills.install(agent)
    }
}

/// The agent with these tools; calls of those that are named wait for approval.
pub(crate) fn with_tools(agent: Agent, tools: Tools, asked: BTreeSet<String>) -> Agent {
    if asked.is_empty() {
        return agent.toolbox(tools);
    }
    agent.toolbox(Confirm::new(tools).when(move |spec, _| {
        let name = spec.name().as_str();
        asked.contains(name).then(|| Ask::approval(waits::usual(name)))
    }))
}

/// Holds the toolboxes that an agent names against those that there are.
///
/// # Errors
/// `Usage` if one is none, or needs a board that there is not.
fn check(definition: &Definition, staffed: &Staffed) -> Result<(), Problem> {
    if let Some(wrong) = unknown(definition) {
        return Err(wrong);
    }
    if staffed.board.is_none() && definition.toolboxes.iter().any(|name| &**name == BOARD) {
        let text = format!("the agent {} works on a board, and there is none", definition.name);
        return Err(Problem::new(Exit::Usage, text).hint("--board names the board, --store where it is"));
    }
    Ok(())
}

/// The problem that an agent names a toolbox that is none.
pub(crate) fn unknown(definition: &Definition) -> Option<Problem> {
    let known = [FILES, BOARD];
    let wrong = definition.toolboxes.iter().find(|name| !known.contains(&&***name))?;
    let text = format!("the agent {} names a toolbox that there is not: {wrong}", definition.name);
    Some(named(Problem::new(Exit::Usage, text), wrong, known.into_iter(), "toolboxes"))
}

/// The skills that an agent names.
fn chosen(definition: &Definition, skills: &Skills) -> Result<Skills, Problem> {
    let mut roots = Vec::new();
    for name in &definition.skills {
        let Some(skill) = skills.get(name) else {
            let text = format!("the agent {} names a skill that is not used: {name}", definition.name);
            return Err(named(Problem::new(Exit::Usage, text), name, skills.iter().map(Skill::name), "skills"));
        };
        roots.extend(Path::new(&*skill.place().file).parent().map(Root::named));
    }
    Skills::load(roots).map_err(|error| taught::of(&error))
}

/// There is no agent of this name, or nobody trusts it.
fn missing(name: &str, staff: &Staff) -> Problem {
    if staff.untrusted.iter().any(|it| &*it.name == name) {
        let problem = Problem::new(Exit::Usage, format!("nobody trusts the agent of this name: {name}"));
        return problem.hint("read its file in .adjutant/agents, then say --trust");
    }
    let problem = Problem::new(Exit::Usage, format!("no agent has this name: {name}"));
    named(problem, name, staff.used.iter().map(|it| &*it.name), "agents")
}

/// Adds the names that are nearest to one that there is not, else all of them.
fn named<'a>(problem: Problem, name: &str, known: impl Iterator<Item = &'a str>, what: &str) -> Problem {
    let known: Vec<&str> = known.collect();
    let near = near::near(name, known.iter().copied());
    match (near.is_empty(), known.is_empty()) {
        (false, _) => problem.hint(format!("the nearest are {}", near.join(", "))),
        (true, false) => problem.hint(format!("the {what} are {}", known.join(", "))),
        (true, true) => problem.hint(format!("there are no {what}")),
    }
}

/// What tells the agent of one session from that of another, in a short word.
fn short(agent: &Agent) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    agent.session_id().0.chars().filter(is_plain).take(MAX_NAME).collect()
}

/// A number that differs from session to session, mostly.
///
/// Source: the FNV-1a hash of 32 bits, draft-eastlake-fnv.
fn shift_of(agent: &Agent) -> u32 {
    let hash = agent
        .session_id()
        .0
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % 900_000 + 100_000
}
