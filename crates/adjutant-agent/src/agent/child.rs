//! Sub-agents: the parts they take from a configuration, and agents without a model.

use std::sync::Arc;

use adjutant_core::{LogId, MemoryJournal};
use adjutant_llm::{Chunk, ChunkStream, Error, ErrorKind, Model, ModelInfo, Request};
use futures_util::stream;

use super::Agent;
use crate::{scope::AgentConfig, session::Session, setup::Setup};

/// A placeholder for the model of the opening agent.
#[derive(Debug)]
struct Inherited(ModelInfo);

impl Agent {
    /// Creates an agent of this name that uses the model of the agent that opens it.
    ///
    /// It cannot run alone: its runs fail until it gets a model.
    pub fn inheriting(name: impl Into<Arc<str>>) -> Self {
        let agent = Self::new(Inherited(ModelInfo::new("inherited/model"))).name(name);
        agent.with(|setup| Setup {
            inherits: true,
            ..setup
        })
    }

    /// Returns the agent with this model, unless it has its own.
    pub(super) fn or_model(self, model: Option<&Arc<dyn Model>>) -> Self {
        match model.filter(|_| self.setup.inherits) {
            Some(model) => self.model(Arc::clone(model)),
            None => self,
        }
    }
}

impl From<Agent> for AgentConfig {
    fn from(agent: Agent) -> Self {
        Self {
            setup: agent.setup,
            limits: agent.limits,
        }
    }
}

impl From<AgentConfig> for Agent {
    /// Creates an agent of this configuration, in a separate session.
    fn from(config: AgentConfig) -> Self {
        let AgentConfig { setup, limits } = config;
        let session = Arc::new(Session::new(
            LogId("".into()),
            Arc::new(MemoryJournal::default()),
        ));
        Self {
            setup,
            limits,
            journal: None,
            session,
            is_chosen: false,
        }
    }
}

impl Model for Inherited {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, _: Request) -> ChunkStream {
        let message = "the agent has no model, and was not opened by another agent";
        let failure: Result<Chunk, Error> = Err(Error::new(ErrorKind::Config, message));
        Box::pin(stream::iter([failure]))
    }
}
