//! The status report of an agent's process.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Status;

/// The status report of an agent's process.
///
/// Format: `{"status":"working","agent":"reviewer","runs":1,"session":"main"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentReport {
    /// The status of the agent: `ready`, `working`, and at the end `stopped`.
    #[serde(flatten)]
    pub status: Status,
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The number of active runs.
    pub runs: u64,
    /// The session of prompts that name none.
    pub session: Arc<str>,
}

impl AgentReport {
    pub(super) fn new(status: Status, agent: Arc<str>, runs: usize, session: Arc<str>) -> Self {
        Self {
            status,
            agent,
            runs: runs as u64,
            session,
        }
    }
}
