//! The media of an entry: found, counted and replaced in one order.

use std::sync::Arc;

use crate::{CallResult, Content, Entry, Turn, UserMessage};

/// True if this content holds bytes that are to be admitted.
pub fn is_held(content: &Content) -> bool {
    !matches!(content, Content::Text { .. })
}

/// True if an entry holds media.
pub fn has_media(entry: &Entry) -> bool {
    match entry {
        Entry::User(message) => message.content.iter().any(is_held),
        Entry::Turn(turn) => {
            let mut results = turn.results().iter();
            results.any(|result| result.content.iter().any(is_held))
        }
        Entry::Summary(_) | Entry::Custom(_) => false,
    }
}

/// Returns the media of an entry, in order: of a message, or of the results of a turn.
pub fn media_of(entry: &Entry) -> impl Iterator<Item = &Content> {
    let (message, results) = match entry {
        Entry::User(message) => (&*message.content, &[][..]),
        Entry::Turn(turn) => (&[][..], turn.results()),
        Entry::Summary(_) | Entry::Custom(_) => (&[][..], &[][..]),
    };
    let of_results = results.iter().flat_map(|result| &result.content);
    message
        .iter()
        .chain(of_results)
        .filter(|content| is_held(content))
}

/// Returns the entry with some of its media replaced; `None` if `replace` returns `None` for all.
///
/// `replace` gets the number of each medium in the order of [`media_of`].
pub fn map_media(
    entry: &Entry,
    mut replace: impl FnMut(usize, &Content) -> Option<Content>,
) -> Option<Entry> {
    let (mut number, mut has_changed) = (0, false);
    let mut map = |contents: &[Content]| -> Vec<Content> {
        let replaced = contents.iter().map(|content| {
            if !is_held(content) {
                return content.clone();
            }
            number += 1;
            let instead = replace(number - 1, content);
            has_changed |= instead.is_some();
            instead.unwrap_or_else(|| content.clone())
        });
        replaced.collect()
    };
    let entry = match entry {
        Entry::User(message) => Entry::User(UserMessage {
            content: map(&message.content),
            ..message.clone()
        }),
        Entry::Turn(turn) => {
            let mut open = Turn::open(Arc::clone(turn.reply()));
            for (call, result) in turn.pairs() {
                let result = CallResult {
                    content: map(&result.content),
                    ..CallResult::clone(result)
                };
                open.put(call.id, Arc::new(result)).ok()?;
            }
            Entry::Turn(open.close().ok()?)
        }
        Entry::Summary(_) | Entry::Custom(_) => return None,
    };
    has_changed.then_some(entry)
}
