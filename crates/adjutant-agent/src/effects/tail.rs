//! The newest turns of the work at hand, newest first. The history is read, so that nothing hides behind a summary.

use adjutant_llm::{Entry, EntryId, Origin, Transcript, Turn};

use crate::effect::{EffectContext, Phase};

/// The turns with calls since the message that began the work, newest first; steering and reminders do not end them.
pub(super) fn turns(history: &Transcript) -> impl Iterator<Item = (EntryId, &Turn)> {
    until(history, |origin| {
        matches!(
            origin,
            Origin::Person | Origin::FollowUp | Origin::Task { .. }
        )
    })
}

/// Returns the turns with calls since the last message from outside the framework, newest first.
pub(super) fn turns_since_input(history: &Transcript) -> impl Iterator<Item = (EntryId, &Turn)> {
    until(history, |origin| !matches!(origin, Origin::Reminder { .. }))
}

fn until(
    history: &Transcript,
    ends: impl Fn(&Origin) -> bool,
) -> impl Iterator<Item = (EntryId, &Turn)> {
    let newest = history.iter().rev();
    let since = newest.take_while(move |stored| match &stored.entry {
        Entry::User(message) => !ends(&message.origin),
        _ => true,
    });
    since.filter_map(|stored| match &stored.entry {
        Entry::Turn(turn) if !turn.results().is_empty() => Some((stored.id, turn)),
        _ => None,
    })
}

/// True if a message may be added in this turn: not when it is prepared for the second time.
pub(super) fn may_speak(cx: &EffectContext<'_>) -> bool {
    matches!(cx.phase, Phase::Request | Phase::Preview)
}
