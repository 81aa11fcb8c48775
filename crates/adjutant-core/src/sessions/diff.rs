//! The place where two logs part.

use std::sync::Arc;

use futures_util::{StreamExt, stream::Fuse};
use serde::Serialize;

use super::{
    Sessions,
    fields::{Field, fields},
    words,
};
use crate::{
    journal::{JournalError, LogId, RecordStream, Stamped},
    number::Seq,
};

/// The maximum number of records of each log in a diff after the point of divergence.
const MAX_LINES: usize = 40;

/// The differences of two sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The number of records that both begin with; the times of records do not count.
    pub shared: u64,
    /// The number of records that each has behind those.
    pub beyond: [u64; 2],
    /// The first record behind those, of each; none where a session has ended. Not in JSON: it may be large.
    #[serde(skip)]
    pub first: [Option<Arc<Stamped>>; 2],
    /// The fields in which these two differ, at most 50.
    pub fields: Vec<Field>,
    /// The records from there on, side by side, at most 40.
    pub lines: Vec<DiffLine>,
}

/// The records of two sessions at the same place, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiffLine {
    /// The place.
    pub at: Seq,
    /// The record there of each session, in words; none where a session has ended.
    pub sides: [Option<String>; 2],
}

impl Sessions {
    /// Compares two sessions, record by record: their threads and contents, not their times.
    ///
    /// # Errors
    /// `Missing`, `Corrupt`, `Version`, `Io`.
    pub async fn diff(&self, one: &LogId, other: &LogId) -> Result<Diff, JournalError> {
        let mut logs = [one, other].map(|log| self.journal.read(log, Seq(0)).fuse());
        let mut diff = Diff {
            shared: 0,
            beyond: [0, 0],
            first: [None, None],
            fields: Vec::new(),
            lines: Vec::new(),
        };
        let mut pair = next(&mut logs).await?;
        while let [Some(one), Some(other)] = &pair
            && is_same(one, other)
        {
            diff.shared += 1;
            pair = next(&mut logs).await?;
        }
        if let [Some(one), Some(other)] = &pair {
            diff.fields = fields(one, other);
        }
        diff.first = pair.clone();
        while pair.iter().any(Option::is_some) {
            let at = Seq(diff.shared + diff.beyond[0].max(diff.beyond[1]) + 1);
            if diff.lines.len() < MAX_LINES {
                let sides = pair
                    .each_ref()
                    .map(|side| side.as_deref().map(words::record));
                diff.lines.push(DiffLine { at, sides });
            }
            for (beyond, side) in diff.beyond.iter_mut().zip(&pair) {
                *beyond += u64::from(side.is_some());
            }
            pair = next(&mut logs).await?;
        }
        Ok(diff)
    }
}

async fn next(
    [one, other]: &mut [Fuse<RecordStream>; 2],
) -> Result<[Option<Arc<Stamped>>; 2], JournalError> {
    Ok([
        one.next().await.transpose()?,
        other.next().await.transpose()?,
    ])
}

fn is_same(one: &Arc<Stamped>, other: &Arc<Stamped>) -> bool {
    Arc::ptr_eq(one, other) || (one.thread == other.thread && one.record == other.record)
}
