//! The view that the next request shows: the fold of recorded edits. Nothing edits it in place.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{Stored, Transcript};
use crate::{
    EntryId,
    entry::{Entry, Summary},
    tokens::Estimate,
};

/// A recorded change of what the next request shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Edit {
    /// Adds an entry at the end; it enters the history too.
    Append {
        /// The entry.
        entry: Entry,
    },
    /// Shows another entry in the place of one.
    Replace {
        /// The replaced entry.
        at: EntryId,
        /// The replacement of the entry.
        with: Entry,
    },
    /// Shows a summary in the place of everything up to and including an entry.
    ///
    /// This includes earlier summaries, and entries that an earlier fold kept.
    Fold {
        /// The last entry that the summary replaces; the summary takes its id.
        upto: EntryId,
        /// The entries before `upto` that stay visible, before the summary and in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keep: Vec<EntryId>,
        /// The summary.
        into: Summary,
    },
}

/// An edit that does not fit the view, and the entry that it does not fit at.
///
/// The edit names an entry that is not visible, or keeps an entry that it does not fold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the edit does not fit the view at entry {}", .0.0)]
pub struct EditError(pub EntryId);

/// The view that the next request shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct View {
    items: Transcript,
}

/// Shows these.
impl From<Transcript> for View {
    fn from(items: Transcript) -> Self {
        Self { items }
    }
}

impl View {
    /// Returns the visible entries, oldest first.
    pub fn items(&self) -> &Transcript {
        &self.items
    }

    /// Shows an entry that has just entered the history.
    pub fn append(&mut self, stored: Arc<Stored>) {
        self.items.push_stored(stored);
    }

    /// Applies an edit. `Append` gives the entry the next id of the view; a history that must agree appends first.
    ///
    /// # Errors
    /// If the edit names an entry that is not visible; the view is unchanged then.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        match edit {
            Edit::Append { entry } => {
                self.items.push(entry.clone());
            }
            Edit::Replace { at, with } => {
                let place = self.place(*at)?;
                self.put(&BTreeMap::from([(place, stand_in(*at, with.clone()))]));
            }
            Edit::Fold { upto, keep, into } => self.fold(*upto, keep, into)?,
        }
        Ok(())
    }

    /// Applies edits in order, as [`View::apply`] would one by one; all of them or none.
    ///
    /// Replacements are applied together: up to the next fold, any number of them costs one pass over the view.
    ///
    /// # Errors
    /// Of the first edit that does not fit; the view is unchanged then.
    pub fn apply_all(&mut self, edits: &[Edit]) -> Result<(), EditError> {
        let mut view = self.clone();
        let mut replaced = BTreeMap::new();
        for edit in edits {
            match edit {
                // It moves no other entry, so the places of earlier replacements stay right.
                Edit::Append { .. } => view.apply(edit)?,
                Edit::Replace { at, with } => {
                    replaced.insert(view.place(*at)?, stand_in(*at, with.clone()));
                }
                Edit::Fold { .. } => {
                    view.put(&std::mem::take(&mut replaced));
                    view.apply(edit)?;
                }
            }
        }
        view.put(&replaced);
        *self = view;
        Ok(())
    }

    /// Shows these in the places that they are keyed by.
    fn put(&mut self, stand_ins: &BTreeMap<usize, Arc<Stored>>) {
        if !stand_ins.is_empty() {
            let items = self.items.iter().enumerate();
            self.items =
                self.rebuilt(items.map(|(place, stored)| stand_ins.get(&place).unwrap_or(stored)));
        }
    }

    fn fold(&mut self, upto: EntryId, keep: &[EntryId], into: &Summary) -> Result<(), EditError> {
        let end = self.place(upto)?;
        let within = |id: &EntryId| {
            self.items
                .position(*id)
                .filter(|place| *place < end)
                .ok_or(EditError(*id))
        };
        let kept = keep
            .iter()
            .map(within)
            .collect::<Result<BTreeSet<usize>, EditError>>()?;
        let summary = stand_in(upto, Entry::Summary(into.clone()));
        let kept = kept.into_iter().filter_map(|place| self.items.get(place));
        let items = kept
            .chain(std::iter::once(&summary))
            .chain(self.items.iter_from(end + 1));
        self.items = self.rebuilt(items);
        Ok(())
    }

    fn place(&self, id: EntryId) -> Result<usize, EditError> {
        self.items.position(id).ok_or(EditError(id))
    }

    fn rebuilt<'a>(&self, items: impl Iterator<Item = &'a Arc<Stored>>) -> Transcript {
        let mut rebuilt = Transcript::new();
        for stored in items {
            rebuilt.push_stored(Arc::clone(stored));
        }
        rebuilt.next = self.items.next;
        rebuilt
    }
}

fn stand_in(id: EntryId, entry: Entry) -> Arc<Stored> {
    Arc::new(Stored {
        id,
        tokens: Estimate::entry(&entry),
        entry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserMessage;

    fn user(text: &str) -> Entry {
        Entry::User(UserMessage::text(text))
    }

    fn shown(view: &View) -> Vec<(u64, String)> {
        let name = |entry: &Entry| match entry {
            Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
            Entry::Summary(summary) => format!("[{}]", summary.text),
            Entry::Turn(_) | Entry::Custom(_) => unreachable!("only users and summaries here"),
        };
        view.items()
            .iter()
            .map(|stored| (stored.id.0, name(&stored.entry)))
            .collect()
    }

    #[test]
    fn apply_replaces_and_folds_when_the_entry_is_shown() {
        let mut view = View::default();
        for text in ["a", "b", "c"] {
            view.apply(&Edit::Append { entry: user(text) })
                .expect("appending always fits");
        }
        view.apply(&Edit::Replace {
            at: EntryId(1),
            with: user("B"),
        })
        .expect("b is shown");
        assert_eq!(
            shown(&view),
            [(0, "a".into()), (1, "B".into()), (2, "c".into())]
        );
        let into = Summary {
            text: "ab".into(),
            covers: 2,
        };
        view.apply(&Edit::Fold {
            upto: EntryId(1),
            keep: Vec::new(),
            into: into.clone(),
        })
        .expect("b is shown");
        assert_eq!(shown(&view), [(1, "[ab]".into()), (2, "c".into())]);
        let gone = Edit::Fold {
            upto: EntryId(0),
            keep: Vec::new(),
            into,
        };
        assert_eq!(view.apply(&gone), Err(EditError(EntryId(0))));
        view.apply(&Edit::Append { entry: user("d") })
            .expect("appending always fits");
        assert_eq!(shown(&view)[2], (3, "d".into()));
    }
}
