//! An engine in the making: what is resolved, and what an application gives beside it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_agent::{Sessions, effects::EffectRegistry};
use adjutant_llm::{Model, SystemWorld, World};
use adjutant_providers::{Origin, Provider};
use adjutant_tool::Toolbox;

use super::{
    Engine, SESSION,
    crew::Crew,
    entry,
    folder::Folder,
    kit::{Given, Kit},
    leads::Leads,
    member::Member,
    models::Models,
    shared_world::SharedWorld,
    store::Store,
    toolbox::Piece,
};
use crate::{Credentials, Error, ErrorKind, Resolved, Workspace, prompt::SessionTable};

/// An engine in the making.
#[must_use]
pub struct EngineBuilder {
    resolved: Resolved,
    workspace: Option<Workspace>,
    credentials: Credentials,
    world: Arc<dyn World>,
    models: BTreeMap<Arc<str>, Arc<dyn Model>>,
    effects: EffectRegistry,
    toolboxes: BTreeMap<Arc<str>, Arc<dyn Toolbox>>,
    providers: Vec<Provider>,
    origin: Origin,
}

impl EngineBuilder {
    pub(super) fn new(resolved: Resolved) -> Self {
        Self {
            resolved,
            workspace: None,
            credentials: Credentials::none(),
            world: Arc::new(SystemWorld),
            models: BTreeMap::new(),
            effects: adjutant_context::register(EffectRegistry::new()),
            toolboxes: BTreeMap::new(),
            providers: Vec::new(),
            origin: Origin::File,
        }
    }

    /// Sets the folder that it works in; a temporary one without it, which is removed with the engine.
    pub fn workspace(self, workspace: Workspace) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Sets the credentials.
    pub fn credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Sets clock, ids and chance.
    pub fn world(self, world: impl World + 'static) -> Self {
        Self { world: Arc::new(world), ..self }
    }

    /// Takes this model wherever the manifest names one of this name.
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Sets the kinds of effects that the manifest may name; those that come with the agent without it.
    pub fn effects(self, effects: EffectRegistry) -> Self {
        Self { effects, ..self }
    }

    /// Adds a toolbox that the manifest may name, in the place of one of that name.
    pub fn toolbox(mut self, name: impl Into<Arc<str>>, toolbox: impl Toolbox + 'static) -> Self {
        self.toolboxes.insert(name.into(), Arc::new(toolbox));
        self
    }

    /// Adds a provider of models, in the place of one of that name.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Vouches for the addresses that the manifest names: keys of known vendors go there too.
    ///
    /// Without it, such a key goes to its vendor's own hosts, to an address of the environment, and to a
    /// [`provider`](Self::provider) that is given here, but to no other address that the manifest names.
    pub fn trusted(self) -> Self {
        Self { origin: Origin::Environment, ..self }
    }

    /// Builds the engine: opens its store, makes its models, and holds every name against what there is.
    ///
    /// Nothing is asked of a model yet.
    ///
    /// # Errors
    /// `Model` if a model or the key for it cannot be had, `Config` if the manifest is wrong about something or a program is
    /// not what was pinned, `Storage` if a store or a folder cannot be used.
    pub async fn build(self) -> Result<Engine, Error> {
        let Self { resolved, workspace, credentials, world, models, effects, toolboxes, providers, origin } = self;
        let manifest = &resolved.manifest;
        let first = entry(manifest)?;
        let (folder, workspace) = Folder::of(workspace)?;
        let store = Store::open(&manifest.sessions.store, &workspace, &credentials, &world).await?;
        let mut models = Models::new(manifest, &credentials, providers, &world, origin)?.given(models);
        let given = Given {
            workspace: workspace.clone(),
            world: Arc::clone(&world),
            effects,
            toolboxes,
            secrets: credentials.iter().map(|(_, value)| value.into()).collect(),
        };
        let kit = Kit::new(manifest, store, given)?;
        let mut members = Vec::with_capacity(manifest.agents.len());
        for agent in &manifest.agents {
            if members.iter().any(|known: &Member| known.spec.name == agent.name) {
                return Err(Error::new(ErrorKind::Config, format!("two agents have the name {:?}", agent.name)));
            }
            let mut member = Member::new(agent, &kit, &mut models).await?;
            if agent.name == first.name && member.model.is_none() {
                member.model = Some(models.usual().await?);
            }
            members.push(member);
        }
        let sessions = Sessions::new(kit.store.journal()).world(SharedWorld(world));
        let crew = Crew::new(kit, members)?;
        let lead = crew.member(&first.name).expect("the agent that prompts go to is one of them");
        let model = lead.model.clone().expect("the agent that prompts go to was given a model");
        let is_named = lead.toolboxes.iter().any(|piece| matches!(piece, Piece::Board(_)));
        Ok(Engine {
            options: lead.options.clone(),
            leads: Leads::new(crew.lead(lead)?, Arc::clone(&first.name), is_named),
            default_session: manifest.sessions.default_session.clone().unwrap_or_else(|| SESSION.into()),
            table: SessionTable::new(),
            model,
            sessions,
            workspace,
            resolved: Arc::new(resolved),
            _folder: folder,
        })
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
