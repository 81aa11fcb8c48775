//! The builder of an engine: a resolved manifest, and additional parts of an application.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{Middleware, Placement, Sessions};
use adjutant_llm::{Model, SystemWorld, World};
use adjutant_providers::{Origin, Provider};
use adjutant_skills::Skills;
use adjutant_tool::Toolbox;

use super::{
    Engine, SESSION,
    agents::Agents,
    entry,
    folder::Folder,
    leads::Leads,
    member::Member,
    models::Models,
    parts::Parts,
    store::Store,
    toolbox::Piece,
    tooling::{Given, Tooling},
};
use crate::{
    Credentials, Error, ErrorKind, Manifest, Resolved, Workspace,
    kept_rules::KeptRules,
    manifest::ModelChoice,
    peers,
    process_tool::ProgramHolder,
    prompt::{Asked, Calls, Glances, LocalPrompter, SessionTable},
};

/// Builds an engine.
#[must_use]
pub struct EngineBuilder {
    resolved: Resolved,
    workspace: Option<Workspace>,
    credentials: Credentials,
    world: Arc<dyn World>,
    parts: Parts,
    origin: Origin,
    chosen_from: Option<Models>,
    store: Option<Store>,
    skills: Option<Skills>,
    holder: Option<ProgramHolder>,
    many: BTreeSet<Arc<str>>,
    placement: Option<Arc<dyn Placement>>,
}

impl EngineBuilder {
    pub(super) fn new(resolved: Resolved) -> Self {
        Self {
            resolved,
            workspace: None,
            credentials: Credentials::none(),
            world: Arc::new(SystemWorld),
            parts: Parts::new(),
            origin: Origin::File,
            chosen_from: None,
            store: None,
            skills: None,
            holder: None,
            many: BTreeSet::new(),
            placement: None,
        }
    }

    /// Sets the directory in which it works; by default a temporary one, which is removed with the engine.
    pub fn workspace(self, workspace: Workspace) -> Self {
        Self {
            workspace: Some(workspace),
            ..self
        }
    }

    /// Sets the credentials.
    pub fn credentials(self, credentials: Credentials) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    /// Sets clock, ids and randomness.
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Sets these parts, replacing earlier ones.
    pub fn parts(self, parts: Parts) -> Self {
        Self { parts, ..self }
    }

    /// Uses this model wherever the manifest uses this name.
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        self.parts = self.parts.model(name, model);
        self
    }

    /// Chooses models from these, instead of the manifest's and the environment's.
    pub fn models(self, models: Models) -> Self {
        Self {
            chosen_from: Some(models),
            ..self
        }
    }

    /// Uses this store instead of the one in the manifest.
    pub fn store(self, store: Store) -> Self {
        Self {
            store: Some(store),
            ..self
        }
    }

    /// Uses these skills instead of the manifest's directories.
    pub fn skills(self, skills: Skills) -> Self {
        Self {
            skills: Some(skills),
            ..self
        }
    }

    /// Runs the programs of the manifest in this sandbox, instead of the best one of this machine.
    ///
    /// Each tool can have the additional permissions of its manifest entry.
    #[cfg(all(feature = "shell", target_os = "linux"))]
    pub fn sandbox(self, sandbox: adjutant_toolkit::Sandbox) -> Self {
        Self {
            holder: Some(ProgramHolder(sandbox)),
            ..self
        }
    }

    /// Sets where tasks with `on: fleet` run; without it, such a manifest is refused.
    ///
    /// The process that runs the sessions of these agents creates them with [`Engine::child`].
    pub fn placement(self, placement: impl Placement + 'static) -> Self {
        Self {
            placement: Some(Arc::new(placement)),
            ..self
        }
    }

    /// Adds a toolbox that the manifest may use, replacing one with that name.
    pub fn toolbox(mut self, name: impl Into<Arc<str>>, toolbox: impl Toolbox + 'static) -> Self {
        self.parts = self.parts.toolbox(name, toolbox);
        self
    }

    /// Adds a toolbox like [`toolbox`](Self::toolbox) that may have too many tools to list: an agent then finds them
    /// with the tool `find_tools`, like the tools of a manifest's servers.
    pub fn server(mut self, name: impl Into<Arc<str>>, toolbox: impl Toolbox + 'static) -> Self {
        let name = name.into();
        self.many.insert(Arc::clone(&name));
        self.toolbox(name, toolbox)
    }

    /// Adds a middleware that the manifest may use, replacing one with that name: `logger`, `recovery`.
    pub fn middleware(
        mut self,
        name: impl Into<Arc<str>>,
        middleware: impl Middleware + 'static,
    ) -> Self {
        self.parts = self.parts.middleware(name, middleware);
        self
    }

    /// Adds a provider of models, replacing one with that name.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.parts = self.parts.provider(provider);
        self
    }

    /// Trusts the addresses in the manifest: keys of known vendors are sent there too.
    ///
    /// Without it, such a key is sent only to its vendor's own hosts, to an address from the environment, and to a
    /// [`provider`](Self::provider) that was added here.
    pub fn trusted(self) -> Self {
        Self {
            origin: Origin::Environment,
            ..self
        }
    }

    /// Builds the engine: opens its store, creates its models, and checks every name.
    ///
    /// No model is called yet.
    ///
    /// # Errors
    /// `Model` if a model or its key is not available, `Config` if the manifest is invalid or a program does not match
    /// its recorded digest, `Storage` if a store or a directory cannot be used.
    pub async fn build(self) -> Result<Engine, Error> {
        let is_used = self.uses_folder();
        let Self {
            resolved,
            workspace,
            credentials,
            world,
            parts,
            ..
        } = self;
        let Parts {
            models,
            effects,
            toolboxes,
            middleware,
            providers,
        } = parts;
        let manifest = &resolved.manifest;
        manifest.check_version()?;
        let first = entry(manifest)?;
        let (folder, workspace) = Folder::open(workspace, is_used)?;
        let store = match self.store {
            Some(store) => store,
            None => Store::open(&manifest.sessions.store, &workspace, &credentials, &world).await?,
        };
        let chosen_from = match self.chosen_from {
            Some(chosen_from) => chosen_from,
            None => Models::from_manifest(
                manifest,
                &credentials,
                providers,
                Arc::clone(&world),
                self.origin,
            )?,
        };
        let mut models = chosen_from.given(models);
        let peers = (!manifest.peers.is_empty())
            .then(|| peers::toolbox(manifest, &workspace, &credentials, &world));
        let servers = servers(manifest, &workspace, &credentials, self.holder.as_ref())?;
        let given = Given {
            servers,
            many: self.many,
            workspace: workspace.clone(),
            world: Arc::clone(&world),
            effects,
            toolboxes,
            peers: peers.transpose()?,
            middleware,
            skills: self.skills,
            holder: self.holder,
            placement: self.placement,
            // A variable of a server can have any name.
            secrets: credentials
                .iter()
                .map(|(_, value)| value)
                .filter(|it| it.len() >= 6)
                .map(Arc::from)
                .collect(),
        };
        let tooling = Tooling::new(manifest, store, given)?;
        let members = members(manifest, &first.name, &tooling, &mut models).await?;
        let rules = members
            .iter()
            .filter_map(|it| Some((Arc::clone(&it.spec.name), it.rules.clone()?)))
            .collect();
        let (models, due) = (Mutex::new(models), tooling.store.due_work().ok());
        let (lasts, sessions) = (
            tooling.store.lasts(),
            Sessions::new(tooling.store.journal()).world(world),
        );
        let agents = Agents::new(tooling, members)?;
        let lead = agents
            .member(&first.name)
            .and_then(|lead| Some((lead, lead.model.clone()?)));
        let (lead, model) = lead
            .ok_or_else(|| Error::new(ErrorKind::Model, format!("{} has no model", first.name)))?;
        let (tools, options) = (lead.offered(), lead.options.clone());
        let is_named = lead
            .toolboxes
            .iter()
            .any(|piece| matches!(piece, Piece::Board(_)));
        let leads = Arc::new(Leads::new(
            agents.lead(lead)?,
            Arc::clone(&first.name),
            is_named,
        ));
        let forgetful = Arc::clone(&leads);
        let default_session = manifest
            .sessions
            .default_session
            .clone()
            .unwrap_or_else(|| SESSION.into());
        let (usual, table) = (Arc::clone(&default_session), SessionTable::new());
        let prompter = LocalPrompter::over(Asked {
            lead: Box::new(move |session| {
                // A temporary directory is removed with the last handle.
                let _in = &folder;
                leads.lead(session, &usual)
            }),
            forget: Box::new(move |session| forgetful.forget(session)),
            model,
            models: Box::new(move |name| named(&models, name)),
            options,
            sessions,
            due,
            glances: Glances::with_table(&table),
            default_session,
            name: Arc::clone(&manifest.name),
            lasts,
            calls: Calls::default(),
            table,
            rules,
            kept_rules: KeptRules::from_workspace(&workspace),
        });
        Ok(Engine {
            resolved: Arc::new(resolved),
            workspace,
            prompter,
            tools,
            agents,
        })
    }

    /// True if data is stored, read or executed in the workspace.
    fn uses_folder(&self) -> bool {
        let manifest = &self.resolved.manifest;
        let keeps = self.store.is_none()
            || manifest
                .agents
                .iter()
                .any(|agent| agent.reflections.is_some());
        keeps
            || !self.parts.toolboxes.contains_key("files")
            || !manifest.process_tools.is_empty()
            || !manifest.mcp.servers.is_empty()
    }
}

/// Creates all agents of a manifest, with models for search.
async fn members(
    manifest: &Manifest,
    first: &str,
    tooling: &Tooling,
    models: &mut Models,
) -> Result<Vec<Member>, Error> {
    let mut members = Vec::with_capacity(manifest.agents.len());
    for agent in &manifest.agents {
        if members
            .iter()
            .any(|known: &Member| known.spec.name == agent.name)
        {
            return Err(Error::new(
                ErrorKind::Config,
                format!("two agents have the name {:?}", agent.name),
            ));
        }
        let mut member = Member::new(agent, tooling, models).await?;
        if *agent.name == *first && member.model.is_none() {
            let offered = models.offered().await?.model.info().id.as_str().into();
            member.model = Some(models.chosen(&ModelChoice::Name(offered))?);
        }
        members.push(member);
    }
    let usual = members
        .iter()
        .find(|it| *it.spec.name == *first)
        .and_then(|it| it.model.clone());
    members
        .iter_mut()
        .try_for_each(|member| member.search(usual.as_ref(), models))?;
    Ok(members)
}

/// Returns the model with a name, for a run that continues with another model.
fn named(models: &Mutex<Models>, name: &str) -> Result<Arc<dyn Model>, Error> {
    let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
    models.chosen(&ModelChoice::Name(name.into()))
}

/// Returns the servers of a manifest, as toolboxes.
#[cfg(feature = "mcp")]
fn servers(
    manifest: &Manifest,
    workspace: &Workspace,
    credentials: &Credentials,
    holder: Option<&ProgramHolder>,
) -> Result<BTreeMap<Arc<str>, Arc<dyn Toolbox>>, Error> {
    if manifest.mcp.servers.is_empty() {
        return Ok(BTreeMap::new());
    }
    crate::mcp::toolboxes(
        manifest,
        workspace,
        credentials,
        holder.map(ProgramHolder::sandbox).unwrap_or_default(),
    )
}

/// This program was built without MCP.
#[cfg(not(feature = "mcp"))]
fn servers(
    manifest: &Manifest,
    _: &Workspace,
    _: &Credentials,
    _: Option<&ProgramHolder>,
) -> Result<BTreeMap<Arc<str>, Arc<dyn Toolbox>>, Error> {
    match manifest.mcp.servers.keys().next() {
        None => Ok(BTreeMap::new()),
        Some(name) => {
            let message = format!(
                "the manifest has the server {name}, and this program was built without the feature `mcp`"
            );
            Err(Error::new(ErrorKind::Config, message))
        }
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder")
            .field("name", &self.resolved.manifest.name)
            .field("workspace", &self.workspace)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}
