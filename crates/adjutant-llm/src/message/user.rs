//! A message to the model, and its sender.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::{Content, ThreadId, ToolName};

/// A message to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The parts of the message, in order.
    pub content: Vec<Content>,
    /// The origin of the message; a person by default.
    #[serde(default)]
    pub origin: Origin,
    /// True if the message is kept when the conversation is compacted; false by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The ids that the senders assigned, so that no message is processed twice; empty by default. They are not sent
    /// to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Arc<str>>,
    /// The change of the tools from this message on; `None` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<ToolChange>>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDecl {
    /// The name that the model calls.
    pub name: ToolName,
    /// The description of the tool, for the model.
    pub description: Arc<str>,
    /// The JSON schema of the arguments; an object schema.
    pub schema: Arc<Value>,
}

/// A change of the tools in the middle of a conversation, for models that refuse another list of tools than they began with.
///
/// A wire that cannot send it in a message declares [`Request::added`](crate::Request::added) after the other tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolChange {
    /// The tools that the model may call from here on; one with a known name replaces the earlier definition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<ToolDecl>,
    /// The tools that are no longer available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ToolName>,
    /// The provider that runs `server_tools` and `removed_server_tools`; other providers are not sent them.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub provider: Arc<str>,
    /// Tools that the provider runs itself, as [`Options::server_tools`](crate::Options::server_tools).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<Value>,
    /// The names of server tools that are no longer available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_server_tools: Vec<ToolName>,
}

/// The origin of a user message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// A person or the application: the prompt of a run.
    #[default]
    Person,
    /// The steering queue, in the middle of a run.
    Steering,
    /// The follow-up queue, when the run would have ended.
    FollowUp,
    /// The framework, on behalf of the named component.
    Reminder {
        /// The component that reminds.
        by: Arc<str>,
    },
    /// A parent that delegated a task.
    Task {
        /// The parent's thread.
        from: ThreadId,
    },
    /// Another agent.
    Peer {
        /// The peer's thread.
        from: ThreadId,
    },
}

impl ToolChange {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.server_tools.is_empty()
            && self.removed_server_tools.is_empty()
    }
}

impl UserMessage {
    /// A text message of a person.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        vec![Content::text(text)].into()
    }

    /// The texts, joined by line breaks; other content is omitted.
    pub fn to_text(&self) -> String {
        self.content
            .iter()
            .filter_map(Content::as_text)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// True if the message holds nothing that a model could read: no content, or only blank text.
    pub fn is_empty(&self) -> bool {
        self.content
            .iter()
            .all(|it| it.as_text().is_some_and(|text| text.trim().is_empty()))
    }
}

/// A message of a person.
impl From<Vec<Content>> for UserMessage {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            origin: Origin::Person,
            pinned: false,
            ids: Vec::new(),
            tools: None,
        }
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}
