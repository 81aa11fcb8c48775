//! Writing and removing notes with compare-and-set, so that unseen changes are never overwritten.

use std::sync::Arc;

use adjutant_agent::kv::{Change, Item, KvStoreErrorKind, Version, When};
use adjutant_tool::Identity;

use super::{
    Author, MAX_NOTES, Mode, NoteInfo, Notes, Writing, check,
    kept::{self, BODIES, Body, COUNT, INFOS, NoteRecord},
};
use crate::{Error, ErrorKind};

/// The largest number of times that a write is tried while others are faster.
const TRIES: usize = 100;

impl Notes {
    /// Writes a note, completely or not at all; returns its new metadata.
    ///
    /// # Errors
    /// `Invalid` for an invalid name, `Exists` if it must not exist and does, `Missing` if it must exist and does
    /// not, `Conflict` if it has another version, `Full` if the body or the number of notes would be too large,
    /// `Store`. Nothing was written then.
    pub async fn write(&self, writing: Writing, by: &Identity) -> Result<NoteInfo, Error> {
        check::name(&writing.name)?;
        check::body(&writing.name, &writing.body)?;
        let by = Author::from(by);
        for _ in 0..TRIES {
            if let Some(info) = self.try_write(&writing, &by).await? {
                return Ok(info);
            }
            tokio::task::yield_now().await;
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "note {:?} was always changed by someone else first",
                writing.name
            ),
        ))
    }

    /// Removes a note of any version; `false` if it does not exist.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be, `Conflict` if others were always faster, `Store`.
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        check::name(name)?;
        for _ in 0..TRIES {
            let Some(item) = self.kv.get(&format!("{INFOS}{name}")).await? else {
                return Ok(false);
            };
            let counted = self.kv.get(COUNT).await?;
            let notes = counted
                .as_ref()
                .map(kept::read::<u64>)
                .transpose()?
                .unwrap_or_default();
            let mut changes = kept::removal(name, item.version);
            changes.push(kept::count(counted.as_ref(), notes.saturating_sub(1))?);
            if self.put(changes).await?.is_some() {
                return Ok(true);
            }
            tokio::task::yield_now().await;
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("note {name:?} was always changed by someone else first"),
        ))
    }

    /// Writes once; `None` after a conflict.
    async fn try_write(&self, writing: &Writing, by: &Author) -> Result<Option<NoteInfo>, Error> {
        let item = self.kv.get(&format!("{INFOS}{}", writing.name)).await?;
        let before = item.as_ref().map(NoteRecord::from_item).transpose()?;
        if let Some(done) = before
            .as_ref()
            .filter(|kept| kept.knows(writing.key.as_ref()))
        {
            return Ok(Some(done.info.clone()));
        }
        demand(writing, item.as_ref())?;
        let is_new = before.is_none();
        let body = match (&before, writing.mode) {
            (Some(_), Mode::Append) => match self.build_appended_body(writing).await? {
                Some(body) => body,
                // It was removed in the meantime.
                None => return Ok(None),
            },
            _ => Arc::clone(&writing.body),
        };
        check::body(&writing.name, &body)?;
        let mut kept = self.build_record(before, writing, by, body.len());
        let when = item.map_or(When::Absent, |item| When::Is(item.version));
        let mut changes = kept.changes(body, when)?;
        if is_new {
            changes.push(self.one_more().await?);
        }
        let version = self.put(changes).await?;
        Ok(version.map(|version| {
            kept.info.version = version;
            kept.info
        }))
    }

    /// The body of a note with the appended text. If the note changes in the meantime, nothing is written.
    async fn build_appended_body(&self, writing: &Writing) -> Result<Option<Arc<str>>, Error> {
        let Some(item) = self.kv.get(&format!("{BODIES}{}", writing.name)).await? else {
            return Ok(None);
        };
        let Body { body } = kept::read(&item)?;
        let gap = if body.is_empty() || body.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Ok(Some(format!("{body}{gap}{}", writing.body).into()))
    }

    /// Returns the record to keep of the note when it is written.
    fn build_record(
        &self,
        before: Option<NoteRecord>,
        writing: &Writing,
        by: &Author,
        bytes: usize,
    ) -> NoteRecord {
        let now_ms = self.world.now_ms();
        let mut kept = before.unwrap_or_else(|| {
            NoteRecord::new(NoteInfo {
                name: Arc::clone(&writing.name),
                bytes,
                created_by: by.clone(),
                created_ms: now_ms,
                changed_by: by.clone(),
                changed_ms: now_ms,
                version: Version::default(),
            })
        });
        (kept.info.bytes, kept.info.changed_by, kept.info.changed_ms) = (bytes, by.clone(), now_ms);
        kept.remember(writing.key.clone());
        kept
    }

    /// Returns the change that counts one more note; fails at the limit.
    async fn one_more(&self) -> Result<Change, Error> {
        let counted = self.kv.get(COUNT).await?;
        let notes = counted
            .as_ref()
            .map(kept::read::<u64>)
            .transpose()?
            .unwrap_or_default();
        if notes >= MAX_NOTES as u64 {
            let message = format!(
                "there are {notes} notes, and may be {MAX_NOTES}; hint: write into one of them"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        kept::count(counted.as_ref(), notes + 1)
    }

    /// The version that was written; `None` if something was not as it must be.
    async fn put(&self, changes: Vec<Change>) -> Result<Option<Version>, Error> {
        match self.kv.write(changes).await {
            Err(error) if matches!(error.kind, KvStoreErrorKind::Conflict { .. }) => Ok(None),
            other => Ok(Some(other?)),
        }
    }
}

/// Checks what must be true of the note.
fn demand(writing: &Writing, found: Option<&Item>) -> Result<(), Error> {
    let name = &writing.name;
    let (kind, message) = match (writing.when, found) {
        (When::Any, _) | (When::Absent, None) => return Ok(()),
        (When::Is(version), Some(item)) if item.version == version => return Ok(()),
        (When::Absent, Some(_)) => (
            ErrorKind::Exists,
            format!("there is a note {name:?} already"),
        ),
        (When::Is(_), None) => (
            ErrorKind::Missing,
            format!("there is no note {name:?} any more"),
        ),
        (When::Is(version), Some(item)) => {
            let found = item.version;
            (
                ErrorKind::Conflict,
                format!(
                    "note {name:?} has version {found} by now, not {version}; hint: read it again"
                ),
            )
        }
    };
    Err(Error::new(kind, message))
}
