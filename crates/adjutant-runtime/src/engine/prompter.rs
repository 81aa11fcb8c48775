//! The requests that can be made of an engine.

use async_trait::async_trait;
use serde_json::Value;

use super::Engine;
use crate::{
    error::Error,
    prompt::{
        Control, EventStream, ForkRequest, MessagePage, MessagesRequest, ObjectRequest, PausePage, PausesRequest,
        PromptReply, PromptRequest, Prompter, ResumeRequest, SessionInfo, SessionPage, SessionsRequest,
    },
};

#[async_trait]
impl Prompter for Engine {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        self.prompter.prompt(request).await
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        self.prompter.stream(request).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        self.prompter.resume(request).await
    }

    async fn pauses(&self, request: PausesRequest) -> Result<PausePage, Error> {
        self.prompter.pauses(request).await
    }

    async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        self.prompter.object(request).await
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        self.prompter.messages(request).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        self.prompter.sessions(request).await
    }

    async fn control(&self, session: Option<&str>, control: Control) -> Result<(), Error> {
        self.prompter.control(session, control).await
    }

    async fn attach(&self, session: Option<&str>, after: Option<u64>) -> Result<EventStream, Error> {
        self.prompter.attach(session, after).await
    }

    async fn fork(&self, session: Option<&str>, request: ForkRequest) -> Result<SessionInfo, Error> {
        self.prompter.fork(session, request).await
    }

    async fn delete(&self, session: &str) -> Result<(), Error> {
        self.prompter.delete(session).await
    }
}
