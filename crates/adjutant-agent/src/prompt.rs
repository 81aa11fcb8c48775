//! What a run is prompted with.

use adjutant_core::Error;
use adjutant_llm::{Entry, UserMessage};

/// What a run is prompted with: text, one message, or several entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    entries: Vec<Entry>,
}

impl Prompt {
    /// Several entries. Turns are welcome: they are paired by construction.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    pub(crate) fn checked(self) -> Result<Vec<Entry>, Error> {
        let says_something = |entry: &Entry| matches!(entry, Entry::User(message) if !message.is_empty());
        if self.entries.iter().any(|entry| matches!(entry, Entry::Summary(_))) {
            return Err(Error::prompt("a summary belongs to a view, not to a prompt"));
        }
        if !self.entries.iter().any(says_something) {
            return Err(Error::prompt("it is empty"));
        }
        Ok(self.entries)
    }
}

impl From<UserMessage> for Prompt {
    fn from(message: UserMessage) -> Self {
        Self::new(vec![Entry::User(message)])
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        UserMessage::text(text).into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        UserMessage::text(text).into()
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Vec<UserMessage>> for Prompt {
    fn from(messages: Vec<UserMessage>) -> Self {
        Self::new(messages.into_iter().map(Entry::User).collect())
    }
}

impl From<Vec<Entry>> for Prompt {
    fn from(entries: Vec<Entry>) -> Self {
        Self::new(entries)
    }
}
