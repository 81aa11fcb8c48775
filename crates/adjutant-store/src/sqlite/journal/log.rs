//! An owned log: it appends after its known end.

use std::sync::Arc;

use adjutant_core::{
    Digest, Flush, Folded, Head, JournalError, JournalErrorKind, Log, LogId, PostNo, Stamped, Work,
};
use async_trait::async_trait;

use crate::folds::FOLD_EVERY;

use super::{
    super::{owners::Tenure, store::Store, writer::Order},
    Fault, append, inbox,
    own::{self, Owned},
};

/// An owned log.
#[derive(Debug)]
pub(super) struct SqliteLog {
    store: Arc<Store>,
    id: LogId,
    tenure: Tenure,
    head: Head,
    link: Digest,
    /// The work to store with the next append.
    mark: Option<Work>,
    has_progressed: bool,
}

impl SqliteLog {
    /// A log that was taken.
    pub(super) fn new(store: Arc<Store>, id: LogId, owned: Owned) -> Self {
        let Owned { tenure, head, link } = owned;
        Self {
            store,
            id,
            tenure,
            head,
            link,
            mark: None,
            has_progressed: false,
        }
    }

    /// Records as rows, chained to the end of the log.
    fn rows(&self, batch: &[Arc<Stamped>]) -> Result<append::Batch, JournalError> {
        let mut rows = Vec::with_capacity(batch.len());
        let mut link = self.link;
        for stamped in batch {
            let row = append::RecordRow::from_stamped(stamped, &link)?;
            link = row.link;
            rows.push(row);
        }
        Ok(append::Batch {
            tenure: self.tenure,
            before: self.head.seq,
            head: batch.last().map_or(self.head.seq, |newest| newest.seq),
            link,
            at_ms: batch.last().map_or(0, |newest| newest.at_ms),
            rows,
            mark: self.mark.clone(),
            has_progressed: self.has_progressed,
        })
    }

    /// Returns the reason why a batch that does not follow the head cannot be appended.
    async fn does_not_follow(&self) -> JournalError {
        let (tenure, id) = (self.tenure, self.id.clone());
        let message = format!(
            "a batch does not follow record {} of log {:?}",
            self.head.seq, self.id.0
        );
        match self
            .store
            .read(move |db| append::check(db, &id, tenure))
            .await
        {
            Ok(()) => JournalError::new(JournalErrorKind::Corrupt, message),
            Err(fault) => fault.journal(|| message),
        }
    }
}

#[async_trait]
impl Log for SqliteLog {
    fn head(&self) -> Head {
        self.head
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        if !(self.head.seq.0 + 1..)
            .zip(batch)
            .all(|(seq, stamped)| stamped.seq.0 == seq)
        {
            return Err(self.does_not_follow().await);
        }
        let batch = self.rows(batch)?;
        let (head, link, id) = (batch.head, batch.link, self.id.clone());
        let order = Order {
            flush,
            bytes: batch.bytes(),
            topic: None,
        };
        let done = self
            .store
            .write(order, move |db| append::append(db, &id, &batch))
            .await;
        done.map_err(|fault| fault.journal(|| format!("cannot append to log {:?}", self.id.0)))?;
        (self.head.seq, self.link, self.mark, self.has_progressed) = (head, link, None, false);
        Ok(self.head)
    }

    fn mark(&mut self, work: Work) {
        self.mark = Some(work);
    }

    fn mark_progress(&mut self) {
        self.has_progressed = true;
    }

    fn keeps(&self) -> Option<u64> {
        Some(FOLD_EVERY)
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        let (tenure, id) = (self.tenure, self.id.clone());
        let order = Order {
            bytes: folded.bytes.len(),
            ..Order::lazy()
        };
        let done = self
            .store
            .write(order, move |db| append::keep(db, &id, tenure, &folded))
            .await;
        done.map_err(|fault: Fault| {
            fault.journal(|| format!("cannot keep a fold of log {:?}", self.id.0))
        })
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        let (tenure, id) = (self.tenure, self.id.clone());
        let done = self
            .store
            .write(Order::lazy(), move |db| {
                inbox::consume_posts(db, &id, tenure, upto)
            })
            .await;
        done.map_err(|fault| {
            fault.journal(|| format!("cannot clear the posts of log {:?}", self.id.0))
        })
    }
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        let tenure = self.tenure;
        self.store.owners.let_go(tenure);
        self.store.send(move |db| own::give_up(db, tenure));
    }
}
