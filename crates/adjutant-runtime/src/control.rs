//! The one place from which all agents of a supervisor are asked: which there are, where they stand, and each of them over
//! the routes that it has itself.

use std::{collections::BTreeMap, convert::Infallible, fmt, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, State},
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
    Error, ErrorKind, Home, Prompter, Status,
    files::{self, Sync},
    http::{self, Client, Door, ItemStream, Plane, Problem},
    supervisor::{AgentRow, Table},
};

/// The file of a folder of agents that tells where its control plane listens.
const FILE: &str = "control.json";

/// The data that a control plane tells of itself, in `control.json` of the folder of agents. Only its owner can read it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ControlFile {
    /// Its process.
    pub pid: u32,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The token that a caller must show: another one at each start.
    pub token: String,
}

/// A server for all agents of a supervisor, on loopback.
pub struct ControlPlane {
    door: Door,
    site: Arc<ControlSite>,
}

/// A caller of a control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControlClient(Client);

struct ControlSite {
    table: Table,
    prompts: Arc<Semaphore>,
}

/// The agents of a control plane.
#[derive(Serialize, Deserialize)]
struct AgentList {
    agents: Vec<AgentRow>,
}

impl ControlFile {
    /// Reads where the control plane of a folder of agents listens, or listened last.
    ///
    /// # Errors
    /// `Missing` if there was none, `Storage` if it cannot be read.
    pub fn read(home: &Home) -> Result<Self, Error> {
        files::read_json(&home.root().join(FILE))
    }
}

impl ControlPlane {
    /// Listens for callers of the agents of a supervisor, on the port that was used last if it is free, and tells where in
    /// `control.json`. Nothing is answered before [`serve`](ControlPlane::serve).
    ///
    /// # Errors
    /// `Init` if no port can be had, `Storage` if the file cannot be written.
    pub async fn bind(home: &Home, table: Table) -> Result<Self, Error> {
        let former = ControlFile::read(home).map_or(0, |former| former.address.port());
        let door = Door::bind(former, None).await?;
        let file = ControlFile { pid: std::process::id(), address: door.address, token: door.token.to_string() };
        files::write_json(&home.root().join(FILE), &file, Sync::Program)?;
        Ok(Self { door, site: Arc::new(ControlSite { table, prompts: http::places() }) })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.door.address
    }

    /// Returns the token that a caller must show.
    pub fn token(&self) -> &str {
        &self.door.token
    }

    /// Serves until this ends.
    pub async fn serve(self, ended: impl Future<Output = ()> + Send) {
        let Self { door, site } = self;
        let router = Router::new()
            .route("/v1/ready", get(async || Json(json!({ "ready": true }))))
            .route("/v1/agents", get(agents))
            .route("/v1/agents/{agent}", get(agent));
        let router = http::guarded(http::of_agent(router, "/v1/agents/{agent}"), door.keys());
        door.serve(router.with_state(site), ended).await;
    }
}

impl Plane for ControlSite {
    async fn prompter(&self, agent: Option<&str>) -> Result<Arc<dyn Prompter>, Error> {
        let name = agent.unwrap_or_default();
        self.table.agent(name).ok_or_else(|| missing(name))?.prompter().await
    }

    fn prompts(&self) -> &Arc<Semaphore> {
        &self.prompts
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Missing, format!("there is no agent {name:?}"))
}

async fn agents(State(site): State<Arc<ControlSite>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("text/event-stream") {
        return http::respond(news(site.table.clone()));
    }
    Json(AgentList { agents: site.table.rows().to_vec() }).into_response()
}

async fn agent(State(site): State<Arc<ControlSite>>, Path(name): Path<String>) -> Result<Json<AgentRow>, Problem> {
    let rows = site.table.rows();
    let row = rows.iter().find(|row| *row.agent == *name || row.id.to_string() == name);
    Ok(Json(row.ok_or_else(|| missing(&name))?.clone()))
}

/// Every agent at once, then each whose row has changed; one that is gone is told as `removed`. A slow reader misses what
/// is between, never the last row.
fn news(table: Table) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let told: BTreeMap<Uuid, AgentRow> = BTreeMap::new();
    let changes = stream::unfold(Some((table, told, true)), |state| async move {
        let (mut table, told, is_first) = state?;
        if !is_first && !table.changed().await {
            return Some((vec![Event::default().event(http::END).data("{}")], None));
        }
        let now: BTreeMap<Uuid, AgentRow> = table.rows().iter().map(|row| (row.id, row.clone())).collect();
        let gone = told.values().filter(|row| !now.contains_key(&row.id));
        let gone = gone.map(|row| AgentRow { status: Status::Removed, ..row.clone() });
        let changed = now.values().filter(|row| told.get(&row.id) != Some(row)).cloned();
        let frames = changed.chain(gone).map(|row| http::frame("agent", &row)).collect();
        Some((frames, Some((table, now, false))))
    });
    changes.flat_map(stream::iter).map(Ok)
}

impl ControlClient {
    /// A caller of the control plane that listens there.
    ///
    /// # Errors
    /// `Config` if no client can be made.
    pub fn new(address: SocketAddr, token: impl Into<Arc<str>>) -> Result<Self, Error> {
        Ok(Self(Client::new(address, token)?))
    }

    /// Returns the agents, sorted by their names.
    ///
    /// # Errors
    /// `Denied` if the token is wrong, `Connection` if nobody answers.
    pub async fn agents(&self) -> Result<Vec<AgentRow>, Error> {
        Ok(self.0.get::<AgentList>("/agents", &[]).await?.agents)
    }

    /// Watches the agents: every one at once, then each that has changed.
    ///
    /// # Errors
    /// As [`agents`](ControlClient::agents).
    pub async fn watch(&self) -> Result<ItemStream<AgentRow>, Error> {
        self.0.follow("/agents", &[]).await
    }

    /// Asks one agent, by its name or id.
    ///
    /// # Errors
    /// `Invalid` if it can be neither.
    pub fn agent(&self, name: &str) -> Result<Arc<dyn Prompter>, Error> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(fits) {
            return Err(Error::new(ErrorKind::Invalid, format!("no agent can have this name: {name:?}")));
        }
        Ok(Arc::new(self.0.below(format!("/v1/agents/{name}"))))
    }
}

impl fmt::Debug for ControlFile {
    /// The token is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlFile").field("pid", &self.pid).field("address", &self.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane").field("address", &self.door.address).finish_non_exhaustive()
    }
}
