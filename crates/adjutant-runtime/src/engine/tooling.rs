//! The shared parts of an engine's agents: the store, their programs, their toolboxes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_agent::{Middleware, Placement, effects::EffectRegistry, memory::OwnerId};
use adjutant_context::{Extraction, MAX_REMEMBERED, Memories};
use adjutant_llm::World;
use adjutant_orchestration::{Notes, Reflections, board::Board};
use adjutant_skills::{Root, Skill, Skills};
use adjutant_tool::Toolbox;

use super::store::{Store, place};
use crate::{
    Error, ErrorKind, Manifest, Workspace,
    manifest::{AgentSpec, ReflectionSpec},
    process_tool::{Program, ProgramHolder, Surroundings},
};

/// The key-value store of reflections without a directory.
const REFLECTIONS: &str = "reflections";

/// The parts that all agents of an engine share.
pub(super) struct Tooling {
    pub(super) manifest: Arc<Manifest>,
    pub(super) workspace: Workspace,
    pub(super) world: Arc<dyn World>,
    pub(super) store: Store,
    pub(super) board: Option<Board>,
    pub(super) notes: Option<Notes>,
    pub(super) memories: Option<Memories>,
    pub(super) effects: EffectRegistry,
    /// Toolboxes of the application, by their names.
    pub(super) toolboxes: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    /// The servers of the manifest, by their names.
    pub(super) servers: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    /// Toolboxes of the application that may have too many tools to list.
    pub(super) many: BTreeSet<Arc<str>>,
    /// The toolbox of the agents of other processes that the manifest names.
    pub(super) peers: Option<Arc<dyn Toolbox>>,
    /// Middleware by name.
    pub(super) middleware: BTreeMap<Arc<str>, Arc<dyn Middleware>>,
    /// Replaces the sandbox of this machine.
    #[cfg_attr(
        not(all(feature = "shell", target_os = "linux")),
        allow(dead_code, reason = "nothing is held there")
    )]
    pub(super) holder: Option<ProgramHolder>,
    /// The placement of tasks for a fleet.
    pub(super) placement: Option<Arc<dyn Placement>>,
    programs: BTreeMap<Arc<str>, Program>,
    skills: Skills,
    /// Texts that are never written into notes about failures.
    secrets: Vec<Arc<str>>,
}

/// The parts from the application.
pub(super) struct Given {
    pub(super) workspace: Workspace,
    pub(super) world: Arc<dyn World>,
    pub(super) effects: EffectRegistry,
    pub(super) toolboxes: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    pub(super) servers: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    pub(super) many: BTreeSet<Arc<str>>,
    pub(super) peers: Option<Arc<dyn Toolbox>>,
    pub(super) middleware: BTreeMap<Arc<str>, Arc<dyn Middleware>>,
    /// Replaces the skills of the directories.
    pub(super) skills: Option<Skills>,
    pub(super) secrets: Vec<Arc<str>>,
    /// Replaces the sandbox of this machine.
    pub(super) holder: Option<ProgramHolder>,
    pub(super) placement: Option<Arc<dyn Placement>>,
}

impl Tooling {
    /// Reads skills and programs. Blocks.
    ///
    /// # Errors
    /// `Config` if a part of the manifest is missing, or not supported by this store.
    pub(super) fn new(manifest: &Manifest, store: Store, given: Given) -> Result<Self, Error> {
        let Given {
            workspace,
            world,
            effects,
            toolboxes,
            servers,
            many,
            peers,
            middleware,
            skills,
            secrets,
            holder,
            placement,
        } = given;
        let shared = || Arc::clone(&world);
        let board = manifest
            .board
            .as_ref()
            .map(|board| store.kv(&board.name, "board"));
        let notes = manifest
            .notes
            .as_ref()
            .map(|notes| store.kv(&notes.name, "notes"));
        let memories = manifest.memory.as_ref().map(|memory| {
            let mut memories =
                Memories::new(store.memory()?, OwnerId(Arc::clone(&memory.owner))).world(shared());
            if let Some(limit) = memory.limit {
                memories.limit = usize::try_from(limit).unwrap_or(MAX_REMEMBERED);
            }
            Ok::<_, Error>(memories)
        });
        let roots = manifest.skill_folders.iter().map(Root::named);
        let skills = skills
            .map_or_else(|| Skills::load(roots), Ok)
            .map_err(|error| {
                Error::new(
                    ErrorKind::Config,
                    format!("the skills cannot be read: {error}"),
                )
                .with_source(error)
            })?;
        Ok(Self {
            manifest: Arc::new(manifest.clone()),
            board: board
                .transpose()?
                .map(|kv| Board::new(kv).world(Arc::clone(&world))),
            notes: notes
                .transpose()?
                .map(|kv| Notes::new(kv).world(Arc::clone(&world))),
            memories: memories.transpose()?,
            programs: programs(manifest, &workspace, holder.clone())?,
            holder,
            placement,
            workspace,
            world,
            store,
            effects,
            middleware,
            toolboxes,
            servers,
            many,
            peers,
            skills,
            secrets,
        })
    }

    /// Returns when facts are extracted from runs, if they are.
    pub(super) fn extraction(&self) -> Option<Extraction> {
        self.manifest
            .memory
            .as_ref()
            .filter(|memory| memory.extract)
            .map(|_| Extraction::Awaited)
    }

    /// Returns a program by its name.
    ///
    /// # Errors
    /// `Config` if it does not exist.
    pub(super) fn program(&self, agent: &AgentSpec, name: &str) -> Result<Program, Error> {
        let known = || self.programs.keys().map(|name| &**name).collect::<Vec<_>>();
        self.programs
            .get(name)
            .cloned()
            .ok_or_else(|| unknown(agent, "process tool", name, &known()))
    }

    /// Returns the skills that an agent names.
    ///
    /// # Errors
    /// `Config` if one does not exist.
    pub(super) fn skills(&self, agent: &AgentSpec) -> Result<Skills, Error> {
        if agent.skills.iter().any(|name| &**name == "*") {
            return Ok(self.skills.clone());
        }
        let mut roots = Vec::new();
        for name in &agent.skills {
            let known = || self.skills.iter().map(Skill::name).collect::<Vec<_>>();
            let skill = self
                .skills
                .get(name)
                .ok_or_else(|| unknown(agent, "skill", name, &known()))?;
            roots.extend(
                std::path::Path::new(&*skill.place().file)
                    .parent()
                    .map(Root::named),
            );
        }
        Skills::load(roots).map_err(|error| {
            let message = format!(
                "the skills of the agent {} cannot be read: {error}",
                agent.name
            );
            Error::new(ErrorKind::Config, message).with_source(error)
        })
    }

    /// Returns the reflections of an agent.
    ///
    /// # Errors
    /// `Config` if the directory leads out of the workspace or contains a link, or if the store does not support
    /// reflections.
    pub(super) fn reflections(&self, spec: &ReflectionSpec) -> Result<Reflections, Error> {
        let reflections = match &spec.folder {
            Some(folder) => {
                let (root, path) = (self.workspace.root(), place(self.workspace.root(), folder)?);
                if folder
                    .ancestors()
                    .any(|above| root.join(above).is_symlink())
                {
                    let message =
                        format!("reflections are not kept behind a link: {}", path.display());
                    return Err(Error::new(ErrorKind::Config, message));
                }
                Reflections::in_dir(path)
            }
            None => Reflections::on_kv(self.store.kv(REFLECTIONS, "reflections")?),
        };
        Ok(reflections
            .world(Arc::clone(&self.world))
            .redact(self.secrets.iter().cloned()))
    }
}

/// Creates the programs of a manifest. A sandbox is only looked up if there are any.
fn programs(
    manifest: &Manifest,
    workspace: &Workspace,
    holder: Option<ProgramHolder>,
) -> Result<BTreeMap<Arc<str>, Program>, Error> {
    if manifest.process_tools.is_empty() {
        return Ok(BTreeMap::new());
    }
    let around =
        Surroundings::from_workspace(workspace, &manifest.environment, holder.unwrap_or_default());
    let made = manifest
        .process_tools
        .iter()
        .map(|tool| Ok((Arc::clone(&tool.name), Program::new(tool, &around)?)));
    made.collect()
}

/// Returns the error that an agent names a part that does not exist.
pub(super) fn unknown(agent: &AgentSpec, what: &str, name: &str, known: &[&str]) -> Error {
    let mut message = format!(
        "the agent {} names a {what} that there is not: {name}",
        agent.name
    );
    match known {
        [] => message.push_str("; there is none"),
        known => message.push_str(&format!("; hint: there are {}", known.join(", "))),
    }
    Error::new(ErrorKind::Config, message)
}
