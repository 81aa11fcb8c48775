//! The content of a client's request: a prompt, or answers to pauses. A message is processed once.

#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
use std::collections::HashSet;
use std::sync::Arc;

use adjutant_agent::{Agent, Running};
use adjutant_core::Answered;
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
use adjutant_core::Seq;
use adjutant_llm::{Entry, UserMessage};
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// The prefix of the ids of messages that were sent to clients.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
const TOLD: &str = "heard-";

/// The content of a client's request.
#[derive(Debug, Clone, PartialEq)]
pub enum PageWish {
    /// To run on these messages, oldest first, each with what the page calls it.
    Prompt(Vec<UserMessage>),
    /// Continue with these answers.
    Answers(Vec<Answered>),
    /// Nothing new: the latest message, which has this id in the client, was processed before. Its outcome is in the
    /// log.
    Heard(Arc<str>),
}

impl PageWish {
    /// Starts the run, or resumes it.
    ///
    /// Cancel: dropping the run cancels it, as when its page goes away.
    ///
    /// # Errors
    /// `Agent` if the agent does not start: its session is busy, it waits for answers, or for other ones. `Stale` if
    /// the message was processed before.
    pub fn begin(self, agent: &Agent) -> Result<Running, Error> {
        let builder = match self {
            Self::Prompt(messages) => {
                agent.run(messages.into_iter().map(Entry::User).collect::<Vec<_>>())
            }
            Self::Answers(answers) => agent.resume(answers),
            Self::Heard(id) => {
                let message =
                    format!("the message {id:?} was heard before; hint: see what came of it");
                return Err(Error::new(ErrorKind::Stale, message));
            }
        };
        builder.stream().map_err(Error::agent)
    }
}

/// The client ids of the messages that a session has processed.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn heard(agent: &Agent) -> HashSet<Arc<str>> {
    let transcript = agent.log().transcript();
    let said = transcript.iter().filter_map(|stored| match &stored.entry {
        Entry::User(message) => Some(&message.ids),
        _ => None,
    });
    said.flatten().cloned().collect()
}

/// The id of a user message that a client received, for example a steering message: its position in the log. Messages
/// that a client sent with its own id are not sent back.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn told(seq: Seq) -> String {
    format!("{TOLD}{}", seq.0)
}

/// The client's id of a message, and whether it was processed, or sent to the client.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
fn known(message: &Value, is_heard: impl Fn(&str) -> bool) -> (Option<&str>, bool) {
    let id = message["id"].as_str().filter(|id| !id.is_empty());
    (
        id,
        id.is_some_and(|id| id.starts_with(TOLD) || is_heard(id)),
    )
}

/// The prompt in a client's messages, oldest first, without the processed ones.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn prompt(
    said: &[&Value],
    is_heard: impl Fn(&str) -> bool,
    read: impl Fn(&Value) -> Result<UserMessage, Error>,
) -> Result<PageWish, Error> {
    let mut messages = Vec::new();
    for message in said {
        if let (id, false) = known(message, &is_heard) {
            messages.push(UserMessage {
                ids: id.into_iter().map(Arc::from).collect(),
                ..read(message)?
            });
        }
    }
    if messages.is_empty() {
        let newest = said
            .iter()
            .rev()
            .filter_map(|it| it["id"].as_str())
            .find(|id| is_heard(id));
        let newest = newest.ok_or_else(|| Error::invalid("neither a message nor an answer"))?;
        return Ok(PageWish::Heard(newest.into()));
    }
    Ok(PageWish::Prompt(messages))
}

/// The possibly new messages of the user: those after the agent's last one, or after the latest processed one,
/// because a user can write while the agent answers.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn said(messages: &[Value], is_heard: impl Fn(&str) -> bool) -> Vec<&Value> {
    let is_user = |it: &Value| it["role"] == "user";
    let was_heard = |it: &Value| is_user(it) && it["id"].as_str().is_some_and(&is_heard);
    let behind = |at: Option<usize>| at.map(|at| at + 1);
    let spoken = behind(messages.iter().rposition(|it| it["role"] == "assistant")).unwrap_or(0);
    let heard = behind(messages.iter().rposition(was_heard)).unwrap_or(messages.len());
    messages
        .iter()
        .skip(heard.min(spoken))
        .filter(|it| is_user(it))
        .collect()
}

/// Refuses unprocessed messages next to answers: they would be ignored, and could contradict the answers.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn alone(said: &[&Value], is_heard: impl Fn(&str) -> bool) -> Result<(), Error> {
    if said.iter().all(|message| known(message, &is_heard).1) {
        return Ok(());
    }
    let why = "words beside an answer are not heard: send one of both; hint: take the message out, and send it when the run has ended";
    Err(Error::invalid(why))
}
