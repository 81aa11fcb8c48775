//! The engine: builds a running tree of agents from a resolved manifest, without processes, statuses or HTTP.

mod access;
mod agent;
mod agents;
mod bounds;
mod builder;
mod folder;
mod hands;
mod leads;
mod member;
mod models;
mod parts;
mod pattern;
mod prompter;
mod reflecting;
mod sections;
mod store;
mod toolbox;
mod tooling;

use std::{fmt, path::Path, sync::Arc};

use adjutant_agent::{Agent, LogInfo, Sessions};
use adjutant_llm::{Model, Options};
use adjutant_tool::Toolbox;

pub use builder::EngineBuilder;
pub use models::Models;
pub use parts::Parts;
pub use store::Store;

use crate::{
    credentials::Credentials,
    error::{Error, ErrorKind},
    manifest::{Manifest, Overrides, Resolved},
    prompt::{Lead, LocalPrompter},
    workspace::Workspace,
};

/// The directory next to a manifest in which its engine works.
const BESIDE: &str = ".adjutant";
/// The default session, if the manifest sets none.
const SESSION: &str = "main";

/// A running tree of agents from a manifest, in this process.
///
/// # Example
/// ```no_run
/// use adjutant_runtime::{Engine, Prompter, prompt::PromptRequest};
///
/// # async fn example() -> Result<(), adjutant_runtime::Error> {
/// let engine = Engine::from_file("adjutant.yaml").await?;
/// let reply = engine.prompt(PromptRequest::new("What is in this folder?")).await?;
/// # drop(reply);
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    resolved: Arc<Resolved>,
    workspace: Workspace,
    prompter: LocalPrompter,
    tools: Arc<dyn Toolbox>,
    agents: Arc<agents::Agents>,
}

impl Engine {
    /// Builds the engine of a manifest with the credentials of the environment; it works in `.adjutant` next to the
    /// file.
    ///
    /// # Errors
    /// `Manifest` if the file is invalid, and the errors of [`EngineBuilder::build`].
    pub async fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let resolved = folder::resolve(path, Overrides::default()).await?;
        let beside = path
            .parent()
            .filter(|it| !it.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let beside = std::path::absolute(beside).map_err(|error| {
            let message = format!(
                "the folder of the manifest cannot be found: {}",
                beside.display()
            );
            Error::new(ErrorKind::Storage, message).with_source(error)
        })?;
        let workspace = Workspace::at(beside.join(BESIDE));
        folder::lay(&resolved.manifest.data, &workspace)?;
        let credentials = Credentials::from_lookup(&resolved, |name| std::env::var(name).ok());
        Self::builder(resolved)
            .workspace(workspace)
            .credentials(credentials)
            .build()
            .await
    }

    /// Creates a builder for a resolved manifest, without credentials, in a temporary directory.
    pub fn builder(resolved: Resolved) -> EngineBuilder {
        EngineBuilder::new(resolved)
    }

    /// Returns the configuration that runs.
    pub fn resolved(&self) -> &Arc<Resolved> {
        &self.resolved
    }

    /// Returns the workspace that it runs in.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the agents of a session. While a session is active, the same handle is returned.
    ///
    /// # Errors
    /// `Invalid` if the name is invalid.
    pub fn lead(&self, session: &str) -> Result<Lead, Error> {
        (self.prompter.asked().lead)(session)
    }

    /// Returns the agent of a child session that was created with `on: fleet`; `None` if the session is not such a
    /// child.
    ///
    /// # Errors
    /// `Config` if the manifest has no such agent.
    pub fn child(&self, info: &LogInfo) -> Option<Result<Agent, Error>> {
        self.agents.child(info)
    }

    /// Returns the model of the prompted agent, for objects with a schema.
    pub fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.prompter.asked().model)
    }

    /// Returns the request options of that model.
    pub fn options(&self) -> Options {
        self.prompter.asked().options.clone()
    }

    /// Returns the tools of the first agent for other callers: with its rules, and without denied tools.
    pub fn tools(&self) -> Arc<dyn Toolbox> {
        Arc::clone(&self.tools)
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> Sessions {
        self.prompter.asked().sessions.clone()
    }

    /// Returns the handle for requests to it. The engine lives as long as any clone of the handle.
    pub fn prompter(&self) -> LocalPrompter {
        self.prompter.clone()
    }

    /// Returns the session of a prompt that names none.
    pub fn default_session(&self) -> &str {
        &self.prompter.asked().default_session
    }
}

/// Returns the agent that receives prompts.
///
/// # Errors
/// `Config` if there is no agent with that name.
fn entry(manifest: &Manifest) -> Result<&crate::manifest::AgentSpec, Error> {
    let name = &manifest.entry_agent;
    let found = match &manifest.agents[..] {
        [only] if name.is_empty() => Some(only),
        agents => agents.iter().find(|agent| agent.name == *name),
    };
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            format!("there is no agent that prompts could go to: {name:?}"),
        )
    })
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.resolved.manifest.name)
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}
