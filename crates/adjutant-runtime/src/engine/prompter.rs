//! The requests that can be made of an engine.

use async_trait::async_trait;
use serde_json::Value;

use super::Engine;
use crate::{
    error::Error,
    prompt::{
        EventStream, MessagePage, MessagesRequest, ObjectRequest, PausePage, PausesRequest, PromptReply, PromptRequest,
        Prompter, ResumeRequest, SessionPage, SessionsRequest,
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
}
