//! What a prompt surface does, whoever has it: checks, takes the session, runs.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    EventStream, Lead, Leads, MAX_PROMPT_BYTES, MessagePage, MessagesRequest, ObjectRequest, PromptReply,
    PromptRequest, ResumeRequest, SessionPage, SessionsRequest, history, object, session, told,
    work::{RunStream, SessionSlot},
};
use crate::error::{Error, ErrorKind};

/// A prompt surface over those who lead.
pub(crate) struct Surface<'a>(pub(crate) &'a dyn Leads);

impl Surface<'_> {
    pub(crate) async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        let session = self.session_of(request.session.as_ref());
        let result = self.begin(&request, &session).await?.finish().await?;
        told::of_outcome(&result.outcome)?;
        match adjutant_agent::Error::of_result((*result).clone()) {
            Ok(_) => Ok(PromptReply::new(session, result)),
            Err(error) => Err(told::of_agent(error)),
        }
    }

    pub(crate) async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        let session = self.session_of(request.session.as_ref());
        Ok(Box::pin(self.begin(&request, &session).await?))
    }

    pub(crate) async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        let session = self.session_of(request.session.as_ref());
        let (mut slot, lead) = self.sit(&session)?;
        let run = lead.resume(request.answers).await.inspect_err(|error| slot.end(Err(error.clone())))?;
        Ok(Box::pin(RunStream::begin(run, slot, None).await?))
    }

    pub(crate) async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        check_prompt(&request.prompt)?;
        let table = self.0.table();
        let mut slot = table.sit(None)?;
        let model = self.0.model();
        let asked = object::object(&*model, self.0.options(), request);
        let answer = tokio::select! {
            biased;
            () = table.stopping.cancelled() => Err(told::stopped()),
            answer = asked => answer,
        };
        answer.inspect_err(|error| slot.end(Err(error.clone())))
    }

    pub(crate) async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        let log = session::check(&self.session_of(request.session.as_ref()))?;
        history::messages(&**self.0.sessions().journal(), &log, &request).await
    }

    pub(crate) async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        history::sessions(&self.0.sessions(), &request).await
    }

    /// The session that is meant.
    pub(super) fn session_of(&self, name: Option<&Arc<str>>) -> Arc<str> {
        name.cloned().unwrap_or_else(|| self.0.default_session().into())
    }

    async fn begin(&self, request: &PromptRequest, session: &Arc<str>) -> Result<RunStream, Error> {
        check_prompt(&request.prompt)?;
        let (mut slot, lead) = self.sit(session)?;
        let run = lead.prompt(&request.prompt).inspect_err(|error| slot.end(Err(error.clone())))?;
        RunStream::begin(run, slot, request.timeout_ms.map(Duration::from_millis)).await
    }

    fn sit(&self, session: &Arc<str>) -> Result<(SessionSlot, Lead), Error> {
        session::check(session)?;
        let mut slot = self.0.table().sit(Some(session))?;
        let lead = slot.lead(|name| self.0.lead(name)).inspect_err(|error| slot.end(Err(error.clone())))?;
        Ok((slot, lead))
    }
}

fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.len() > MAX_PROMPT_BYTES {
        let message = format!("the prompt has {} bytes; it may have {MAX_PROMPT_BYTES}", prompt.len());
        return Err(Error::new(ErrorKind::Full, message));
    }
    Ok(())
}
