//! The receiver of a task's end: the run that launched it, or the session that it is kept for.

use adjutant_agent::{Agent, Error, Queued, RunLine};
use adjutant_llm::UserMessage;
use serde_json::Value;

/// The receiver of a task's end.
pub(super) enum Ear {
    /// The run of the call that launched it; later, the next run of its session.
    Run(RunLine),
    /// The next run of a session.
    Session(Agent),
    /// Its end was already reported to the run of the call that launched it, and is recorded there.
    Told(RunLine),
    /// Its end was already reported and recorded.
    Nobody,
}

impl Ear {
    /// Queues the message about it; `None` if it is not needed.
    pub(super) fn steer(&self, message: UserMessage) -> Result<Option<Queued>, Error> {
        match self {
            Self::Run(line) => line.steer(message).map(Some),
            Self::Session(agent) => agent.queue().steer(message).map(Some),
            Self::Told(_) | Self::Nobody => Ok(None),
        }
    }

    /// Records something, if there is a run that it belongs to.
    pub(super) fn app(&self, kind: &str, version: u32, data: Value) {
        if let Self::Run(line) | Self::Told(line) = self {
            line.app(kind, version, data);
        }
    }
}
