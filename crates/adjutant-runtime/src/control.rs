//! One server for several agents, such as the agents of a supervisor: their list, their statuses, and the routes of
//! each; optionally with a web page.

use std::{collections::BTreeMap, convert::Infallible, fmt, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{HeaderMap, header},
    response::{IntoResponse, Response, sse::Event},
    routing::get,
};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::{
    Error, ErrorKind, Goal, Home, Prompter, Status,
    files::{self, Sync},
    http::{self, Client, Door, InSession, ItemStream, PageFile, Plane, Problem, Whom},
    supervisor::{AgentRow, Table},
};

/// The file in a directory of agents with the address of its control plane.
const FILE: &str = "control.json";

/// The address and token of a control plane, in `control.json` of the directory of agents. Only its owner can read it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ControlFile {
    /// The id of the process.
    pub pid: u32,
    /// The address of the control plane.
    pub address: SocketAddr,
    /// The required token; each start creates a new one.
    pub token: String,
}

/// A server on loopback for all agents of a supervisor, or for given ones.
pub struct ControlPlane {
    door: Door,
    agents: ServedAgents,
    page: &'static [PageFile],
}

/// A client of a control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControlClient(Client);

struct ControlSite {
    agents: ServedAgents,
    prompts: Arc<Semaphore>,
    page: &'static [PageFile],
}

/// The served agents.
#[derive(Clone)]
enum ServedAgents {
    /// A supervisor's agents, which can change.
    Supervised(Table),
    /// A fixed list of agents, which are ready.
    Given(Arc<[(AgentRow, Arc<dyn Prompter>)]>),
}

/// The agents of a control plane.
#[derive(Serialize, Deserialize)]
struct AgentList {
    agents: Vec<AgentRow>,
}

impl ControlFile {
    /// Reads the current or last address of the control plane for a directory of agents.
    ///
    /// # Errors
    /// `Missing` if it never ran, `Storage` if the file cannot be read.
    pub fn read(home: &Home) -> Result<Self, Error> {
        files::read_json(&home.root().join(FILE))
    }
}

impl ControlPlane {
    /// Listens for clients of a supervisor's agents, on the previous port if it is free, and writes the address to
    /// `control.json`. Requests are answered after [`serve`](ControlPlane::serve) is called.
    ///
    /// # Errors
    /// `Init` if it cannot listen on any port, `Storage` if the file cannot be written.
    pub async fn bind(home: &Home, table: Table) -> Result<Self, Error> {
        let former = ControlFile::read(home).map_or(0, |former| former.address.port());
        let door = Door::bind(former, None).await?;
        let file = ControlFile {
            pid: std::process::id(),
            address: door.address,
            token: door.token.to_string(),
        };
        files::write_json(&home.root().join(FILE), &file, Sync::Program)?;
        Ok(Self {
            door,
            agents: ServedAgents::Supervised(table),
            page: &[],
        })
    }

    /// Listens for clients of these named agents, on this port, or on any free one if it is 0. Writes no file.
    ///
    /// # Errors
    /// `Init` if the port is in use.
    pub async fn bind_agents(
        agents: Vec<(Arc<str>, Arc<dyn Prompter>)>,
        port: u16,
    ) -> Result<Self, Error> {
        let row = |agent| AgentRow {
            agent,
            id: Uuid::new_v4(),
            status: Status::Ready,
            goal: Goal::Running,
            restarts: 0,
            is_waiting: false,
            next_ms: None,
            given_up: None,
        };
        let agents = agents
            .into_iter()
            .map(|(name, prompter)| (row(name), prompter))
            .collect();
        let door = Door::bind(port, None).await?;
        if port != 0 && door.address.port() != port {
            let text = format!("port {port} of 127.0.0.1 is in use");
            return Err(Error::new(ErrorKind::Init, text));
        }
        Ok(Self {
            door,
            agents: ServedAgents::Given(agents),
            page: &[],
        })
    }

    /// Also serves these files as a web UI: at `/`, and below `/app/`. A browser sends the token once, and receives a
    /// cookie.
    #[must_use]
    pub fn page(self, page: &'static [PageFile]) -> Self {
        Self { page, ..self }
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address
    }

    /// Returns the required token.
    pub fn token(&self) -> &str {
        &self.door.token
    }

    /// Serves until `ended` completes.
    pub async fn serve(self, ended: impl Future<Output = ()> + Send) {
        let Self {
            door,
            agents: all,
            page,
        } = self;
        let mut keys = door.keys();
        keys.visitor = (!page.is_empty()).then(http::new_token);
        let router = Router::new()
            .route("/v1/ready", get(async || Json(json!({ "ready": true }))))
            .route("/v1/agents", get(agents))
            .route("/v1/agents/{agent}", get(agent))
            .route("/v1/agents/{agent}/export", get(export));
        let router = http::with_page(
            http::add_agent_routes(router, "/v1/agents/{agent}"),
            page,
            &keys,
        );
        let site = Arc::new(ControlSite {
            agents: all,
            prompts: http::places(),
            page,
        });
        door.serve(http::guarded(router, keys).with_state(site), ended)
            .await;
    }
}

impl Plane for ControlSite {
    async fn prompter(&self, agent: Option<&str>) -> Result<Arc<dyn Prompter>, Error> {
        self.agents.prompter(agent.unwrap_or_default()).await
    }

    fn prompts(&self) -> &Arc<Semaphore> {
        &self.prompts
    }
}

impl ServedAgents {
    async fn prompter(&self, name: &str) -> Result<Arc<dyn Prompter>, Error> {
        match self {
            Self::Supervised(table) => {
                table
                    .agent(name)
                    .ok_or_else(|| missing(name))?
                    .prompter()
                    .await
            }
            Self::Given(agents) => {
                let found = agents.iter().find(|(row, _)| is_named(row, name));
                found
                    .map(|(_, prompter)| Arc::clone(prompter))
                    .ok_or_else(|| missing(name))
            }
        }
    }

    fn rows(&self) -> Arc<[AgentRow]> {
        match self {
            Self::Supervised(table) => table.rows(),
            Self::Given(agents) => agents.iter().map(|(row, _)| row.clone()).collect(),
        }
    }

    /// Waits until a row changes; false if no row can change.
    async fn changed(&mut self) -> bool {
        match self {
            Self::Supervised(table) => table.changed().await,
            Self::Given(_) => std::future::pending().await,
        }
    }
}

fn is_named(row: &AgentRow, name: &str) -> bool {
    *row.agent == *name || row.id.to_string() == name
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Missing, format!("there is no agent {name:?}"))
}

async fn agents(State(site): State<Arc<ControlSite>>, headers: HeaderMap) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if accept.contains("text/event-stream") {
        return http::respond(news(site.agents.clone()));
    }
    Json(AgentList {
        agents: site.agents.rows().to_vec(),
    })
    .into_response()
}

async fn agent(
    State(site): State<Arc<ControlSite>>,
    Path(name): Path<String>,
) -> Result<Json<AgentRow>, Problem> {
    let rows = site.agents.rows();
    let row = rows.iter().find(|row| is_named(row, &name));
    Ok(Json(row.ok_or_else(|| missing(&name))?.clone()))
}

/// Returns a session as one HTML file with the web UI.
async fn export(
    State(site): State<Arc<ControlSite>>,
    whom: Whom,
    query: Result<Query<InSession>, QueryRejection>,
) -> Result<Response, Problem> {
    let Some(session) = http::asked(query)?.session else {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a session that is exported is named: ?session=NAME",
        )
        .into());
    };
    if site.page.is_empty() {
        return Err(Error::new(
            ErrorKind::Missing,
            "there is no page here that a session could be exported with",
        )
        .into());
    }
    Ok(http::export(site.page, &whom.prompter, &session).await?)
}

/// Emits every agent, then each changed row; a deleted agent is emitted as `removed`. A slow reader misses intermediate
/// rows, never the last one.
fn news(table: ServedAgents) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let told: BTreeMap<Uuid, AgentRow> = BTreeMap::new();
    let changes = stream::unfold(Some((table, told, true)), |state| async move {
        let (mut table, told, is_first) = state?;
        if !is_first && !table.changed().await {
            return Some((vec![Event::default().event(http::END).data("{}")], None));
        }
        let now: BTreeMap<Uuid, AgentRow> = table
            .rows()
            .iter()
            .map(|row| (row.id, row.clone()))
            .collect();
        let gone = told.values().filter(|row| !now.contains_key(&row.id));
        let gone = gone.map(|row| AgentRow {
            status: Status::Removed,
            ..row.clone()
        });
        let changed = now
            .values()
            .filter(|row| told.get(&row.id) != Some(row))
            .cloned();
        let frames = changed
            .chain(gone)
            .map(|row| http::frame("agent", &row))
            .collect();
        Some((frames, Some((table, now, false))))
    });
    changes.flat_map(stream::iter).map(Ok)
}

impl ControlClient {
    /// Creates a client for the control plane at this address.
    ///
    /// # Errors
    /// `Config` if the HTTP client cannot be created.
    pub fn new(address: SocketAddr, token: impl Into<Arc<str>>) -> Result<Self, Error> {
        Ok(Self(Client::new(address, token)?))
    }

    /// Returns the agents, sorted by name.
    ///
    /// # Errors
    /// `Denied` if the token is wrong, `Connection` if the server cannot be reached.
    pub async fn agents(&self) -> Result<Vec<AgentRow>, Error> {
        Ok(self.0.get::<AgentList>("/agents", &[]).await?.agents)
    }

    /// Watches the agents: first every agent, then each change.
    ///
    /// # Errors
    /// Like [`agents`](ControlClient::agents).
    pub async fn watch(&self) -> Result<ItemStream<AgentRow>, Error> {
        self.0.follow("/agents", &[]).await
    }

    /// Returns a client for one agent, by its name or id.
    ///
    /// # Errors
    /// `Invalid` if it can be neither.
    pub fn agent(&self, name: &str) -> Result<Arc<dyn Prompter>, Error> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(fits) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("no agent can have this name: {name:?}"),
            ));
        }
        Ok(Arc::new(self.0.below(format!("/v1/agents/{name}"))))
    }
}

impl fmt::Debug for ControlFile {
    /// Omits the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlFile")
            .field("pid", &self.pid)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("address", &self.door.address)
            .finish_non_exhaustive()
    }
}
