//! The start of a drive, for middleware. Opening sub-agents is documented there.

use std::{any::Any, fmt, sync::Arc};

use adjutant_core::{LogId, RunNo};
use adjutant_tool::Identity;

/// The start of a drive, for [`Middleware::on_start`](crate::Middleware::on_start).
#[non_exhaustive]
pub struct DriveStart {
    /// The agent.
    pub who: Arc<Identity>,
    /// The log of its session.
    pub log: LogId,
    /// The run.
    pub run: RunNo,
    /// True if an earlier drive started the run.
    pub resumes: bool,
    /// True if the log was read for this drive: another program may have written it since this one did last.
    pub is_reopened: bool,
    /// The scope that opens agents, which knows more than middleware may.
    pub(crate) scope: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for DriveStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriveStart")
            .field("who", &self.who.path)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
