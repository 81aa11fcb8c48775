//! Reading notes: one, a page of their metadata, and a search.

use adjutant_agent::kv::Scan;

use super::{
    MAX_FOUND, MAX_PAGE, Note, NoteInfo, Notes, check,
    kept::{self, BODIES, Body, INFOS, NoteRecord},
};
use crate::{Error, ErrorKind, reflection::telling};

/// The largest number of times that a note is read if it changes while it is read.
const TRIES: usize = 20;
/// The largest number of significant words of a query.
const MAX_WORDS: usize = 50;

impl Notes {
    /// A note; `None` if it does not exist.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be, `Conflict` if it is changed all the time, `Store`.
    pub async fn read(&self, name: &str) -> Result<Option<Note>, Error> {
        check::name(name)?;
        for _ in 0..TRIES {
            let Some(info) = self.kv.get(&format!("{INFOS}{name}")).await? else {
                return Ok(None);
            };
            let body = self.kv.get(&format!("{BODIES}{name}")).await?;
            // Both are of one write, or it was changed in between.
            if let Some(body) = body.filter(|body| body.version == info.version) {
                let Body { body } = kept::read(&body)?;
                return Ok(Some(Note {
                    info: NoteRecord::from_item(&info)?.info,
                    body,
                }));
            }
            tokio::task::yield_now().await;
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("note {name:?} is changed faster than it can be read"),
        ))
    }

    /// Returns the facts about the notes after a name, in the order of their names; [`MAX_PAGE`] at most.
    ///
    /// # Errors
    /// `Store`.
    pub async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<NoteInfo>, Error> {
        let scan = Scan {
            limit: Some(limit.min(MAX_PAGE)),
            ..Scan::prefix(INFOS)
        };
        let scan = match after {
            Some(name) => Scan {
                after: Some(format!("{INFOS}{name}").into()),
                ..scan
            },
            None => scan,
        };
        let items = self.kv.scan(&scan).await?;
        items
            .iter()
            .map(|item| Ok(NoteRecord::from_item(item)?.info))
            .collect()
    }

    /// The notes that fit the words of a query best, best first; [`MAX_FOUND`] at most. Words that nearly every text has
    /// do not count.
    ///
    /// # Errors
    /// `Invalid` if the query has no word, `Store`.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<Note>, Error> {
        let words = telling(query);
        if words.is_empty() {
            let message = "a search needs a word that tells what to look for; hint: list_notes shows all notes";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let words = words.get(..MAX_WORDS).unwrap_or(&words).join(" ");
        let hits = self.kv.search(BODIES, &words, limit.min(MAX_FOUND)).await?;
        let mut found = Vec::with_capacity(hits.len());
        for hit in hits {
            let name = hit.item.key.strip_prefix(BODIES).unwrap_or_default();
            // A note that was removed in the meantime is omitted.
            if let Some(info) = self.kv.get(&format!("{INFOS}{name}")).await? {
                let Body { body } = kept::read(&hit.item)?;
                found.push(Note {
                    info: NoteRecord::from_item(&info)?.info,
                    body,
                });
            }
        }
        Ok(found)
    }
}
