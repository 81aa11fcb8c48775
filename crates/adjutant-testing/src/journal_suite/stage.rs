//! The means with which the checks of a journal are played: logs of their own, records, and short ways to do the usual.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Digest, Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, Record, Seq,
    Stamped, StoredRecord,
};
use adjutant_llm::{Entry, SystemWorld, ThreadId, UserMessage, World};
use futures_util::{StreamExt, TryStreamExt};

use super::Lab;
use crate::suite::{Verdict, equal, fails, ok, soon};

/// A time in the future, in milliseconds: later appends determine the log's last change.
pub(super) const LATER_MS: u64 = 4_000_000_000_000;

/// A play of one check.
pub(super) struct JournalStage<'a> {
    pub(super) lab: &'a dyn Lab,
    /// The prefix of the names of its logs, unused before.
    pub(super) prefix: String,
}

impl<'a> JournalStage<'a> {
    pub(super) fn new(lab: &'a (dyn Lab + 'static)) -> Self {
        Self {
            lab,
            prefix: format!("{:x}", SystemWorld.id()),
        }
    }

    /// A log of this play.
    pub(super) fn log(&self, name: &str) -> LogId {
        format!("{}-{name}", self.prefix).into()
    }

    pub(super) async fn open(&self) -> Arc<dyn Journal> {
        self.lab.open().await
    }

    /// An unowned log with these records, and a journal to continue with.
    pub(super) async fn fill_log(
        &self,
        name: &str,
        records: u64,
    ) -> Result<(Arc<dyn Journal>, LogId), String> {
        let (journal, log) = (self.open().await, self.log(name));
        let mut held = own(&*journal, &log, &Owner::default()).await?;
        append(&mut *held, &batch(1, records)).await?;
        drop(held);
        Ok((journal, log))
    }
}

/// Owns a log; who gave it up a moment ago may take a while to be gone.
pub(crate) async fn own(
    journal: &dyn Journal,
    log: &LogId,
    owner: &Owner,
) -> Result<Box<dyn Log>, String> {
    soon("owning a log that is free", async {
        loop {
            match journal.own(log, owner).await {
                Ok(held) => return Ok(held),
                Err(error) if error.kind == JournalErrorKind::Owned => {
                    let wait = error
                        .retry_after()
                        .unwrap_or_default()
                        .clamp(MOMENT, MOMENT * 50);
                    tokio::time::sleep(wait).await;
                }
                Err(error) => {
                    return Err(format!(
                        "owning {log:?} failed: {}",
                        adjutant_agent::chain(&error)
                    ));
                }
            }
        }
    })
    .await?
}

const MOMENT: Duration = Duration::from_millis(2);

/// Runs an operation that needs an unowned log; a recent release may take a while.
pub(super) async fn when_free<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, JournalError>>,
{
    soon(what, async {
        loop {
            match attempt().await {
                Err(error) if error.kind == JournalErrorKind::Owned => {
                    tokio::time::sleep(MOMENT).await
                }
                result => return ok(what, result),
            }
        }
    })
    .await?
}

pub(super) async fn delete(journal: &dyn Journal, log: &LogId) -> Verdict {
    when_free("deleting a log that is free", || journal.delete(log)).await
}

pub(super) async fn append(log: &mut dyn Log, batch: &[Arc<Stamped>]) -> Result<Head, String> {
    let head = ok("appending", log.append(batch, Flush::Lazy).await)?;
    if let Some(last) = batch.last() {
        equal("the head that an append gives", &head.seq, &last.seq)?;
    }
    equal("the head after an append", &log.head(), &head)?;
    Ok(head)
}

/// A record with this text.
pub(super) fn text_record(seq: u64, at_ms: u64, text: &str) -> Arc<Stamped> {
    let record = Record::Appended {
        entries: vec![entry(text)],
    };
    Arc::new(Stamped::new(
        Seq(seq),
        at_ms,
        ThreadId::from("main"),
        record,
    ))
}

pub(super) fn entry(text: &str) -> Entry {
    Entry::User(UserMessage::text(text))
}

/// Records with the numbers in an inclusive range; each contains its number.
pub(super) fn batch(from: u64, to: u64) -> Vec<Arc<Stamped>> {
    (from..=to)
        .map(|seq| text_record(seq, LATER_MS + seq, &format!("this is record {seq}")))
        .collect()
}

pub(super) async fn read(
    journal: &dyn Journal,
    log: &LogId,
    after: u64,
) -> Result<Vec<Arc<Stamped>>, String> {
    ok("reading", journal.read(log, Seq(after)).try_collect().await)
}

pub(super) async fn read_stored(
    journal: &dyn Journal,
    log: &LogId,
    after: u64,
) -> Result<Vec<StoredRecord>, String> {
    ok(
        "reading what is stored",
        journal.read_stored(log, Seq(after)).try_collect().await,
    )
}

/// Checks that a log holds these records and no others, by both ways to read it.
pub(super) async fn is_log(journal: &dyn Journal, log: &LogId, want: &[Arc<Stamped>]) -> Verdict {
    let got = read(journal, log, 0).await?;
    let seqs = |records: &[Arc<Stamped>]| {
        records
            .iter()
            .map(|stamped| stamped.seq)
            .collect::<Vec<_>>()
    };
    equal("the numbers of the records", &seqs(&got), &seqs(want))?;
    equal("the records", &got.as_slice(), &want)?;
    equal(
        "what is stored of the records",
        &read_stored(journal, log, 0).await?,
        &chain_records(want)?,
    )?;
    Ok(())
}

/// Makes the stored form that these records must have; the first of them is the first of its log.
pub(super) fn chain_records(records: &[Arc<Stamped>]) -> Result<Vec<StoredRecord>, String> {
    let mut link = Digest::GENESIS;
    let one = |stamped: &Arc<Stamped>| {
        let bytes = ok("making bytes", stamped.bytes())?.clone();
        link = link.then(&bytes);
        let attachments = ok("making bytes", stamped.attachments())?.to_vec();
        Ok(StoredRecord {
            seq: stamped.seq,
            bytes,
            link,
            attachments,
        })
    };
    records.iter().map(one).collect()
}

/// Checks that something fails in this way.
pub(super) fn check_error<T>(
    what: &str,
    result: Result<T, JournalError>,
    kind: JournalErrorKind,
) -> Verdict {
    let error = fails(what, result)?;
    equal(
        &format!("the kind of error of {what} ({error})"),
        &error.kind,
        &kind,
    )
}

/// Checks that a log cannot be read, because it does not exist.
pub(super) async fn is_missing(journal: &dyn Journal, log: &LogId) -> Verdict {
    let read = journal.read(log, Seq(0)).next().await;
    check_error(
        "reading a log that is missing",
        read.unwrap_or(Err(no_error())),
        JournalErrorKind::Missing,
    )?;
    let stored = journal.read_stored(log, Seq(0)).next().await;
    check_error(
        "reading what is stored of a log that is missing",
        stored.unwrap_or(Err(no_error())),
        JournalErrorKind::Missing,
    )
}

fn no_error() -> JournalError {
    JournalError::new(
        JournalErrorKind::Unsupported,
        "the stream ended without an error",
    )
}
