//! The prompt surface in this process: over an agent that somebody made, or over whatever else knows who leads.

use std::{fmt, sync::Arc, time::Duration};

use adjutant_agent::{Agent, Journal, LogId, Sessions};
use adjutant_llm::{Model, Options};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    EventStream, Lead, Leads, MessagePage, MessagesRequest, ObjectRequest, PromptReply, PromptRequest, Prompter,
    ResumeRequest, SessionPage, SessionTable, SessionsRequest, surface::Surface, work::Observer,
};
use crate::error::Error;

/// The session of prompts that name none, for an agent that is not from a manifest.
const DEFAULT_SESSION: &str = "main";

/// What can be asked of agents in this process. Cheap to clone; clones share the sessions.
///
/// One run of a session is at work at a time, and a second prompt is refused at once; runs of different sessions do not
/// wait for one another.
#[derive(Clone)]
pub struct LocalPrompter {
    pub(crate) leads: Arc<dyn Leads>,
}

/// One agent that somebody made.
struct One {
    agent: Agent,
    model: Arc<dyn Model>,
    options: Options,
    sessions: Sessions,
    table: Arc<SessionTable>,
}

impl LocalPrompter {
    /// What can be asked of one agent: each session is a log of this journal, and objects are asked of this model.
    pub fn new(agent: Agent, model: Arc<dyn Model>, journal: Arc<dyn Journal>) -> Self {
        let agent = agent.model(Arc::clone(&model)).journal(Arc::clone(&journal));
        let (options, sessions) = (Options::new(), Sessions::new(journal));
        Self { leads: Arc::new(One { agent, model, options, sessions, table: SessionTable::new() }) }
    }

    /// How many runs are at work, now and at each change.
    pub(crate) fn runs(&self) -> watch::Receiver<usize> {
        self.leads.table().runs()
    }

    /// Sets who hears of runs that begin and end.
    pub(crate) fn observe(&self, observer: Observer) {
        self.leads.table().observe(observer);
    }

    /// Takes no more prompts, wishes every run to stop, and waits until they have; those that still run after this time
    /// are left: their streams end with `Closed`. Calling it again waits again.
    ///
    /// Cancel: prompts are refused from the first moment on; what still runs goes on to stop.
    pub async fn close(&self, grace: Duration) {
        self.leads.table().close(grace).await;
    }

    /// The session that is meant.
    pub(crate) fn session_of(&self, name: Option<&Arc<str>>) -> Arc<str> {
        Surface(&*self.leads).session_of(name)
    }
}

#[async_trait]
impl Prompter for LocalPrompter {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        Surface(&*self.leads).prompt(request).await
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        Surface(&*self.leads).stream(request).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        Surface(&*self.leads).resume(request).await
    }

    async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        Surface(&*self.leads).object(request).await
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        Surface(&*self.leads).messages(request).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        Surface(&*self.leads).sessions(request).await
    }
}

impl Leads for One {
    fn lead(&self, session: &str) -> Result<Lead, Error> {
        Ok(Lead::Agent(self.agent.session(LogId::from(session))))
    }

    fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model)
    }

    fn options(&self) -> Options {
        self.options.clone()
    }

    fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    fn default_session(&self) -> &str {
        DEFAULT_SESSION
    }

    fn table(&self) -> &Arc<SessionTable> {
        &self.table
    }
}

impl fmt::Debug for LocalPrompter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPrompter").field("table", self.leads.table()).finish_non_exhaustive()
    }
}
