//! The database in one file: what only it can do wrong. What every store must keep is in the suites.

#![cfg(feature = "sqlite")]

mod crowd;
mod damage;
mod journal;
mod kv;
mod memory;
mod opening;
mod owners;
mod posts;
mod reading;

use std::{path::PathBuf, sync::Arc};

use adjutant_core::{
    Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, Record, Seq, Stamped,
};
use adjutant_llm::{Entry, UserMessage};
use adjutant_store::{Sqlite, SqliteJournal};
use futures_util::StreamExt;
use tempfile::TempDir;

use crate::scratch;

/// A folder with a database.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: scratch::folder(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sessions.db")
    }

    /// Another handle, as another program would have it.
    fn open(&self) -> Sqlite {
        Sqlite::open(self.path()).expect("opens")
    }

    /// The file, past all that guards it.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).expect("opens")
    }
}

fn record(seq: u64, text: &str) -> Arc<Stamped> {
    let entries = vec![Entry::User(UserMessage::text(text))];
    Arc::new(Stamped::new(
        Seq(seq),
        seq,
        "main".into(),
        Record::Appended { entries },
    ))
}

fn records(first: u64, last: u64) -> Vec<Arc<Stamped>> {
    (first..=last)
        .map(|seq| record(seq, &format!("text {seq}")))
        .collect()
}

async fn own(journal: &SqliteJournal, log: &str) -> Box<dyn Log> {
    journal
        .own(&LogId::from(log), &Owner::default())
        .await
        .expect("owned")
}

async fn append(log: &mut dyn Log, batch: &[Arc<Stamped>]) -> Head {
    log.append(batch, Flush::Lazy).await.expect("appended")
}

async fn read(journal: &SqliteJournal, log: &str) -> Vec<Result<Arc<Stamped>, JournalError>> {
    journal.read(&LogId::from(log), Seq(0)).collect().await
}

/// What is there, if all of it can be read.
async fn whole(journal: &SqliteJournal, log: &str) -> Vec<Arc<Stamped>> {
    read(journal, log)
        .await
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("readable")
}

#[track_caller]
fn check_kind<T: std::fmt::Debug>(
    result: Result<T, JournalError>,
    kind: JournalErrorKind,
) -> JournalError {
    let error = result.expect_err("an error");
    assert_eq!(
        error.kind,
        kind,
        "{error}: {:?}",
        std::error::Error::source(&error)
    );
    error
}
