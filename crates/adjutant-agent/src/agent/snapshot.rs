//! What an agent is and does at this moment.

use crate::{agent::Agent, snapshot::Snapshot};

impl Agent {
    /// What the agent is and does at this moment, also while it runs on another task.
    ///
    /// A session of a journal that no run was begun in is seen empty: it is read when the first run begins.
    pub fn snapshot(&self) -> Snapshot {
        self.session.seen().snapshot(&self.setup)
    }
}
