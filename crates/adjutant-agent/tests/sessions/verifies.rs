//! Whether a log is what was written: every changed byte is found.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_agent::{
    Attachment, Completion, Journal, JournalError, JournalErrorKind, Log, LogId, LogInfo,
    MemoryJournal, Outcome, Owner, Record, RecordStream, RunNo, Seq, SessionMeta, Sessions,
    StoredRecord, StoredStream, sessions::Verified,
};
use adjutant_llm::{Entry, UserMessage};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;

use super::stage::{id, kind, log, message, sessions, stamped, stored, write};

/// How many flipped bytes are tried.
const SAMPLES: u64 = 10_000;

/// A journal that stores one log, as it is given.
#[derive(Debug)]
struct Given {
    stored: Vec<StoredRecord>,
    head: u64,
}

#[async_trait]
impl Journal for Given {
    async fn own(&self, _: &LogId, _: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Err(JournalError::not_supported("be written"))
    }

    fn read(&self, log: &LogId, _: Seq) -> RecordStream {
        Box::pin(stream::iter([Err(JournalError::for_log(
            JournalErrorKind::Missing,
            log,
        ))]))
    }

    fn read_stored(&self, _: &LogId, _: Seq) -> StoredStream {
        Box::pin(stream::iter(self.stored.clone().into_iter().map(Ok)))
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        let mut info = LogInfo::new(log.clone(), 0);
        info.head = Seq(self.head);
        Ok(info)
    }
}

async fn verify(stored: Vec<StoredRecord>, head: usize) -> Result<Verified, JournalError> {
    Sessions::new(Arc::new(Given {
        stored,
        head: head as u64,
    }))
    .verify(&id("a"))
    .await
}

/// How many bytes a stored record has, with all that belongs to it.
fn len(record: &StoredRecord) -> usize {
    8 + 32
        + record.bytes.len()
        + record
            .attachments
            .iter()
            .map(|it| 32 + it.bytes.len())
            .sum::<usize>()
}

/// Changes the byte at this place of a stored record.
fn flip(record: &mut StoredRecord, mut at: usize, by: u8) {
    let change = |bytes: &Bytes, at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= by;
        Bytes::from(bytes)
    };
    if at < 8 {
        return record.seq.0 ^= u64::from(by) << (8 * at);
    }
    at -= 8;
    if at < 32 {
        return record.link.0[at] ^= by;
    }
    at -= 32;
    if at < record.bytes.len() {
        return record.bytes = change(&record.bytes, at);
    }
    at -= record.bytes.len();
    for Attachment { digest, bytes } in &mut record.attachments {
        if at < 32 {
            return digest.0[at] ^= by;
        }
        at -= 32;
        if at < bytes.len() {
            return *bytes = change(bytes, at);
        }
        at -= bytes.len();
    }
}

/// Changes one byte of a log at each of so many places, one at a time; gives how many were not found.
async fn missed(whole: &[StoredRecord], samples: u64) -> Vec<(usize, usize, u8)> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).expect("it is below")
    };
    let total: usize = whole.iter().map(len).sum();
    let (mut missed, mut tried) = (Vec::new(), BTreeSet::new());
    for _ in 0..samples {
        let (mut at, by) = (draw(total), 1 << draw(8));
        let no = whole.iter().position(|record| {
            let is_here = at < len(record);
            at -= if is_here { 0 } else { len(record) };
            is_here
        });
        let no = no.expect("the place is in the log");
        let mut changed = whole.to_vec();
        flip(&mut changed[no], at, by);
        assert_ne!(changed, whole);
        tried.insert(no);
        match verify(changed, whole.len()).await {
            // A record that stands at another place is noticed there.
            Err(error) if error.kind == JournalErrorKind::Corrupt => {
                assert!(
                    error.to_string().contains(&format!("record {}", no + 1)),
                    "{no} {error}"
                );
            }
            _ => missed.push((no, at, by)),
        }
    }
    assert_eq!(tried.len(), whole.len(), "some record was never changed");
    missed
}

#[tokio::test]
async fn log_is_verified_when_it_is_what_was_written() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    let stored = stored(&journal, &id("a")).await;
    let verified = sessions(&journal)
        .verify(&id("a"))
        .await
        .expect("it is what was written");
    let bytes: usize = stored.iter().map(|record| record.bytes.len()).sum();
    assert_eq!(
        (verified.records, verified.bytes, verified.attachments),
        (stored.len() as u64, bytes as u64, 0)
    );
    assert_eq!(verified.link, stored.last().expect("it has records").link);
    assert_eq!(
        kind(sessions(&journal).verify(&id("b")).await),
        JournalErrorKind::Missing
    );
    sessions(&journal)
        .create(&id("empty"), SessionMeta::default())
        .await
        .expect("the name is free");
    let empty = sessions(&journal)
        .verify(&id("empty"))
        .await
        .expect("it is what was written");
    assert_eq!(
        (empty.records, empty.link),
        (0, adjutant_agent::Digest::GENESIS)
    );
}

#[tokio::test]
async fn changed_byte_is_found_when_it_is_anywhere() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    // With a child, and short enough to be read so often.
    let stored = &stored(&journal, &id("a")).await[..14];
    assert_eq!(missed(stored, SAMPLES).await, []);
}

#[tokio::test]
async fn changed_byte_is_found_when_it_is_in_an_attachment() {
    let journal = MemoryJournal::default();
    let large = "x".repeat(70_000);
    let entries = vec![Entry::User(UserMessage::text(large))];
    write(&journal, "a", &stamped([Record::Appended { entries }])).await;
    let stored = stored(&journal, &id("a")).await;
    assert_eq!(stored[0].attachments.len(), 1);
    assert_eq!(missed(&stored, 100).await, []);
    let mut without = stored.clone();
    without[0].attachments.clear();
    assert_eq!(kind(verify(without, 1).await), JournalErrorKind::Corrupt);
}

#[tokio::test]
async fn missing_record_is_found_when_it_is_in_the_middle_or_at_the_end() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    let stored = stored(&journal, &id("a")).await;
    let mut gap = stored.clone();
    gap.remove(2);
    let error = verify(gap, stored.len()).await.expect_err("one is missing");
    assert_eq!(
        message(&error),
        "record 3 of log \"a\" is missing: record 4 stands there"
    );
    let error = verify(stored[..4].to_vec(), 5)
        .await
        .expect_err("one is missing");
    assert_eq!(
        message(&error),
        "record 5 of log \"a\" is missing: it should end at 5"
    );
    let mut twice = stored.clone();
    twice.insert(1, stored[0].clone());
    assert_eq!(
        kind(verify(twice, stored.len()).await),
        JournalErrorKind::Corrupt
    );
}

#[tokio::test]
async fn record_is_found_when_it_cannot_follow() {
    let journal = MemoryJournal::default();
    let reply = adjutant_llm::Reply::new(
        adjutant_llm::ModelId::from("a/b"),
        adjutant_llm::FinishReason::End,
    );
    let outcome = Outcome::Finished {
        reply: Arc::new(reply),
        why: Completion::Answer,
    };
    write(
        &journal,
        "a",
        &stamped([Record::Ended {
            run: RunNo(1),
            outcome,
        }]),
    )
    .await;
    let error = sessions(&journal)
        .verify(&id("a"))
        .await
        .expect_err("no run is open");
    assert_eq!(error.kind, JournalErrorKind::Corrupt);
    assert_eq!(
        message(&error),
        "log \"a\" does not fold at record 1: record 1 cannot follow: no run is open"
    );
}
