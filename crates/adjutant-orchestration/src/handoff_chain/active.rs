//! The current agent of a conversation: handoffs are part of its history.

use adjutant_llm::{CallResult, Entry, Origin, Status, Transcript};

use super::HandoffTarget;

/// The field of a result's details that marks a handoff.
pub(super) const FIELD: &str = "handoff";

/// Whom a result hands the conversation to, if it does.
pub(super) fn find_target(result: &CallResult) -> Option<&str> {
    if result.status != Status::Ok {
        return None;
    }
    result.details.get(FIELD)?.get("to")?.as_str()
}

/// The last agent that got the conversation, if it was handed over to one of these after so many entries.
pub(super) fn target(
    history: &Transcript,
    known: usize,
    targets: &[HandoffTarget],
) -> Option<usize> {
    history
        .iter()
        .rev()
        .take(history.len().saturating_sub(known))
        .find_map(|stored| {
            let to = find_entry_target(&stored.entry)?;
            targets.iter().position(|target| &*target.name == to)
        })
}

/// True if the history ends with a handoff without an answer.
pub(super) fn is_handed_over(history: &Transcript) -> bool {
    history
        .iter()
        .next_back()
        .is_some_and(|stored| find_entry_target(&stored.entry).is_some())
}

/// The number of handoffs since the last external message.
pub(super) fn handoffs(history: &Transcript) -> usize {
    let is_prompt =
        |entry: &Entry| matches!(entry, Entry::User(message) if message.origin == Origin::Person);
    let since = history
        .iter()
        .rev()
        .take_while(|stored| !is_prompt(&stored.entry));
    since
        .filter(|stored| find_entry_target(&stored.entry).is_some())
        .count()
}

/// Whom a turn hands the conversation to: of several, the first in the order of the calls counts.
pub(super) fn find_entry_target(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Turn(turn) => turn.results().iter().find_map(|result| find_target(result)),
        _ => None,
    }
}
