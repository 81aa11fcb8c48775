//! The wire objects that agents and clients need. Unknown fields are ignored.
//!
//! Source: `specification/a2a.proto` of A2A 1.0.1 in its JSON form (2026-08).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};

use super::refusal::RpcRefusal;

/// A unit of work: a run of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Task {
    /// Its id, made by the server.
    pub id: String,
    /// The conversation that it belongs to.
    pub context_id: String,
    /// The state that it is in.
    pub status: TaskStatus,
    /// The things that it came to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The messages, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
}

/// The state of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// A question to the caller, or the reason of an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// The time since when: RFC 3339, in UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub timestamp: String,
}

/// The states of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskState {
    /// It is known, and was not started.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// It is running.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// It is done.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// It failed.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// It was cancelled.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// It waits for an answer of the caller.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// The agent does not do it.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// It waits for access that is given elsewhere.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// An unknown state.
    #[default]
    #[serde(other, rename = "TASK_STATE_UNSPECIFIED")]
    Unspecified,
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Message {
    /// Its id, chosen by the sender: the same id again is the same message.
    pub message_id: String,
    /// The conversation; without it, the server begins one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context_id: String,
    /// The task that it is about; without it, the message begins one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// The sender.
    pub role: Role,
    /// The parts of its content.
    pub parts: Vec<Part>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Role {
    /// The caller.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
    /// An unknown role.
    #[default]
    #[serde(other, rename = "ROLE_UNSPECIFIED")]
    Unspecified,
}

/// A text, a file, or JSON: one of the first four.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Part {
    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A file's bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// A file's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Any JSON.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_some"
    )]
    pub data: Option<Value>,
    /// The name of a file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filename: String,
    /// The MIME type.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub media_type: String,
}

/// Something that a task came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Artifact {
    /// Its id in the task.
    pub artifact_id: String,
    /// The parts.
    pub parts: Vec<Part>,
}

/// A change of a task in a stream; the first one is the task itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Update {
    /// The current task.
    Task(Task),
    /// A message instead of a task: nothing follows.
    Message(Message),
    /// Another state.
    #[serde(rename_all = "camelCase")]
    StatusUpdate {
        /// The task.
        task_id: String,
        /// The conversation.
        context_id: String,
        /// The state.
        status: TaskStatus,
    },
    /// A continuation or a replacement of an artifact.
    #[serde(rename_all = "camelCase")]
    ArtifactUpdate {
        /// The task.
        task_id: String,
        /// The conversation.
        context_id: String,
        /// The content.
        artifact: Artifact,
        /// True if it is appended to the previous content; otherwise it replaces it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        append: bool,
    },
}

/// A request to send a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SendMessage {
    /// The message.
    pub message: Message,
    /// The options for the answer.
    pub configuration: SendOptions,
}

/// The options for the answer to a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SendOptions {
    /// The MIME types that the caller understands; any without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// The number of messages of the history that are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// True if the task is returned as soon as it has started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub return_immediately: bool,
    /// The address that updates are pushed to as well.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_push_config"
    )]
    pub task_push_notification_config: Option<PushConfig>,
}

/// An address that the updates of a task are pushed to.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PushConfig {
    /// Its id in the task; the task's id by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The task; absent with a message, which contains it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// The address.
    pub url: String,
    /// A secret of the client, by which it recognizes pushes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The credentials that the address wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<PushAuthentication>,
}

/// The credentials that an address requires.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PushAuthentication {
    /// The scheme of HTTP: `Bearer`, `Basic`.
    pub scheme: String,
    /// The value after the scheme in the header; without it the header is not sent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub credentials: String,
}

/// A request about tasks: each method reads its own part.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OfTask {
    pub(super) id: String,
    pub(super) history_length: Option<u32>,
    pub(super) context_id: String,
    pub(super) status: Option<TaskState>,
    pub(super) page_size: Option<u32>,
    pub(super) page_token: String,
    pub(super) status_timestamp_after: String,
    pub(super) include_artifacts: bool,
}

impl PushConfig {
    pub(super) fn read(params: Value) -> Result<Self, RpcRefusal> {
        deserialize_push_config(params)
            .map(Option::unwrap_or_default)
            .map_err(|error| RpcRefusal::params(format!("params: {error}")))
    }

    /// All but its secrets.
    pub(super) fn to_public_json(&self) -> Value {
        let mut shown = json!({"id": self.id, "taskId": self.task_id, "url": self.url});
        if let Some(authentication) = &self.authentication {
            shown["authentication"] = json!({"scheme": authentication.scheme});
        }
        shown
    }
}

impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address alone can be a secret.
        f.debug_struct("PushConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PushAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushAuthentication")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl TaskState {
    /// True if nothing follows.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// True if it waits for input.
    pub fn waits(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl Message {
    /// A message of the caller.
    pub fn user(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            message_id: id.into(),
            role: Role::User,
            parts,
            ..Self::default()
        }
    }

    pub(super) fn agent(id: String, parts: Vec<Part>) -> Self {
        Self {
            message_id: id,
            role: Role::Agent,
            parts,
            ..Self::default()
        }
    }
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// True if it is one thing, as it must be.
    pub(super) fn is_one(&self) -> bool {
        [
            self.text.is_some(),
            self.raw.is_some(),
            self.url.is_some(),
            self.data.is_some(),
        ]
        .map(u8::from)
        .iter()
        .sum::<u8>()
            == 1
    }

    /// JSON.
    pub fn data(data: impl Into<Value>) -> Self {
        Self {
            data: Some(data.into()),
            media_type: "application/json".to_owned(),
            ..Self::default()
        }
    }
}

/// `null` is JSON like any.
fn deserialize_some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Its error contains no part of the input.
fn deserialize_push_config<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<PushConfig>, D::Error> {
    let told = "a push notification config has texts as `url` and `token`, and an `authentication` of `scheme` and `credentials`";
    serde_json::from_value(Value::deserialize(from)?).map_err(|_| D::Error::custom(told))
}
