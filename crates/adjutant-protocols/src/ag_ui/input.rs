//! The fields of `RunAgentInput` for an agent that keeps its own log.

use std::sync::Arc;

use adjutant_agent::{Agent, Running};
use adjutant_core::{Answered, Pause};
use adjutant_llm::{Content, Source, UserMessage};
use adjutant_tool::AskKind;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    answer,
    error::Error,
    file,
    wish::{self, PageWish},
};

/// A request to run an agent.
///
/// The agent's log is authoritative: the prompt consists of the user's unprocessed messages after the agent's last
/// one, or after the latest processed one; results of calls that wait for the client are answers. Unread fields (the
/// client's tools and context) stay in `more`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunAgentInput {
    /// The conversation; the application maps it to a session.
    pub thread_id: String,
    /// The page's name for this run.
    pub run_id: String,
    /// The conversation as the page has it. Shape: AG-UI's `Message`.
    #[serde(default)]
    pub messages: Vec<Value>,
    /// The client's state; only the application uses it.
    #[serde(default)]
    pub state: Value,
    /// The answers to what the run before waits for.
    #[serde(default)]
    pub resume: Vec<Resume>,
    /// Everything else.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// The answer to one interrupt.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resume {
    /// The interrupt, by its name.
    pub interrupt_id: String,
    /// The status: `resolved` or `cancelled`.
    pub status: String,
    /// The answer; `null` for none.
    #[serde(default)]
    pub payload: Value,
}

impl RunAgentInput {
    /// Starts a run in the agent's session, or resumes the waiting one.
    ///
    /// # Errors
    /// `Invalid` and `Stale` as for [`wish`](RunAgentInput::wish); `Agent` if the session cannot be read or does not
    /// start.
    pub async fn begin(&self, agent: &Agent) -> Result<Running, Error> {
        agent.log().open().await.map_err(Error::agent)?;
        let heard = wish::heard(agent);
        self.wish(&agent.log().pauses(), |id| heard.contains(id))?
            .begin(agent)
    }

    /// Returns the content of the request, for these open pauses and processed message ids.
    ///
    /// # Errors
    /// `Invalid` without a user message or an answer, for an invalid answer, and for an unprocessed message next to
    /// answers; `Stale` if the answered pause is not open, or has changed.
    pub fn wish(
        &self,
        pauses: &[Arc<Pause>],
        is_heard: impl Fn(&str) -> bool,
    ) -> Result<PageWish, Error> {
        let mut answers: Vec<Answered> = Vec::new();
        for entry in &self.resume {
            let pause = answer::find_pause(pauses, &entry.interrupt_id)?;
            answers.push(match &*entry.status {
                "resolved" => answer::given(pause, &entry.payload)?,
                "cancelled" => answer::declined(pause, "the user cancelled it"),
                other => {
                    return Err(Error::invalid(format!("unknown answer status: {other:?}")));
                }
            });
        }
        answer::once(&answers)?;
        let new = self
            .messages
            .iter()
            .rev()
            .take_while(|it| it["role"] != "assistant")
            .collect::<Vec<_>>();
        for message in new.iter().rev().filter(|it| it["role"] == "tool") {
            // A result of a call that ran here is sent back too, and is no answer.
            let waits = |pause: &&Arc<Pause>| {
                let call = pause.call_id().map(|call| call.to_string());
                pause.ask.kind == AskKind::External
                    && call.as_deref() == message["toolCallId"].as_str()
            };
            let is_answered = |pause: &Pause| answers.iter().any(|it| it.pause == pause.id);
            if let Some(pause) = pauses
                .iter()
                .find(waits)
                .filter(|pause| !is_answered(pause))
            {
                answers.push(answer::given(pause, &message["content"])?);
            }
        }
        let said = wish::said(&self.messages, &is_heard);
        if answers.is_empty() {
            return wish::prompt(&said, is_heard, user);
        }
        wish::alone(&said, is_heard)?;
        Ok(PageWish::Answers(answers))
    }
}

fn user(message: &Value) -> Result<UserMessage, Error> {
    match &message["content"] {
        Value::String(text) => Ok(UserMessage::text(text.as_str())),
        Value::Array(parts) => Ok(parts
            .iter()
            .map(part)
            .collect::<Result<Vec<_>, _>>()?
            .into()),
        _ => Err(Error::invalid("a message without content")),
    }
}

fn part(part: &Value) -> Result<Content, Error> {
    let text = |value: &Value| value.as_str().map(Arc::<str>::from);
    let kind = part["type"].as_str().unwrap_or_default();
    if kind == "text" {
        return text(&part["text"])
            .map(Content::text)
            .ok_or_else(|| Error::invalid("a text without its text"));
    }
    let at = &part["source"];
    let value = text(&at["value"])
        .ok_or_else(|| Error::invalid(format!("a part without its bytes: {kind:?}")))?;
    let source = match at["type"].as_str() {
        Some("data") => Source::Base64 { data: value },
        Some("url") => Source::Url { url: value },
        _ => {
            return Err(Error::invalid(
                "a part whose bytes are neither data nor at a URL",
            ));
        }
    };
    let (usual, of) = match kind {
        "image" => ("image/png", "image/"),
        "audio" => ("audio/wav", "audio/"),
        "document" => ("application/pdf", ""),
        other => {
            return Err(Error::invalid(format!("unsupported part: {other:?}")));
        }
    };
    let media_type = at["mimeType"].as_str().unwrap_or(usual);
    if !media_type.starts_with(of) {
        return Err(Error::invalid(format!(
            "a part of the type {kind:?} that is none by its `mimeType`"
        )));
    }
    file::content(
        &format!("a part of the type {kind:?}"),
        media_type,
        None,
        source,
    )
}
