//! What the next request shows: the fold of recorded edits. Nothing edits it in place.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Entry, EntryId, Estimate, Stored, Summary, Transcript};

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
        /// The entry that gives way.
        at: EntryId,
        /// What is shown instead.
        with: Entry,
    },
    /// Shows a summary in the place of everything up to and including an entry.
    Fold {
        /// The last entry that the summary stands for.
        upto: EntryId,
        /// The summary.
        into: Summary,
    },
}

/// An edit that does not fit the view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no entry {} in the view", .0.0)]
pub struct EditError(pub EntryId);

/// What the next request shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct View {
    items: Transcript,
}

impl View {
    /// What is shown, oldest first.
    pub fn items(&self) -> &Transcript {
        &self.items
    }

    /// The estimated size in tokens.
    pub fn tokens(&self) -> u64 {
        self.items.tokens()
    }

    /// Shows an entry that has just entered the history.
    pub fn append(&mut self, stored: Arc<Stored>) {
        self.items.push_stored(stored);
    }

    /// Applies an edit. `Append` gives the entry the next id of the view; a history that must agree appends first.
    ///
    /// # Errors
    /// If the view shows no entry of that id; the view is unchanged then.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        match edit {
            Edit::Append { entry } => {
                self.items.push(entry.clone());
                Ok(())
            }
            Edit::Replace { at, with } => self.replace(*at, with),
            Edit::Fold { upto, into } => self.fold(*upto, into),
        }
    }

    fn replace(&mut self, at: EntryId, with: &Entry) -> Result<(), EditError> {
        let place = self.place(at)?;
        let stand_in = Arc::new(Stored { id: at, tokens: Estimate::entry(with), entry: with.clone() });
        let items = self.items.iter().enumerate();
        self.items = Self::rebuilt(items.map(|(n, stored)| if n == place { &stand_in } else { stored }));
        Ok(())
    }

    fn fold(&mut self, upto: EntryId, into: &Summary) -> Result<(), EditError> {
        let place = self.place(upto)?;
        let entry = Entry::Summary(into.clone());
        let summary = Arc::new(Stored { id: upto, tokens: Estimate::entry(&entry), entry });
        self.items = Self::rebuilt(std::iter::once(&summary).chain(self.items.iter().skip(place + 1)));
        Ok(())
    }

    fn place(&self, id: EntryId) -> Result<usize, EditError> {
        self.items.iter().position(|stored| stored.id == id).ok_or(EditError(id))
    }

    fn rebuilt<'a>(items: impl Iterator<Item = &'a Arc<Stored>>) -> Transcript {
        let mut rebuilt = Transcript::new();
        for stored in items {
            rebuilt.push_stored(Arc::clone(stored));
        }
        rebuilt
    }
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
        view.items().iter().map(|stored| (stored.id.0, name(&stored.entry))).collect()
    }

    #[test]
    fn apply_replaces_and_folds_when_the_entry_is_shown() {
        let mut view = View::default();
        for text in ["a", "b", "c"] {
            view.apply(&Edit::Append { entry: user(text) }).expect("appending always fits");
        }
        view.apply(&Edit::Replace { at: EntryId(1), with: user("B") }).expect("b is shown");
        assert_eq!(shown(&view), [(0, "a".into()), (1, "B".into()), (2, "c".into())]);
        let into = Summary { text: "ab".into(), covers: 2 };
        view.apply(&Edit::Fold { upto: EntryId(1), into: into.clone() }).expect("b is shown");
        assert_eq!(shown(&view), [(1, "[ab]".into()), (2, "c".into())]);
        assert_eq!(view.apply(&Edit::Fold { upto: EntryId(0), into }), Err(EditError(EntryId(0))));
        view.apply(&Edit::Append { entry: user("d") }).expect("appending always fits");
        assert_eq!(shown(&view)[2], (3, "d".into()));
    }
}
