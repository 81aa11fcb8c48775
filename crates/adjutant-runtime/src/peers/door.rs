//! Looks up the address of a peer at each attempt, because a restarted agent may listen elsewhere.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

use crate::{Error, ErrorKind, Home, Prompter, Workspace, files::read_json, prompt::LocalPrompter};

/// The running agents of this process by directory. Each holds its own lock, so a directory has at most one.
static PRESENT: LazyLock<Mutex<BTreeMap<PathBuf, LocalPrompter>>> = LazyLock::new(Mutex::default);

/// Registers a running agent of this process until it is dropped.
pub(crate) struct Present(PathBuf);

/// An agent that can be called.
pub(super) struct Peer {
    pub(super) name: Arc<str>,
    pub(super) description: Arc<str>,
    pub(super) door: Door,
}

/// The address of an agent.
pub(super) enum Door {
    /// The agent with this name in a directory of agents.
    Named { home: Home, agent: Arc<str> },
    /// An agent at this address.
    At {
        address: SocketAddr,
        token: Arc<str>,
    },
    /// An A2A agent at any address.
    A2a {
        url: Arc<str>,
        token: Option<Arc<str>>,
    },
}

/// The part of `host.json` with the address.
#[derive(Deserialize)]
struct Listens {
    address: SocketAddr,
    token: Arc<str>,
}

impl Present {
    pub(crate) fn new(workspace: &Workspace, prompter: LocalPrompter) -> Self {
        present().insert(workspace.root().to_owned(), prompter);
        Self(workspace.root().to_owned())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        // The value is dropped without holding the lock.
        let _gone = present().remove(&self.0);
    }
}

fn present() -> MutexGuard<'static, BTreeMap<PathBuf, LocalPrompter>> {
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    /// Finds the agent; `first` also checks that it answers, so that a failure means that nothing was sent.
    ///
    /// # Errors
    /// `Missing` if it does not exist, `Connection` if it is not running.
    pub(super) async fn find(&self, first: bool) -> Result<Arc<dyn Prompter>, Error> {
        let (address, token) = match &self.door {
            Door::At { address, token } => (*address, Arc::clone(token)),
            Door::A2a { .. } => {
                return Err(Error::new(
                    ErrorKind::Config,
                    "an agent that speaks A2A is not prompted",
                ));
            }
            Door::Named { home, agent } => {
                let (home, agent) = (home.clone(), Arc::clone(agent));
                let found = tokio::task::spawn_blocking(move || listens(&home, &agent)).await;
                let lost = |error| {
                    Error::new(ErrorKind::Storage, "the agents could not be read")
                        .with_source(error)
                };
                match found.map_err(lost)?? {
                    Found::Here(prompter) => return Ok(Arc::new(prompter)),
                    Found::There(Listens { address, token }) => (address, token),
                }
            }
        };
        over_http(address, token, first).await
    }
}

enum Found {
    Here(LocalPrompter),
    There(Listens),
}

fn listens(home: &Home, agent: &str) -> Result<Found, Error> {
    let entries = home.entries()?;
    let Some(entry) = entries.all.into_iter().find(|entry| *entry.name == *agent) else {
        return Err(Error::new(
            ErrorKind::Missing,
            format!("there is no agent {agent} in {}", home.root().display()),
        ));
    };
    if let Some(prompter) = present().get(entry.workspace.root()) {
        return Ok(Found::Here(prompter.clone()));
    }
    let down = || {
        let message = format!("the agent {agent} does not run; hint: adjutant agent start {agent}");
        Error::new(ErrorKind::Connection, message)
    };
    if !entry.workspace.is_hosted()? {
        return Err(down());
    }
    read_json(&entry.workspace.file("host.json"))
        .map(Found::There)
        .map_err(|_| down())
}

#[cfg(feature = "http")]
async fn over_http(
    address: SocketAddr,
    token: Arc<str>,
    first: bool,
) -> Result<Arc<dyn Prompter>, Error> {
    let client = crate::http::Client::new(address, token)?;
    let down = |why: &str| {
        Error::new(
            ErrorKind::Connection,
            format!("the agent at {address} {why}"),
        )
    };
    if first {
        match client.ready().await {
            Ok(true) => {}
            Ok(false) => return Err(down("is about to stop")),
            Err(error) => return Err(down("does not answer").with_source(error)),
        }
    }
    Ok(Arc::new(client))
}

#[cfg(not(feature = "http"))]
async fn over_http(address: SocketAddr, _: Arc<str>, _: bool) -> Result<Arc<dyn Prompter>, Error> {
    Err(Error::new(
        ErrorKind::Config,
        format!("the agent at {address} is reached with the feature `http` alone"),
    ))
}
