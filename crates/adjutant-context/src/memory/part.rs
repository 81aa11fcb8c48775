//! The unread part of a conversation in the form for a model: messages of people and of the assistant.

use std::sync::Arc;

use adjutant_llm::{Content, Entry, Origin, Stored, Transcript, UserMessage};
use serde_json::{Value, json};

use super::words;

/// The largest number of bytes of texts in one request to a model; a longer history is read in several.
const MAX_PART_BYTES: usize = 48 * 1024;
/// The largest number of bytes of one text.
const MAX_SAID_BYTES: usize = 16 * 1024;
/// The number of texts before the part that are included, so that answers can be understood.
const BEFORE: usize = 4;
/// The largest number of bytes of each of these.
const MAX_BEFORE_BYTES: usize = 1_000;

/// The next part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConversationPart {
    /// The texts from before it.
    before: Vec<Value>,
    /// The texts in it.
    said: Vec<Value>,
    /// True if it contains a message of a person.
    pub(super) has_person: bool,
    /// The number of the entry behind it.
    pub(super) to: u64,
}

impl ConversationPart {
    /// The part that begins with the entry of this number; `None` if there is nothing behind it.
    pub(super) fn next(history: &Transcript, from: u64) -> Option<Self> {
        let unread = history
            .iter()
            .rev()
            .take_while(|stored| stored.id.0 >= from)
            .count();
        let first = history.len().checked_sub(unread).filter(|_| unread > 0)?;
        let mut part = Self {
            before: before(history, first),
            said: Vec::new(),
            has_person: false,
            to: from,
        };
        let mut bytes = 0_usize;
        for stored in history.iter_from(first) {
            if let Some((who, text)) = entry_text(stored, MAX_SAID_BYTES) {
                bytes = bytes.saturating_add(text.len());
                if bytes > MAX_PART_BYTES && !part.said.is_empty() {
                    break;
                }
                part.has_person |= who == USER;
                part.said.push(json!({ "who": who, "said": text }));
            }
            part.to = stored.id.0.saturating_add(1);
        }
        Some(part)
    }

    /// Returns its text for the model.
    pub(super) fn to_json(&self) -> Arc<str> {
        json!({ "before": self.before, "new": self.said })
            .to_string()
            .into()
    }
}

const USER: &str = "user";

/// The author and the text of an entry. Tool results, reminders and entries of the application do not count.
fn entry_text(stored: &Stored, max: usize) -> Option<(&'static str, String)> {
    let (who, text) = match &stored.entry {
        Entry::Turn(turn) => ("assistant", turn.reply().text()),
        other => (USER, user_texts(other)?.collect::<Vec<_>>().join("\n")),
    };
    let text = words::cut(text.trim(), max);
    (!text.is_empty()).then(|| (who, text.to_owned()))
}

fn before(history: &Transcript, first: usize) -> Vec<Value> {
    // A long sequence of tool calls is possible: the search is bounded.
    let nearest = (first.saturating_sub(4 * BEFORE)..first)
        .rev()
        .filter_map(|at| history.get(at));
    let said = nearest
        .filter_map(|stored| entry_text(stored, MAX_BEFORE_BYTES))
        .take(BEFORE);
    let mut before: Vec<Value> = said
        .map(|(who, text)| json!({ "who": who, "said": text }))
        .collect();
    before.reverse();
    before
}

/// The texts of an entry, if its author is a person.
pub(super) fn user_texts(entry: &Entry) -> Option<impl Iterator<Item = &str>> {
    match entry {
        Entry::User(UserMessage {
            content,
            origin: Origin::Person | Origin::Steering | Origin::FollowUp,
            ..
        }) => Some(content.iter().filter_map(Content::as_text)),
        _ => None,
    }
}
