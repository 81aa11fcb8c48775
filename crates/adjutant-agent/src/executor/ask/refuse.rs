//! Media that a provider refuses: replaces them with a text, so that the session continues.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_core::{ActivityId, Record};
use adjutant_llm::{
    Content, Edit, Entry, EntryId, Error, RefusedMedia, Stored,
    media::{has_media, map_media},
};

use super::Asking;
use crate::executor::Performed;

/// The maximum number of requests of a run that are tried again without media.
const MAX_REFUSALS: u32 = 8;
/// The maximum number of characters of a refusal that the text in place of a medium quotes.
const MAX_REASON: usize = 200;

impl Asking {
    /// Returns the edits that replace the refused media of the request, which held the entries before `next_entry`; `None` if
    /// something was streamed, or nothing can be replaced.
    ///
    /// On the last try all media are replaced.
    pub(super) fn replacements(&self, error: &Error, next_entry: EntryId) -> Option<Vec<Edit>> {
        let refused = error.details().refused.as_ref();
        let refused = refused.filter(|_| self.kinds.is_empty())?;
        let run = self.feed.seen.run();
        let tries = MAX_REFUSALS.saturating_sub(run.request().refusals());
        if tries == 0 {
            return None;
        }
        let asked = run.view().items().iter();
        let asked: Vec<_> = asked.take_while(|stored| stored.id < next_entry).collect();
        let reason: String = error.message().chars().take(MAX_REASON).collect();
        let text = format!("[omitted: the provider refused it: {reason}]");
        let edits = replace(&asked, refused, tries == 1, &text);
        (!edits.is_empty()).then_some(edits)
    }

    /// The turn is prepared again, without the refused media.
    pub(super) fn handle_refusal(mut self, error: &Error, edits: Vec<Edit>) -> Performed {
        self.retract(error);
        self.records.push(Record::Refused {
            turn: self.turn,
            edits,
            reason: error.message().into(),
        });
        Performed {
            records: self.records.into(),
            ..Performed::nothing(ActivityId::Ask(self.turn))
        }
    }
}

/// Replaces the named media. If none is named, replaces the media after the last reply, which no accepted request has
/// contained; if there are none, replaces all.
fn replace(asked: &[&Arc<Stored>], refused: &RefusedMedia, is_last: bool, text: &str) -> Vec<Edit> {
    let named: BTreeSet<_> = refused
        .named
        .iter()
        .map(|place| (place.entry, place.number))
        .collect();
    let is_turn = |stored: &&Arc<Stored>| matches!(stored.entry, Entry::Turn(_));
    let accepted = asked.iter().rposition(is_turn).unwrap_or(0);
    let edit = |stored: &Arc<Stored>, all: bool| {
        let is_replaced = |number| all || named.contains(&(stored.id, number));
        let replaced = |number, _: &Content| is_replaced(number).then(|| Content::text(text));
        let entry = Some(&stored.entry).filter(|entry| has_media(entry))?;
        let with = map_media(entry, replaced)?;
        Some(Edit::Replace {
            at: stored.id,
            with,
        })
    };
    let all = |from: usize| -> Vec<Edit> {
        let asked = asked[from..].iter();
        asked.filter_map(|stored| edit(stored, true)).collect()
    };
    if is_last {
        return all(0);
    }
    let some: Vec<Edit> = asked
        .iter()
        .filter_map(|stored| edit(stored, false))
        .collect();
    [some, all(accepted)]
        .into_iter()
        .find(|edits| !edits.is_empty())
        .unwrap_or_else(|| all(0))
}
