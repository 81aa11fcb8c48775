//! A log that is being made: it has a hidden name until it is whole.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Sessions, invalid, left::Tail};
use crate::{
    digest::Digest,
    journal::{
        Attachment, Flush, Folded, Journal, JournalError, JournalErrorKind, Log, LogId, LogInfo,
        LogQuery, Owner, SessionMeta, Stamped,
    },
    number::{PostNo, Seq},
    record::Record,
};

/// The prefix of the names of logs that are being made.
const HIDDEN: &str = "adjutant:half-made/";
/// The age after which an incomplete log counts as left by a crash, in milliseconds.
const STALE_MS: u64 = 60 * 60 * 1000;
/// The number of records that are appended together.
const MAX_BATCH: usize = 256;
/// The number of bytes that are appended together, unless one record has more.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// The number of logs in one query.
const PAGE: usize = 500;

/// A log that is being made.
pub(super) struct Half {
    journal: Arc<dyn Journal>,
    name: LogId,
    log: Box<dyn Log>,
    batch: Vec<Arc<Stamped>>,
    bytes: usize,
    /// The last post that its records consumed.
    heeded: PostNo,
    /// The data of its latest run in its records; `None` before the first.
    tail: Option<Tail>,
}

impl Half {
    /// Begins a log that will have this name.
    ///
    /// # Errors
    /// `Exists`, `Invalid`, `Unsupported`, `Io`.
    pub(super) async fn new(sessions: &Sessions, to: &LogId) -> Result<Self, JournalError> {
        check_name(to)?;
        match sessions.journal.info(to).await {
            Ok(_) => return Err(JournalError::for_log(JournalErrorKind::Exists, to)),
            Err(error) if error.kind != JournalErrorKind::Missing => return Err(error),
            Err(_) => {}
        }
        let name = LogId::from(format!("{HIDDEN}{:032x}", sessions.world.id()));
        let journal = Arc::clone(&sessions.journal);
        let log = journal.own(&name, &Owner::default()).await?;
        Ok(Self {
            journal,
            name,
            log,
            batch: Vec::new(),
            bytes: 0,
            heeded: PostNo(0),
            tail: None,
        })
    }

    /// Adds a record; it is kept with the same bytes.
    pub(super) async fn push(&mut self, stamped: Arc<Stamped>) -> Result<(), JournalError> {
        let parts: usize = stamped
            .attachments()?
            .iter()
            .map(|attachment| attachment.bytes.len())
            .sum();
        let bytes = stamped.bytes()?.len() + parts;
        if self.batch.len() >= MAX_BATCH || self.bytes + bytes > MAX_BATCH_BYTES {
            self.save(Flush::Lazy).await?;
        }
        if let Record::Heeded { post } = &stamped.record {
            // Posts that a sub-agent records were posted to this log too.
            self.heeded = self.heeded.max(*post);
        }
        self.tail
            .get_or_insert_with(|| Tail::new(&stamped.thread))
            .take(&stamped);
        self.batch.push(stamped);
        self.bytes += bytes;
        Ok(())
    }

    /// Keeps a fold of the first records that were added, where that is of use.
    pub(super) async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        if self.log.keeps().is_none() {
            return Ok(());
        }
        self.save(Flush::Lazy).await?;
        self.log.keep(folded).await
    }

    /// An attachment of a record that was added before.
    pub(super) async fn attachment(
        &mut self,
        digest: &Digest,
        of: Seq,
    ) -> Result<Option<Attachment>, JournalError> {
        let is_wanted = |attachment: &&Attachment| attachment.digest == *digest;
        if let Some(stamped) = self.batch.iter().find(|stamped| stamped.seq == of) {
            return Ok(stamped.attachments()?.iter().find(is_wanted).cloned());
        }
        let before = Seq(of.0.saturating_sub(1));
        let stored = self
            .journal
            .read_stored(&self.name, before)
            .next()
            .await
            .transpose()?;
        Ok(stored.and_then(|stored| stored.attachments.iter().find(is_wanted).cloned()))
    }

    /// Renames the log and sets its description, if it is complete; deletes it otherwise.
    ///
    /// # Errors
    /// Why it was not filled; `Exists`, `Io`.
    pub(super) async fn end(
        self,
        filled: Result<SessionMeta, JournalError>,
        to: &LogId,
    ) -> Result<LogInfo, JournalError> {
        let (journal, name) = (Arc::clone(&self.journal), self.name.clone());
        let made = match filled {
            Ok(about) => self.finish(about, to).await,
            Err(error) => {
                drop(self);
                Err(error)
            }
        };
        match made {
            Ok(()) => journal.info(to).await,
            Err(error) => {
                // A log that cannot be deleted now stays hidden, and is swept later.
                let _ = journal.delete(&name).await;
                Err(error)
            }
        }
    }

    async fn finish(mut self, about: SessionMeta, to: &LogId) -> Result<(), JournalError> {
        self.save(Flush::Now).await?;
        if self.heeded > PostNo(0) {
            // The numbers of posts to this log continue after the posts that its records consumed.
            self.log.mark_consumed(self.heeded).await?;
        }
        let Self {
            journal, name, log, ..
        } = self;
        journal.describe(&name, about).await?;
        drop(log);
        journal.rename(&name, to).await
    }

    async fn save(&mut self, flush: Flush) -> Result<(), JournalError> {
        if !self.batch.is_empty() {
            self.log.mark(
                self.tail
                    .as_ref()
                    .map(Tail::work_of_copy)
                    .unwrap_or_default(),
            );
            self.log.append(&self.batch, flush).await?;
            self.batch.clear();
            self.bytes = 0;
        }
        Ok(())
    }
}

/// True if a log is being made, or was when a program crashed.
pub(super) fn is_half(log: &LogId) -> bool {
    log.0.starts_with(HIDDEN)
}

/// Checks a name that a session should have.
pub(super) fn check_name(log: &LogId) -> Result<(), JournalError> {
    if is_half(log) {
        return Err(invalid(format!(
            "names that begin with {HIDDEN:?} are kept for logs that are being made"
        )));
    }
    log.check()
}

/// Removes what crashes left.
pub(super) async fn sweep(sessions: &Sessions) -> Result<(), JournalError> {
    let before = sessions.world.now_ms().saturating_sub(STALE_MS);
    let mut query = LogQuery {
        limit: PAGE,
        ..LogQuery::default()
    };
    loop {
        let page = match sessions.journal.list(&query).await {
            Err(error) if error.kind == JournalErrorKind::Unsupported => return Ok(()),
            page => page?,
        };
        for info in page
            .logs
            .iter()
            .filter(|info| is_half(&info.log) && info.created_ms < before)
        {
            match sessions.journal.delete(&info.log).await {
                Err(error)
                    if !matches!(
                        error.kind,
                        JournalErrorKind::Owned | JournalErrorKind::Missing
                    ) =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(()),
        }
    }
}
