//! A request to a model: system prompt, tools, entries and options. All of it is shared, so cloning is cheap.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Entry, Options, ToolDecl, Transcript, UserMessage};

/// A request to a model. Cloning costs a few counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The system prompt; empty for none.
    #[serde(default)]
    pub system: Arc<str>,
    /// The tools that the model may call, in the order of their declarations.
    #[serde(default)]
    pub tools: Arc<[ToolDecl]>,
    /// The tools that messages of the conversation added ([`ToolChange`](crate::ToolChange)), in order; empty by default.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub added: Arc<[ToolDecl]>,
    /// The conversation.
    #[serde(default)]
    pub entries: Transcript,
    /// The options of the answer.
    #[serde(default)]
    pub options: Arc<Options>,
    /// The turn that the reply's call ids are made of; without it, the id that the next entry gets.
    #[serde(default)]
    pub turn: Option<u64>,
    /// The first attempt that the reply's call ids are made of.
    #[serde(default)]
    pub attempt: u32,
}

impl Request {
    /// An empty request.
    pub fn new() -> Self {
        Self::from_entries(Transcript::new())
    }

    /// A request that shows these entries.
    pub fn from_entries(entries: Transcript) -> Self {
        Self {
            system: "".into(),
            tools: Arc::from([]),
            added: Arc::default(),
            entries,
            options: Arc::default(),
            turn: None,
            attempt: 0,
        }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.system = text.into();
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<Arc<[ToolDecl]>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Adds a message of the user.
    #[must_use]
    pub fn user(mut self, message: impl Into<UserMessage>) -> Self {
        self.entries.push(Entry::User(message.into()));
        self
    }

    /// Sets how the model should answer.
    #[must_use]
    pub fn options(mut self, options: impl Into<Arc<Options>>) -> Self {
        self.options = options.into();
        self
    }

    /// The turn that the reply's call ids are made of.
    pub fn turn(&self) -> u64 {
        self.turn.unwrap_or(self.entries.next_id().0)
    }
}

/// Skips a field that is not in requests stored by earlier versions.
fn is_empty(tools: &Arc<[ToolDecl]>) -> bool {
    tools.is_empty()
}

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}
