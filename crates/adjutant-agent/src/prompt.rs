//! The prompt of a run.

use adjutant_core::Error;
use adjutant_llm::{Entry, UserMessage};

/// The prompt of a run: text, one message, several entries, or [`Continue`].
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// `None` for a run that continues with the existing conversation.
    entries: Option<Vec<Entry>>,
}

/// Replaces a missing prompt: the run continues with the existing conversation.
///
/// After a message of the user, or results, the model answers those. After an answer, the steering that waits is the
/// prompt, or else a follow-up. Custom entries at the end are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continue;

impl Prompt {
    /// Several entries. Turns are welcome: they are paired by construction.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries: Some(entries),
        }
    }

    /// Returns the entries of the prompt; empty if the run continues with the existing entries.
    pub(crate) fn into_entries(self) -> Result<Vec<Entry>, Error> {
        if self.entries.is_none() {
            Ok(Vec::new())
        } else {
            self.into_nonempty_entries()
        }
    }

    /// Returns the entries of a prompt that must not be empty.
    pub(crate) fn into_nonempty_entries(self) -> Result<Vec<Entry>, Error> {
        let entries = self.entries.unwrap_or_default();
        let says_something =
            |entry: &Entry| matches!(entry, Entry::User(message) if !message.is_empty());
        if entries
            .iter()
            .any(|entry| matches!(entry, Entry::Summary(_)))
        {
            return Err(Error::Prompt(
                "a summary belongs to a view, not to a prompt",
            ));
        }
        if !entries.iter().any(says_something) {
            return Err(Error::Prompt("it is empty"));
        }
        Ok(entries)
    }
}

impl From<Continue> for Prompt {
    fn from(_: Continue) -> Self {
        Self { entries: None }
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
