//! The toolboxes of an agent with effects: files, commands and web pages.

use std::{path::Path, sync::Arc};

use adjutant_agent::Middleware;
use adjutant_tool::Toolbox;
use adjutant_toolkit::{Edits, Files, Plan, ask_user};

use super::{toolbox, tooling::Tooling};
use crate::{
    Error, ErrorKind,
    manifest::{AgentSpec, TOOLBOXES, ToolboxChoice},
};

/// The toolboxes with actions that need an approval.
const ACTS: [&str; 3] = ["edits", "shell", "fetch"];

/// The directory of an agent's files. Its toolboxes share the states of the files that were read.
pub(super) struct Hands<'a> {
    tooling: &'a Tooling,
    agent: &'a AgentSpec,
    files: Option<Files>,
    /// The middleware that they need.
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
}

impl<'a> Hands<'a> {
    pub(super) fn new(tooling: &'a Tooling, agent: &'a AgentSpec) -> Self {
        Self {
            tooling,
            agent,
            files: None,
            middleware: Vec::new(),
        }
    }

    /// Returns the files.
    ///
    /// # Errors
    /// `Config` if the directory cannot be used.
    pub(super) fn files(&mut self) -> Result<Files, Error> {
        if let Some(files) = &self.files {
            return Ok(files.clone());
        }
        let root = toolbox::root(self.tooling, self.agent);
        let files =
            Files::new(&root).and_then(|files| match toolbox::is_own(self.tooling, &root) {
                true => Ok(files),
                false => files.without(toolbox::kept(self.tooling)),
            });
        let files = files.map_err(|error| self.cannot("the files", &root, error))?;
        Ok(self.files.insert(files).clone())
    }

    /// Returns a toolbox with effects; `None` if the name is another one.
    ///
    /// # Errors
    /// `Config` if the directory cannot be used, or if this program was built without the toolbox.
    pub(super) fn toolbox(&mut self, name: &str) -> Result<Option<Arc<dyn Toolbox>>, Error> {
        Ok(Some(match name {
            "edits" => Arc::new(Edits::new(&self.files()?).toolbox()),
            "plan" => Arc::new(Plan::new().toolbox()),
            "ask_user" => Arc::new(ask_user()),
            #[cfg(feature = "fetch")]
            "fetch" => {
                let fetch = adjutant_toolkit::Fetch::new();
                let rules = super::access::rules(self.agent, self.tooling)?;
                Arc::new(
                    rules
                        .into_iter()
                        .fold(fetch, adjutant_toolkit::Fetch::rules)
                        .toolbox(),
                )
            }
            #[cfg(all(feature = "shell", target_os = "linux"))]
            "git" => {
                let root = self.command_root()?;
                let git = adjutant_toolkit::Git::new(
                    &root,
                    self.tooling.holder.clone().unwrap_or_default().0,
                );
                Arc::new(
                    git.map_err(|error| self.cannot("the repository", &root, error))?
                        .toolbox(),
                )
            }
            #[cfg(all(feature = "shell", target_os = "linux"))]
            "shell" => {
                let root = self.command_root()?;
                let sandbox = self.tooling.holder.clone().unwrap_or_default().0;
                let shell = adjutant_toolkit::Shell::new(&root, sandbox);
                let shell = shell.map_err(|error| self.cannot("the commands", &root, error))?;
                let tools = shell.toolbox();
                self.middleware.push(ending(move || shell.end_run()));
                Arc::new(tools)
            }
            name if TOOLBOXES.contains(&name) => {
                let message = format!(
                    "the agent {} has the toolbox {name}, and this program has none",
                    self.agent.name
                );
                return Err(Error::new(ErrorKind::Config, message));
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the directory of commands. It must not contain the directory of agents, because a command that reads the
    /// tokens there could call every agent.
    #[cfg(all(feature = "shell", target_os = "linux"))]
    fn command_root(&self) -> Result<std::path::PathBuf, Error> {
        let root = toolbox::root(self.tooling, self.agent);
        let kept = toolbox::kept(self.tooling);
        let holds = |root: &Path| kept.canonicalize().is_ok_and(|kept| kept.starts_with(root));
        if !toolbox::is_own(self.tooling, &root)
            && root.canonicalize().is_ok_and(|root| holds(&root))
        {
            let message = format!(
                "the agent {} runs commands in {}, where agents are kept; hint: keep them elsewhere, by --home",
                self.agent.name,
                root.display()
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        Ok(root)
    }

    fn cannot(&self, what: &str, root: &Path, error: adjutant_toolkit::Error) -> Error {
        if !root.exists() {
            let message = format!(
                "the agent {} works in {}, and there is no such folder; hint: make it, or name another one as the `root` \
                 of its toolbox",
                self.agent.name,
                root.display()
            );
            return Error::new(ErrorKind::Config, message);
        }
        let message = format!(
            "the agent {} cannot have {what} of {}",
            self.agent.name,
            root.display()
        );
        Error::new(ErrorKind::Config, message).with_source(error)
    }
}

/// True if an agent has a built-in toolbox, or a server, with actions that need an approval.
pub(super) fn acts(tooling: &Tooling, agent: &AgentSpec) -> bool {
    agent.toolboxes.iter().map(ToolboxChoice::name).any(|name| {
        let is_given = tooling.toolboxes.contains_key(name);
        !is_given && (ACTS.contains(&&**name) || tooling.servers.contains_key(name))
    })
}

/// Terminates background work when the last run of an agent has ended or waits.
#[cfg(all(feature = "shell", target_os = "linux"))]
fn ending(end: impl Fn() + Send + Sync + 'static) -> Arc<dyn Middleware> {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let (at_work, end) = (Arc::new(AtomicUsize::new(0)), Arc::new(end));
    Arc::new(adjutant_agent::middleware_fn(
        "commands",
        move |cx, next| {
            struct Guard<F: Fn()>(Arc<AtomicUsize>, Arc<F>);
            impl<F: Fn()> Drop for Guard<F> {
                fn drop(&mut self) {
                    if self.0.fetch_sub(1, Ordering::AcqRel) == 1 {
                        (self.1)();
                    }
                }
            }
            at_work.fetch_add(1, Ordering::AcqRel);
            let guard = Guard(Arc::clone(&at_work), Arc::clone(&end));
            Box::pin(async move {
                let _guard = guard;
                next.run(cx).await
            })
        },
    ))
}
