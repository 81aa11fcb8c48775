//! What a page asks for with a request: to run on a prompt, or to go on with answers. A message is heard once.

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

/// What the names of messages begin with that pages were told of.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
const TOLD: &str = "heard-";

/// What a page asks for with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum PageWish {
    /// To run on these messages, oldest first, each with what the page calls it.
    Prompt(Vec<UserMessage>),
    /// To go on with these answers.
    Answers(Vec<Answered>),
    /// Nothing: the newest message, which the page calls so, was heard before. What came of it is in the log.
    Heard(Arc<str>),
}

impl PageWish {
    /// Begins the run, or goes on with it.
    ///
    /// Cancel: dropping the run cancels it, as when its page goes away.
    ///
    /// # Errors
    /// `Agent`, if the agent does not begin: its session is busy, it waits for answers, or for other ones. `Stale` if the
    /// message was heard before.
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

/// What pages call the messages that a session has heard.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn heard(agent: &Agent) -> HashSet<Arc<str>> {
    let transcript = agent.log().transcript();
    let said = transcript.iter().filter_map(|stored| match &stored.entry {
        Entry::User(message) => Some(&message.ids),
        _ => None,
    });
    said.flatten().cloned().collect()
}

/// The name of a message of the user that a page was told of, as by steering: what stands in the log at this place. What a page
/// said itself, and has named, it is not told.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn told(seq: Seq) -> String {
    format!("{TOLD}{}", seq.0)
}

/// What the page calls a message, and whether it was heard, or told to the page.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
fn known(message: &Value, is_heard: impl Fn(&str) -> bool) -> (Option<&str>, bool) {
    let id = message["id"].as_str().filter(|id| !id.is_empty());
    (
        id,
        id.is_some_and(|id| id.starts_with(TOLD) || is_heard(id)),
    )
}

/// The prompt that messages of a page are, oldest first, as far as they were not heard.
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

/// The messages of the user that may be new: those behind the agent's last one, and, as somebody may have written while the agent
/// spoke, those behind the newest one that was heard.
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

/// Refuses messages beside answers that were not heard before: nobody would hear them, and they may say the contrary.
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
pub(crate) fn alone(said: &[&Value], is_heard: impl Fn(&str) -> bool) -> Result<(), Error> {
    if said.iter().all(|message| known(message, &is_heard).1) {
        return Ok(());
    }
    let why = "words beside an answer are not heard: send one of both; hint: take the message out, and send it when the run has ended";
    Err(Error::invalid(why))
}
