//! The manifest of a run, built from the command line, the agent files and the directory.

use std::{collections::BTreeSet, path::Path};

use adjutant::{
    agent::Output,
    orchestration::Definition,
    protocols::acp::SessionWish,
    runtime::{
        Manifest,
        manifest::{AgentSpec, BoardSpec, Instructions, MemorySpec, ToolboxChoice},
    },
    skills::{Skill, Skills},
    tools::Toolbox,
};
use serde_json::Value;

use crate::{
    agent_files::AgentFiles,
    answer,
    args::{AgentChoice, BOARD, BOXES, How, MaxTurns},
    consent::Trusting,
    exit::Exit,
    hands::Hands,
    near,
    notes::Notes,
    problem::Problem,
    screen::Screen,
    servers::Servers,
    settings::SandboxSettings,
    taught,
};

/// The name of the default agent.
pub(crate) const NAME: &str = "adjutant";
/// The instructions of the default agent.
const INSTRUCTIONS: &str = "\
You work in one directory: you answer questions about its files, and change them and run commands where that is asked \
of you. Paths are relative to that directory. Commands run in a sandbox: they have no network, and write below it alone.
Look before you answer: use the tools, and answer from what they return, not from what such directories usually hold. \
Name the files that you rely on. If the files do not hold the answer, say so.
Change only what you are asked for, and read a file before you change it. A call may wait for the user's word; if it is \
refused, do without it.";
/// The default number of levels of sub-agents.
const DEPTH: u16 = 1;
/// The maximum number of findings that a run prints.
const MAX_TOLD: usize = 8;

/// The manifest of a run, and the parts that a manifest cannot contain: open directories, trusted skills, a schema.
#[derive(Debug)]
pub(crate) struct RunManifest {
    /// The manifest; its first agent answers.
    pub(crate) manifest: Manifest,
    pub(crate) hands: Hands,
    pub(crate) skills: Skills,
    pub(crate) answer: Option<Output<Value>>,
    /// The tools whose calls wait for approval.
    pub(crate) asked: BTreeSet<String>,
    /// The notes of the project. Their text is sent with the first prompt unless the project is trusted.
    pub(crate) notes: Notes,
    agent_files: AgentFiles,
    /// The messages about skills.
    skills_told: Vec<String>,
}

impl RunManifest {
    /// Builds the manifest for the command line in a directory.
    ///
    /// # Errors
    /// `Usage` if the directory cannot be used, or if a named agent, toolbox, skill or tool does not exist.
    pub(crate) fn new(how: &How, root: &Path) -> Result<Self, Problem> {
        Self::with(how, root, None)
    }

    /// The same, with the servers and the open files of an editor.
    pub(crate) fn with(
        how: &How,
        root: &Path,
        editor: Option<&SessionWish>,
    ) -> Result<Self, Problem> {
        let lent = editor.and_then(|editor| editor.files.clone());
        let mut hands = Hands::new(
            root,
            how.mode.unwrap_or_default(),
            SandboxSettings::find(how, root)?,
            how.taught.trust,
            lent,
        )?;
        if let Some(editor) = editor {
            hands
                .warnings
                .extend(hands.servers.take_of_editor(&editor.mcp_servers, root)?);
            hands.boxes.extend(editor.terminal.clone());
        }
        let answer = how.schema.as_deref().map(answer::read).transpose()?;
        let skills = taught::find(&how.taught, root, Trusting::Asked)?;
        let skills_told = taught::told(&skills);
        let agent_files = AgentFiles::find(&how.agents, &how.taught, root)?;
        let mut manifest = Manifest::default();
        let mut notes = Notes::of(root);
        let project = if how.taught.trust { &notes.text } else { "" };
        let trusted = format!("{}{project}", notes.user);
        manifest.agents = agents(how, &agent_files, &skills, &trusted, &hands.servers)?;
        if how.taught.trust || how.agents.agent.is_some() {
            notes.text.clear();
        }
        let lent = editor
            .and_then(|editor| editor.terminal.as_ref())
            .filter(|_| how.agents.agent.is_none());
        manifest.agents[0]
            .toolboxes
            .extend(lent.map(|tools| ToolboxChoice::Name(tools.name().into())));
        manifest.entry_agent = manifest.agents[0].name.clone();
        manifest.name = manifest.entry_agent.clone();
        manifest.board = how.agents.board.as_deref().map(BoardSpec::new);
        manifest.memory = how.memory.as_deref().map(MemorySpec::learning);
        manifest.sessions.durability = how.durability.map(Into::into);
        Self {
            manifest,
            hands,
            skills,
            answer,
            asked: BTreeSet::new(),
            notes,
            agent_files,
            skills_told,
        }
        .asking(how.ask.iter().cloned())
    }

    /// Requires approval for calls of these tools too.
    ///
    /// # Errors
    /// `Usage` if there is no such tool.
    pub(crate) fn asking(
        mut self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Problem> {
        for name in names {
            let is_known = self
                .hands
                .tools()
                .any(|known| known.name().as_str() == name);
            if !is_known && !self.hands.servers.may_have(&name) {
                let known: Vec<&str> = self
                    .hands
                    .tools()
                    .map(|known| known.name().as_str())
                    .collect();
                let problem = Problem::new(Exit::Usage, format!("no tool has this name: {name}"));
                return Err(problem.hint(format!("the tools are {}", known.join(", "))));
            }
            self.asked.insert(name);
        }
        Ok(self)
    }

    /// Prints errors and notices about skills and agents.
    pub(crate) fn tell(&self, screen: &Screen) {
        self.notes
            .told
            .iter()
            .chain(&self.hands.warnings)
            .for_each(|line| screen.tell(line));
        for (what, lines) in [
            ("skills", &self.skills_told),
            ("agents", &self.agent_files.findings),
        ] {
            lines
                .iter()
                .take(MAX_TOLD)
                .for_each(|line| screen.tell(line));
            if let Some(more) = lines.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
                screen.tell(&format!(
                    "{what}: {more} more; `adjutant {what} list` tells all"
                ));
            }
        }
    }

    /// Returns the name of the agent that answers.
    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Returns the model in the file of the agent that answers.
    pub(crate) fn model(&self) -> Option<&str> {
        self.manifest.agents[0]
            .model
            .as_ref()
            .and_then(|model| model.names().next())
    }
}

/// Returns the agent that answers, followed by the agents that it can delegate to.
fn agents(
    how: &How,
    files: &AgentFiles,
    skills: &Skills,
    notes: &str,
    servers: &Servers,
) -> Result<Vec<AgentSpec>, Problem> {
    let (mut lead, mut others) = (None, Vec::new());
    for definition in &files.used {
        check(definition, &how.agents, skills, servers)?;
        let agent = AgentSpec::from(definition.clone());
        if how.agents.agent.as_deref() == Some(&*agent.name) {
            lead = Some(agent);
        } else {
            others.push(agent);
        }
    }
    let mut lead = match (lead, &how.agents.agent) {
        (Some(lead), _) => lead,
        (None, Some(name)) => return Err(missing(name, files)),
        (None, None) => usual(&others, notes, servers),
    };
    lead.max_turns = match (how.max_turns, lead.max_turns) {
        (MaxTurns::AtMost(turns), own) => Some(own.map_or(turns, |own| own.min(turns))),
        (MaxTurns::Unlimited, own) => own,
    };
    let board = ToolboxChoice::Name(BOARD.into());
    if how.agents.board.is_some() && !lead.toolboxes.contains(&board) {
        lead.toolboxes.push(board);
    }
    lead.delegation.depth = if others.is_empty() {
        0
    } else {
        how.agents.depth.unwrap_or(DEPTH)
    };
    if lead.delegation.depth == 0 {
        others.clear();
    }
    let names: Vec<_> = others.iter().map(|agent| agent.name.clone()).collect();
    let mut agents: Vec<AgentSpec> = [lead].into_iter().chain(others).collect();
    for agent in &mut agents {
        agent.options.thinking = how.thinking;
        agent.options.web_search |= how.web_search;
        agent.delegation.agents = (agent.delegation.depth > 0).then(|| names.clone());
    }
    Ok(agents)
}

/// Returns the default agent.
fn usual(others: &[AgentSpec], notes: &str, servers: &Servers) -> AgentSpec {
    let mut agent = AgentSpec::default();
    agent.name = NAME.into();
    while others.iter().any(|other| other.name == agent.name) {
        agent.name = format!("{}-lead", agent.name).into();
    }
    agent.instructions = Some(Instructions::Text(format!("{INSTRUCTIONS}{notes}").into()));
    agent.toolboxes = BOXES
        .iter()
        .map(|name| ToolboxChoice::Name((*name).into()))
        .collect();
    agent.toolboxes.extend(
        servers
            .used()
            .map(|(name, _)| ToolboxChoice::Name(name.clone())),
    );
    agent.skills = vec!["*".into()];
    agent
}

/// Checks the toolboxes and skills that an agent names.
///
/// # Errors
/// `Usage` if one does not exist, or needs a missing board.
fn check(
    definition: &Definition,
    choice: &AgentChoice,
    skills: &Skills,
    servers: &Servers,
) -> Result<(), Problem> {
    if let Some(wrong) = unknown(definition, servers) {
        return Err(wrong);
    }
    if choice.board.is_none() && definition.toolboxes.iter().any(|name| &**name == BOARD) {
        let text = format!(
            "the agent {} works on a board, and there is none",
            definition.name
        );
        return Err(
            Problem::new(Exit::Usage, text).hint("--board names the board, --store where it is")
        );
    }
    let Some(name) = definition
        .skills
        .iter()
        .find(|name| skills.get(name).is_none())
    else {
        return Ok(());
    };
    let text = format!(
        "the agent {} names a skill that is not used: {name}",
        definition.name
    );
    Err(named(
        Problem::new(Exit::Usage, text),
        name,
        skills.iter().map(Skill::name),
        "skills",
    ))
}

/// Returns the problem that an agent names an unknown toolbox.
pub(crate) fn unknown(definition: &Definition, servers: &Servers) -> Option<Problem> {
    let servers = servers.used().map(|(name, _)| &**name);
    let known: Vec<&str> = BOXES.into_iter().chain([BOARD]).chain(servers).collect();
    let wrong = definition
        .toolboxes
        .iter()
        .find(|name| !known.contains(&&***name))?;
    let text = format!(
        "the agent {} names a toolbox that there is not: {wrong}",
        definition.name
    );
    Some(named(
        Problem::new(Exit::Usage, text),
        wrong,
        known.iter().copied(),
        "toolboxes",
    ))
}

/// Returns the problem that an agent does not exist, or is not trusted.
fn missing(name: &str, files: &AgentFiles) -> Problem {
    if files.untrusted.iter().any(|it| &*it.name == name) {
        let problem = Problem::new(
            Exit::Usage,
            format!("nobody trusts the agent of this name: {name}"),
        );
        return problem.hint("read its file in .adjutant/agents, then add --trust");
    }
    let problem = Problem::new(Exit::Usage, format!("no agent has this name: {name}"));
    named(
        problem,
        name,
        files.used.iter().map(|it| &*it.name),
        "agents",
    )
}

/// Adds the names that are most similar to an unknown one, else all names.
fn named<'a>(
    problem: Problem,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    what: &str,
) -> Problem {
    let known: Vec<&str> = known.collect();
    let near = near::near(name, known.iter().copied());
    match (near.is_empty(), known.is_empty()) {
        (false, _) => problem.hint(format!("the nearest are {}", near.join(", "))),
        (true, false) => problem.hint(format!("the {what} are {}", known.join(", "))),
        (true, true) => problem.hint(format!("there are no {what}")),
    }
}
