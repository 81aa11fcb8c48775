//! The cut of a view: at the border of an entry, so that a call never loses its result.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_llm::{Edit, Entry, EntryId, Estimate, Origin, Stored, Summary, Transcript};

/// The start of a note about omitted entries, so that the next one replaces it.
const NOTE: &str = "[Left out to make room: ";

/// The beginning of a view that can be replaced with a text: whole entries, so that a call never loses its result.
#[derive(Debug)]
pub struct Cut {
    /// The replaced entries, and the ones that stay before the text, oldest first.
    pub entries: Vec<Arc<Stored>>,
    /// The entries that stay, oldest first: the latest prompt, and pinned ones.
    pub keep: Vec<EntryId>,
    /// The number of replaced entries.
    pub folded: usize,
    /// The estimated size of the removed entries.
    pub tokens: u64,
    upto: EntryId,
    covers: u64,
}

impl Cut {
    /// Selects everything before the latest entries that can be removed; `None` if nothing can.
    ///
    /// The newest entries may have `recent` tokens, by estimate, and the newest one stays always; pinned entries before
    /// them may keep `pinned` tokens.
    pub fn select(items: &Transcript, recent: u64, pinned: u64) -> Option<Self> {
        Self::before(items, newest(items, recent), pinned)
    }

    /// Selects everything before a place that can be removed; pinned entries there may keep this many tokens.
    pub fn before(items: &Transcript, end: usize, pinned: u64) -> Option<Self> {
        let mut keep = entries_to_keep(items, end, pinned);
        let before = || (0..end).filter_map(|at| items.get(at));
        // An entry right before the newest ones need not be kept: nothing behind it is folded.
        let upto = before().rfind(|stored| !keep.contains(&stored.id))?.id;
        keep.retain(|id| *id < upto);
        let entries: Vec<_> = before()
            .take_while(|stored| stored.id <= upto)
            .cloned()
            .collect();
        let gone = || entries.iter().filter(|stored| !keep.contains(&stored.id));
        let (folded, tokens) = (gone().count(), gone().map(|stored| stored.tokens).sum());
        let covers = gone().map(|stored| match &stored.entry {
            Entry::Summary(summary) => summary.covers,
            _ => 1,
        });
        let covers = covers.sum();
        // A summary alone is not summarised again.
        let worth = gone().any(|stored| !matches!(stored.entry, Entry::Summary(_)));
        worth.then_some(Self {
            keep: keep.into_iter().collect(),
            folded,
            tokens,
            upto,
            covers,
            entries,
        })
    }

    /// Returns the summary of an earlier fold, if it is replaced now.
    pub fn previous(&self) -> Option<&Summary> {
        self.entries
            .iter()
            .rev()
            .find_map(|stored| match &stored.entry {
                Entry::Summary(summary) => Some(summary),
                _ => None,
            })
    }

    /// Returns the number of tokens that the view loses if this text replaces the folded entries.
    pub fn gain(&self, text: &str) -> u64 {
        let summary = Entry::Summary(Summary {
            text: text.into(),
            covers: 0,
        });
        self.tokens.saturating_sub(Estimate::entry(&summary))
    }

    /// Returns a note that replaces the folded entries, after the summary of an earlier fold.
    pub fn note(&self) -> Arc<str> {
        let earlier = self.previous().map_or("", |summary| &*summary.text);
        let earlier = earlier
            .find(NOTE)
            .map_or(earlier, |at| &earlier[..at])
            .trim_end();
        let gap = if earlier.is_empty() { "" } else { "\n\n" };
        format!(
            "{earlier}{gap}{NOTE}{} entries of the conversation up to here, in all.]",
            self.covers
        )
        .into()
    }

    /// Returns the edit that replaces the folded entries by this text.
    pub fn into_fold(self, text: Arc<str>) -> Edit {
        Edit::Fold {
            upto: self.upto,
            keep: self.keep,
            into: Summary {
                text,
                covers: self.covers,
            },
        }
    }
}

/// Returns the place of the first of the newest entries that stay as they are.
fn newest(items: &Transcript, budget: u64) -> usize {
    let (mut at, mut tokens) = (items.len(), 0_u64);
    for stored in items.iter().rev() {
        tokens = tokens.saturating_add(stored.tokens);
        if tokens > budget && at < items.len() {
            break;
        }
        at -= 1;
    }
    at
}

/// Returns the entries before a place that stay: the latest task of the model, and pinned entries, newest first.
fn entries_to_keep(items: &Transcript, end: usize, budget: u64) -> BTreeSet<EntryId> {
    let mut keep = BTreeSet::new();
    let newest = |wanted: fn(&Origin) -> bool| {
        let found = items
            .iter()
            .rfind(|stored| matches!(&stored.entry, Entry::User(it) if wanted(&it.origin)));
        found.map(|stored| stored.id)
    };
    let prompt = newest(|from| {
        matches!(
            from,
            Origin::Person | Origin::Task { .. } | Origin::FollowUp | Origin::Peer { .. }
        )
    });
    keep.extend(prompt);
    keep.extend(
        newest(|from| *from == Origin::Steering).filter(|steering| Some(*steering) > prompt),
    );
    let mut left = budget;
    for stored in (0..end).rev().filter_map(|at| items.get(at)) {
        if stored.entry.is_pinned() && !keep.contains(&stored.id) && stored.tokens <= left {
            left -= stored.tokens;
            keep.insert(stored.id);
        }
    }
    keep
}
