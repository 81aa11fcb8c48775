//! The fields of a `useChat` request for an agent that keeps its own log.

use std::sync::Arc;

use adjutant_agent::{Agent, Running};
use adjutant_core::{Answered, Pause};
use adjutant_llm::{CallResult, Content, Source, Status, UserMessage};
use adjutant_tool::{Answer, AskKind};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    answer,
    error::Error,
    file,
    wish::{self, PageWish},
};

/// A request of `useChat`.
///
/// The agent's log is authoritative: only the last message counts. If it is the user's, it is the prompt; if it is
/// the agent's, its parts answer pauses.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChatRequest {
    /// The chat; the application maps it to a session.
    pub id: String,
    /// The conversation as the page has it. Shape: the AI SDK's `UIMessage`.
    #[serde(default)]
    pub messages: Vec<Value>,
    /// The trigger of the request: `submit-message` or `regenerate-message`.
    #[serde(default)]
    pub trigger: String,
    /// Answers to pauses without a message part, from the body of the request.
    #[serde(default)]
    pub answers: Vec<Given>,
    /// Everything else.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// An answer to a pause that was sent as a `data-pause` part.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Given {
    /// The `id` of the part.
    pub id: String,
    /// A value for the part's `schema`; `null` declines.
    #[serde(default)]
    pub payload: Value,
}

impl ChatRequest {
    /// A request without messages, as of a page that follows a chat.
    pub fn new(id: impl Into<String>) -> Self {
        let (messages, trigger, answers, more) = Default::default();
        Self {
            id: id.into(),
            messages,
            trigger,
            answers,
            more,
        }
    }

    /// Starts a run in the agent's session, or resumes the waiting one.
    ///
    /// # Errors
    /// `Invalid` and `Stale` as for [`wish`](ChatRequest::wish); `Agent` if the session cannot be read or does not
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
    /// `Invalid` without a user message or an answer, for an invalid answer, for an unprocessed message next to
    /// answers, and for a request to regenerate an answer; `Stale` if the answered pause is not open, or has changed.
    pub fn wish(
        &self,
        pauses: &[Arc<Pause>],
        is_heard: impl Fn(&str) -> bool,
    ) -> Result<PageWish, Error> {
        if self.trigger == "regenerate-message" {
            return Err(Error::invalid(
                "an answer is not made again: fork the session before it",
            ));
        }
        let mut answers = Vec::new();
        for given in &self.answers {
            let pause = answer::find_pause(pauses, &given.id)?;
            answers.push(match &given.payload {
                Value::Null => answer::declined(pause, "the user said no"),
                payload => answer::given(pause, payload)?,
            });
        }
        let last = self
            .messages
            .last()
            .ok_or_else(|| Error::invalid("no messages"))?;
        let parts = last["parts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for part in parts.iter().filter(|_| last["role"] == "assistant") {
            let answer = match part["state"].as_str() {
                Some("approval-responded") => verdict(pauses, part)?,
                Some("output-available" | "output-error") => output(pauses, part)?,
                _ => None,
            };
            // The same answer may stand in the body too.
            let is_new = |it: &Answered| {
                answers
                    .iter()
                    .all(|other| (&other.pause, &other.answer) != (&it.pause, &it.answer))
            };
            answers.extend(answer.filter(is_new));
        }
        answer::once(&answers)?;
        let said = wish::said(&self.messages, &is_heard);
        if answers.is_empty() {
            return wish::prompt(&said, is_heard, user);
        }
        wish::alone(&said, is_heard)?;
        Ok(PageWish::Answers(answers))
    }

    /// The agent's message that a stream continues.
    pub(super) fn open_message(&self) -> Option<&str> {
        self.messages
            .last()
            .filter(|it| it["role"] == "assistant")?["id"]
            .as_str()
    }
}

/// The verdict on a call; `None` if it was given before and stays in the message.
fn verdict(pauses: &[Arc<Pause>], part: &Value) -> Result<Option<Answered>, Error> {
    let approval = &part["approval"];
    let name = approval["id"].as_str().unwrap_or_default();
    match answer::find_pause(pauses, name) {
        Ok(pause) if pause.ask.kind == AskKind::Approval => {
            answer::given(pause, approval).map(Some)
        }
        // An answered approval is no longer open, and stays in the message.
        _ if waits(pauses, part, |kind| kind == AskKind::Approval).is_none() => Ok(None),
        Ok(_) => Err(Error::stale("the approved call waits for something else")),
        Err(error) => Err(error),
    }
}

/// The client's output for a call that waits for it.
fn output(pauses: &[Arc<Pause>], part: &Value) -> Result<Option<Answered>, Error> {
    let Some(pause) = waits(pauses, part, |kind| kind != AskKind::Approval) else {
        return Ok(None);
    };
    let Some(why) = part["errorText"].as_str() else {
        return answer::given(pause, &part["output"]).map(Some);
    };
    let result = || Arc::new(CallResult::new(Status::Failed, why));
    Ok(Some(match pause.ask.kind {
        AskKind::External => pause.with_answer(Answer::Return { result: result() }),
        _ => answer::declined(pause, why),
    }))
}

/// The pause of the call that a part shows.
fn waits<'a>(
    pauses: &'a [Arc<Pause>],
    part: &Value,
    of: impl Fn(AskKind) -> bool,
) -> Option<&'a Arc<Pause>> {
    let shown = part["toolCallId"].as_str()?;
    pauses
        .iter()
        .filter(|pause| of(pause.ask.kind))
        .find(|pause| {
            let call = pause.call_id();
            call.is_some_and(|call| {
                call.to_string() == shown || format!("{}/{call}", pause.thread) == shown
            })
        })
}

fn user(message: &Value) -> Result<UserMessage, Error> {
    let parts = message["parts"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    Ok(parts
        .iter()
        .filter_map(content)
        .collect::<Result<Vec<_>, _>>()?
        .into())
}

/// A text or a file of the user; other parts are not for the model.
fn content(part: &Value) -> Option<Result<Content, Error>> {
    let text = |name: &str| part[name].as_str().map(Arc::<str>::from);
    match part["type"].as_str()? {
        "text" => Some(
            text("text")
                .map(Content::text)
                .ok_or_else(|| Error::invalid("a text without its text")),
        ),
        "file" => Some(match (text("mediaType"), text("url")) {
            (Some(media_type), Some(url)) => file::content(
                "a part of the type \"file\"",
                &media_type,
                text("filename"),
                Source::Url { url },
            ),
            _ => Err(Error::invalid("a file without `mediaType` or `url`")),
        }),
        _ => None,
    }
}
