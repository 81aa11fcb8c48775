//! The prompt API of a running agent, in this process or over HTTP.

mod call;
mod changes;
mod following;
mod forking;
mod glance;
mod history;
mod lead;
mod live;
mod local;
mod look;
mod object;
mod open;
mod resuming;
mod session;
mod shown_request;
mod stored;
#[cfg(feature = "http")]
mod tasks;
mod told;
mod work;

use std::{pin::Pin, sync::Arc, time::Duration};

use adjutant_agent::{Answered, Caps, Digest, Event, LogId, Pause, RunResult, Seq, Tally};
use adjutant_llm::{CallId, NanoUsd, Usage};
use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "http")]
pub(crate) use self::following::asks;
pub(crate) use self::{
    call::Calls,
    following::{follow, until_end},
    glance::Glances,
    lead::CALLED,
    local::Asked,
    work::{SessionTable, Work},
};
pub use self::{
    changes::FileHistory, glance::SessionState, lead::Lead, local::LocalPrompter, look::Look,
    open::waiting_sessions, session::check as check_name, stored::StoredPrompter,
};
use crate::error::Error;

/// The maximum number of bytes of a prompt.
pub const MAX_PROMPT_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of characters of a session name.
pub const MAX_SESSION_CHARS: usize = 128;
/// The default number of messages or sessions in a page.
pub const PAGE: u32 = 50;
/// The maximum number of messages or sessions in a page.
pub const MAX_PAGE: u32 = 1000;
/// The maximum number of message ids in one request.
pub const MAX_HEARD: usize = 64;

/// The maximum number of agents in the path of a call from agent to agent.
pub const MAX_PEER_DEPTH: usize = 8;

/// The events of one run in order; the last one contains its outcome. A slow reader slows the run down.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Event, Error>> + Send>>;

/// The prompt API of a running agent: the same in this process and over HTTP.
#[async_trait]
pub trait Prompter: Send + Sync {
    /// Runs a prompt to its end, and returns the answer.
    ///
    /// Cancel: the run is cancelled too.
    ///
    /// # Errors
    /// `Conflict` if a run of the session is active or waits for an answer, `Agent` if the run failed, `Closed` if
    /// the agent was stopped.
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error>;

    /// Runs a prompt, and returns its events as they happen. Dropping the stream cancels the run.
    ///
    /// # Errors
    /// Like `prompt`, for errors before the run starts.
    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error>;

    /// Continues a waiting run, with the answers. Dropping the stream does not affect the run.
    ///
    /// # Errors
    /// `Missing` if the session does not exist, `Conflict` if it has no waiting run, `Invalid` if the answers do not
    /// match.
    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error>;

    /// Returns the open pauses by session, which need an external answer.
    ///
    /// # Errors
    /// `Missing` if the named session does not exist, `Conflict` if a run of it is active.
    async fn pauses(&self, request: PausesRequest) -> Result<PausePage, Error>;

    /// Returns an object that matches a schema: in a session, the agent's result with its tools; without a session, the
    /// result of a single model request.
    ///
    /// # Errors
    /// `Invalid` if the schema is missing or invalid, or for a session of agents with handoffs; `Agent` if no matching
    /// object was produced. With a session, also like `prompt`.
    async fn object(&self, request: ObjectRequest) -> Result<Value, Error>;

    /// Returns the latest messages of a session, or the messages before a cursor, oldest first.
    ///
    /// # Errors
    /// `Missing` if the session does not exist.
    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error>;

    /// Returns the sessions, latest first.
    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error>;

    /// Controls the active run of a session. Here and below, the default session is used if no name is given.
    ///
    /// A message to a session without a run waits for the next run. It is durable when this returns.
    ///
    /// # Errors
    /// `Missing` if the session or the call does not exist, `Conflict` if there is no active run to stop, `Invalid` if
    /// a message is empty.
    async fn control(&self, session: Option<&str>, control: Control) -> Result<(), Error>;

    /// Returns the events of a session after a record from its log, then the events of the active run until it ends or
    /// waits; without a number, from now on. Dropping the stream does not affect the run.
    ///
    /// # Errors
    /// `Missing` if the session does not exist, `Invalid` if it has no such record.
    async fn attach(&self, session: Option<&str>, after: Option<u64>)
    -> Result<EventStream, Error>;

    /// Creates a session with the records of another one, up to a record or completely.
    ///
    /// # Errors
    /// `Missing` if the session does not exist, `Exists` if the new name is in use, `Invalid` if there is no such
    /// record.
    async fn fork(&self, session: Option<&str>, request: ForkRequest)
    -> Result<SessionInfo, Error>;

    /// Deletes a session; its forks stay complete.
    ///
    /// # Errors
    /// `Missing` if the session does not exist, `Conflict` if a run of it is active.
    async fn delete(&self, session: &str) -> Result<(), Error>;

    /// Inspects a session: returns the JSON that `docs/http.md` describes for the route. Acquires, records and runs
    /// nothing.
    ///
    /// # Errors
    /// `Missing` if the session or record does not exist, `Invalid` if the inspection is not supported here.
    async fn look(&self, session: Option<&str>, look: Look) -> Result<Value, Error>;

    /// Restores the files that the agent of a session changed since a record, or since the latest run that changed any.
    ///
    /// # Errors
    /// `Missing` if the session does not exist, `Invalid` if the previous contents of its files were not saved,
    /// `Conflict` if a run of it is active or another program changed one of the files since. Nothing is changed then.
    async fn undo(&self, session: Option<&str>, request: UndoRequest) -> Result<Undone, Error>;
}

/// A control request for the run of a session.
///
/// Format: `{"control":"steer","text":"…"}`, `{"control":"stop"}`, `{"control":"stop_call","call":"c1_0_1"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Control {
    /// Starts a run, which continues without its client.
    Prompt {
        /// The prompt.
        text: Arc<str>,
        /// The client's ids of this message, for [`Look::Heard`]; not interpreted here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<Arc<str>>,
    },
    /// Answers the pauses of a waiting run, which continues without its client.
    Answer {
        /// The answers.
        #[serde(deserialize_with = "resuming::answers")]
        answers: Vec<Answered>,
    },
    /// Adds a message to the next request of the run, after the active calls.
    Steer {
        /// The message.
        text: Arc<str>,
    },
    /// Adds a message that the run reads when it would otherwise end.
    FollowUp {
        /// The message.
        text: Arc<str>,
    },
    /// Stops the run, even if it is waiting: its turn is closed.
    Stop {},
    /// Stops one call; the run continues.
    StopCall {
        /// The call.
        call: CallId,
    },
}

/// A request for a session with the records of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForkRequest {
    /// The name of the new session.
    pub to: Arc<str>,
    /// The last copied record: the `id` of an event; by default all records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The model with which its run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// A replacement for the result of a call: the new session has the records before that result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<EditedResult>,
}

/// An edited result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditedResult {
    /// The call.
    pub call: CallId,
    /// The text for the model.
    pub text: Arc<str>,
}

/// A request to restore files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UndoRequest {
    /// The record to restore; by default the one before the latest run that changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// The restored files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// The changed files, relative to the directory of the session.
    pub files: Vec<String>,
    /// A note about changes that were not undone, such as changes by commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
}

impl ForkRequest {
    /// Requests a complete copy of the session under this name.
    pub fn new(to: impl Into<Arc<str>>) -> Self {
        Self {
            to: to.into(),
            at: None,
            model: None,
            prompt: None,
            result: None,
        }
    }

    /// True if the new session runs immediately with a change.
    pub(crate) fn goes_on(&self) -> bool {
        self.model.is_some() || self.prompt.is_some() || self.result.is_some()
    }
}

/// A prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PromptRequest {
    /// The text of the prompt.
    pub prompt: Arc<str>,
    /// The session; by default the manifest's default session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The maximum time of the run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Set for a call of another agent. The session then identifies the call: repeating it returns its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PeerCall>,
}

/// A call of another agent: its path, and the limits of the run.
///
/// The run continues without the caller; [`Control::Stop`] ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PeerCall {
    /// The names of the agents that led to this call, ending with the caller; at most 8.
    pub path: Vec<Arc<str>>,
    /// Additional caps on the usage of the run, applied when it starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
    /// True if the call may have been sent before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: bool,
}

/// The reply to a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReply {
    /// The session.
    pub session: Arc<str>,
    /// The answer's text.
    pub text: String,
    /// The result of the run, with its outcome.
    pub result: Arc<RunResult>,
    /// The usage of the run and all its sub-agents, for a call of another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Tally>,
}

/// Answers to the pauses of a run.
///
/// Format: `{"session":…,"answers":[{"pause":…,"answer":…,"shown":…}]}`, or
/// `{"session":…,"pause":…,"answer":…,"shown":…}` for one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "resuming::Given")]
#[non_exhaustive]
pub struct ResumeRequest {
    /// The session; by default the manifest's default session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The answers.
    pub answers: Vec<Answered>,
}

/// A request for open pauses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PausesRequest {
    /// The session; by default all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The number of sessions, 1 to 1,000; 50 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The cursor of an earlier page, for the sessions after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<str>>,
}

/// Open pauses, sorted by session name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PausePage {
    /// The pauses.
    pub pauses: Vec<WaitingPause>,
    /// The cursor of the next page; `None` if this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<str>>,
}

/// A pause of a run that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingPause {
    /// The session.
    pub session: Arc<str>,
    /// The time at which its run began to wait, in milliseconds since 1970-01-01 UTC; 0 if it is unknown.
    pub since_ms: u64,
    /// The digest of the complete pause, which an answer returns as `shown`.
    pub digest: Digest,
    /// The pause: its agent and its question.
    #[serde(flatten)]
    pub pause: Arc<Pause>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A request for an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ObjectRequest {
    /// The text of the prompt.
    pub prompt: Arc<str>,
    /// The JSON Schema, with a `type` at its top level.
    pub schema: Value,
    /// The name of the object, for models that answer with a tool; `answer` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<Arc<str>>,
    /// The description of the object, for the same models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_description: Option<Arc<str>>,
    /// The session in which the agent works with its tools; without it, a single model request is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
}

/// A request for messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MessagesRequest {
    /// The session; by default the manifest's default session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The number of messages, 1 to 1,000; 50 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The cursor of an earlier page, for the messages before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// Messages of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<SessionMessage>,
    /// The cursor for the messages before these; `None` if there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionMessage {
    /// The author: `user`, `assistant` or `tool`.
    pub role: Arc<str>,
    /// Its text.
    pub text: String,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A request for sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionsRequest {
    /// The number of sessions, 1 to 1,000; 50 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The cursor of an earlier page, for the sessions after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Only sessions with this text in their name, title, agent or a label, ignoring case. A page can then have fewer
    /// items than its limit although more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Only sessions in this state; combined with `search`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SessionState>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions, latest first.
    pub sessions: Vec<SessionInfo>,
    /// The cursor for the sessions after these; `None` if there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The time of the last write, in milliseconds since 1970-01-01 UTC.
    pub changed_ms: u64,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub created_ms: u64,
    /// The number of its records.
    #[serde(default)]
    pub records: u64,
    /// Its state.
    #[serde(default)]
    pub state: SessionState,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// Its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Arc<str>>,
    /// The session from which it was forked, and the last shared record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(LogId, Seq)>,
    /// The total usage, for a fork including its original; missing until its log was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The total cost, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoUsd>,
}

impl PromptRequest {
    /// Creates a prompt for the default session.
    pub fn new(prompt: impl Into<Arc<str>>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Sets the session.
    #[must_use]
    pub fn session(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            session: Some(name.into()),
            ..self
        }
    }

    /// Makes it a call of another agent, in a separate session.
    #[must_use]
    pub fn call(self, call: PeerCall) -> Self {
        Self {
            call: Some(call),
            ..self
        }
    }

    /// Sets the maximum time: then the run is cancelled, and `prompt` fails with `TimedOut`.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self {
            timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            ..self
        }
    }
}

impl PeerCall {
    /// Creates a call with this path of agents, ending with the caller, without limits.
    pub fn new(path: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        Self {
            path: path.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl PromptReply {
    /// Returns the reply for the result of a run in this session.
    pub fn new(session: impl Into<Arc<str>>, result: Arc<RunResult>) -> Self {
        Self {
            session: session.into(),
            text: result.text(),
            result,
            used: None,
        }
    }
}

impl ResumeRequest {
    /// Creates answers for the default session.
    pub fn new(answers: Vec<Answered>) -> Self {
        Self {
            session: None,
            answers,
        }
    }

    /// Sets the session.
    #[must_use]
    pub fn session(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            session: Some(name.into()),
            ..self
        }
    }
}

impl PausesRequest {
    /// Requests the open pauses of all sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the session.
    #[must_use]
    pub fn session(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            session: Some(name.into()),
            ..self
        }
    }

    /// Requests the sessions after a cursor.
    #[must_use]
    pub fn after(self, mark: impl Into<Arc<str>>) -> Self {
        Self {
            after: Some(mark.into()),
            ..self
        }
    }
}

impl ObjectRequest {
    /// Requests an object that matches this schema.
    pub fn new(prompt: impl Into<Arc<str>>, schema: Value) -> Self {
        Self {
            prompt: prompt.into(),
            schema,
            schema_name: None,
            schema_description: None,
            session: None,
        }
    }

    /// Sets the name of the object: 1 to 64 letters, digits, `_` and `-`.
    #[must_use]
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            schema_name: Some(name.into()),
            ..self
        }
    }

    /// Sets the session.
    #[must_use]
    pub fn session(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            session: Some(name.into()),
            ..self
        }
    }

    /// Sets the description of the object.
    #[must_use]
    pub fn description(self, text: impl Into<Arc<str>>) -> Self {
        Self {
            schema_description: Some(text.into()),
            ..self
        }
    }
}

impl MessagesRequest {
    /// Requests the latest messages of the default session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the session.
    #[must_use]
    pub fn session(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            session: Some(name.into()),
            ..self
        }
    }

    /// Sets the number of messages.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// Requests the messages before a cursor.
    #[must_use]
    pub fn before(self, mark: u64) -> Self {
        Self {
            before: Some(mark),
            ..self
        }
    }
}

impl SessionsRequest {
    /// Requests the latest sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of sessions.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// Requests the sessions after a cursor.
    #[must_use]
    pub fn after(self, mark: impl Into<String>) -> Self {
        Self {
            after: Some(mark.into()),
            ..self
        }
    }

    /// Requests the sessions whose metadata contains this text.
    #[must_use]
    pub fn search(self, text: impl Into<String>) -> Self {
        Self {
            search: Some(text.into()),
            ..self
        }
    }

    /// Requests the sessions in this state.
    #[must_use]
    pub fn state(self, state: SessionState) -> Self {
        Self {
            state: Some(state),
            ..self
        }
    }
}
