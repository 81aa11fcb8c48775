//! The process of one agent: it builds the agent of a workspace, serves it on loopback, and ends when it is asked to.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What the process of an agent tells of itself, in `host.json` of its workspace, once it listens.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostFile {
    /// Its process.
    pub pid: u32,
    /// Which start this is: what `ADJUTANT_AGENT_START` held.
    pub start: Uuid,
    /// Where it listens.
    pub address: SocketAddr,
    /// What a caller must show.
    pub token: String,
}
