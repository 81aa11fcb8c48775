//! The entries of a conversation: messages, turns, summaries, and the application's own.

mod turn;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use turn::{OpenTurn, Turn, Unpaired};

use crate::{CallResult, Status, UserMessage};

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// A message to the model.
    User(UserMessage),
    /// A reply with the results of its calls.
    Turn(Turn),
    /// A summary that replaces earlier entries; only in a view.
    Summary(Summary),
    /// Something of the application; never reaches the model.
    Custom(Custom),
}

/// A text that replaces earlier entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The text for the model.
    pub text: Arc<str>,
    /// The number of entries that it replaces.
    pub covers: u64,
}

/// Something of the application that lives in the history and in events only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// Its kind; chosen by the application.
    pub kind: Arc<str>,
    /// Its content.
    #[serde(default)]
    pub value: Value,
}

impl Entry {
    /// The text of a message, a reply or a summary; empty for what no model sees.
    pub fn to_text(&self) -> String {
        match self {
            Entry::User(message) => message.to_text(),
            Entry::Turn(turn) => turn.reply().text(),
            Entry::Summary(summary) => summary.text.to_string(),
            Entry::Custom(_) => String::new(),
        }
    }

    /// True if it is kept when the conversation is compacted.
    ///
    /// A pinned message is, and a turn with a pinned result.
    pub fn is_pinned(&self) -> bool {
        match self {
            Entry::User(message) => message.pinned,
            Entry::Turn(turn) => turn.results().iter().any(|result| result.pinned),
            Entry::Summary(_) | Entry::Custom(_) => false,
        }
    }
}

impl From<UserMessage> for Entry {
    fn from(message: UserMessage) -> Self {
        Entry::User(message)
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        UserMessage::text(text).into()
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        UserMessage::text(text).into()
    }
}

impl From<Turn> for Entry {
    fn from(turn: Turn) -> Self {
        Entry::Turn(turn)
    }
}

impl From<OpenTurn> for Entry {
    /// Closes the turn; a call without a result gets a result with [`Status::Cancelled`].
    fn from(open: OpenTurn) -> Self {
        open.close_with(|_| {
            CallResult::new(Status::Cancelled, "not executed: no result was recorded")
        })
        .into()
    }
}

impl From<Custom> for Entry {
    fn from(custom: Custom) -> Self {
        Entry::Custom(custom)
    }
}
