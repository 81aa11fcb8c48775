//! What can be asked of an engine, by itself or through a handle that is shared.

use std::sync::Arc;

use adjutant_agent::Sessions;
use adjutant_llm::{Model, Options};
use async_trait::async_trait;
use serde_json::Value;

use super::Engine;
use crate::{
    error::Error,
    prompt::{
        EventStream, Lead, Leads, LocalPrompter, MessagePage, MessagesRequest, ObjectRequest, PromptReply,
        PromptRequest, Prompter, ResumeRequest, SessionPage, SessionTable, SessionsRequest, Surface,
    },
};

impl LocalPrompter {
    /// What can be asked of an engine: the same as of the engine itself.
    pub fn over(engine: Arc<Engine>) -> Self {
        Self { leads: engine }
    }
}

#[async_trait]
impl Prompter for Engine {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        Surface(self).prompt(request).await
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        Surface(self).stream(request).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        Surface(self).resume(request).await
    }

    async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        Surface(self).object(request).await
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        Surface(self).messages(request).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        Surface(self).sessions(request).await
    }
}

impl Leads for Engine {
    fn lead(&self, session: &str) -> Result<Lead, Error> {
        Engine::lead(self, session)
    }

    fn model(&self) -> Arc<dyn Model> {
        Engine::model(self)
    }

    fn options(&self) -> Options {
        Engine::options(self)
    }

    fn sessions(&self) -> Sessions {
        Engine::sessions(self)
    }

    fn default_session(&self) -> &str {
        Engine::default_session(self)
    }

    fn table(&self) -> &Arc<SessionTable> {
        Engine::table(self)
    }
}
