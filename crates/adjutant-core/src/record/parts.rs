//! Small parts of records.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{Edit, Effort, Entry, ModelId, ToolDecl, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::OutputWish;

/// A queue of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Placed before the next request.
    Steering,
    /// Placed when the run would end.
    FollowUp,
}

/// A queued message as a hook revised it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revised {
    /// Its number.
    pub item: u64,
    /// The message as it joined the conversation.
    pub content: Entry,
}

/// The value that an effect keeps for its next turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memo {
    /// The effect's key: its kind, and a number if there are several of the kind.
    pub key: Arc<str>,
    /// The value that it keeps; `null` to forget.
    pub value: Value,
}

/// The beginning of the requests of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefix {
    /// The system prompt.
    pub system: Arc<str>,
    /// The tools, in order.
    pub tools: Arc<[ToolDecl]>,
    /// The provider of the model that they were first declared to.
    pub provider: Arc<str>,
    /// The tools that this provider runs itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<Value>,
}

/// A report of an effect to observers about its action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectReport {
    /// The effect's kind.
    pub by: Arc<str>,
    /// A description of its action.
    pub data: Value,
}

/// The settings of a run besides its prompts and limits: they apply in every drive of the run, in any process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Terms {
    /// The system prompt, fully resolved; `None` keeps the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Arc<str>>,
    /// The name under which its agent was configured; `None` keeps the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// Named values for instructions and sections, in addition to the agent's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Value>,
    /// The model that was chosen for this run; `None` if it was not chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// The requested answer of the run; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<OutputWish>>,
}

/// The changes from the next turn on, within one run; an unset field stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunChange {
    /// The model to use; the agent must know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// The thinking effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Effort>,
    /// The only tools that it may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// The changes of the view.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

impl RunChange {
    /// This change, and another one after it.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.edits.extend(next.edits);
        Self {
            model: next.model.or(self.model),
            thinking: next.thinking.or(self.thinking),
            tools: next.tools.or(self.tools),
            edits: self.edits,
        }
    }

    /// True if nothing is different.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
