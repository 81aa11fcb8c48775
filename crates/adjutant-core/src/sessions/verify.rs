//! The check that a log is unchanged since it was written.

use futures_util::StreamExt;

use super::{
    Sessions,
    chain::{Chain, Folds},
    corrupt,
};
use crate::{
    digest::Digest,
    journal::{JournalError, JournalErrorKind, LogId},
    number::Seq,
};

/// A verified log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The number of records that it has.
    pub records: u64,
    /// The number of bytes that they have together, attachments not counted.
    pub bytes: u64,
    /// The number of attachments that they have together.
    pub attachments: u64,
    /// The link of the newest one: two logs with the same link have the same content.
    pub link: Digest,
}

impl Sessions {
    /// Reads all of a session, and checks each byte, the order of the records, and that each thread folds.
    ///
    /// # Errors
    /// `Corrupt` with the first corrupt record, `Version` if a newer program wrote it, `Missing`, `Io`.
    pub async fn verify(&self, id: &LogId) -> Result<Verified, JournalError> {
        let known = match self.journal.info(id).await {
            Ok(info) => info.head,
            Err(error) if error.kind == JournalErrorKind::Unsupported => Seq(0),
            Err(error) => return Err(error),
        };
        let (mut chain, mut folds) = (Chain::new(id), Folds::default());
        let mut stored = self.journal.read_stored(id, Seq(0));
        while let Some(stored) = stored.next().await {
            let stamped = chain.take(stored?)?;
            folds.take(id, &stamped)?;
        }
        if chain.seq < known {
            let why = format!(
                "record {} of log {:?} is missing: it should end at {known}",
                chain.seq.0 + 1,
                id.0
            );
            return Err(corrupt(why));
        }
        let Chain {
            seq,
            link,
            bytes,
            attachments,
            ..
        } = chain;
        Ok(Verified {
            records: seq.0,
            bytes,
            attachments,
            link,
        })
    }
}
