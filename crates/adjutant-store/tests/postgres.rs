//! PostgreSQL: sessions, key-value stores and memory, on a server that the tests start themselves.
#![cfg(all(unix, feature = "postgres"))]

mod connect;
mod gone;
mod journal;
mod keeping;
mod kv;
mod memory;
mod ownership;
mod posts;
mod suites;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use adjutant_core::{Flush, Journal, JournalError, Log, LogId, Owner, Record, Seq, Stamped};
use adjutant_llm::{ThreadId, UserMessage};
use adjutant_store::{Connect, Postgres, PostgresJournal};
use adjutant_testing::PostgresServer;
use futures_util::TryStreamExt;

/// A schema of a server, which no other test uses.
#[derive(Debug, Clone)]
struct Place {
    server: &'static PostgresServer,
    schema: String,
}

impl Place {
    /// None, visibly, where there is no server.
    fn of(test: &str) -> Option<Self> {
        static PLACES: AtomicU32 = AtomicU32::new(1);
        let server = PostgresServer::for_test(test)?;
        Some(Self {
            server,
            schema: format!("test_{}", PLACES.fetch_add(1, Ordering::Relaxed)),
        })
    }

    /// Another process, as far as the database can tell.
    fn connect(&self) -> Connect {
        Postgres::connect(self.server.url("postgres")).schema(self.schema.as_str())
    }

    async fn open(&self) -> Postgres {
        self.connect().await.expect("the database opens")
    }

    fn execute(&self, sql: &str) {
        self.server
            .execute("postgres", &sql.replace("$", &self.schema))
            .expect("the statement runs");
    }
}

/// The name of the test that calls it.
macro_rules! place {
    ($name:literal) => {
        match crate::postgres::Place::of($name) {
            Some(place) => place,
            None => return,
        }
    };
}
use place;

fn thread() -> ThreadId {
    ThreadId::from("main")
}

/// A small record that tells what it is.
fn record(seq: u64, item: u64) -> Arc<Stamped> {
    Arc::new(Stamped::new(
        Seq(seq),
        1_000 + seq,
        thread(),
        Record::Withdrawn { item },
    ))
}

/// A record with a text.
fn spoken(seq: u64, text: &str) -> Arc<Stamped> {
    let entries = vec![UserMessage::text(text).into()];
    Arc::new(Stamped::new(
        Seq(seq),
        1_000 + seq,
        thread(),
        Record::Appended { entries },
    ))
}

/// Records behind a place, whose items are their numbers.
fn records(after: u64, upto: u64) -> Vec<Arc<Stamped>> {
    (after + 1..=upto).map(|seq| record(seq, seq)).collect()
}

async fn own(journal: &PostgresJournal, log: &str) -> Box<dyn Log> {
    journal
        .own(&LogId::from(log), &Owner::default())
        .await
        .expect("the log is free")
}

/// A log with so many records, which nobody owns.
async fn made(journal: &PostgresJournal, log: &str, count: u64) {
    let mut owned = own(journal, log).await;
    owned
        .append(&records(0, count), Flush::Now)
        .await
        .expect("the records follow");
}

async fn read(
    journal: &PostgresJournal,
    log: &str,
    after: u64,
) -> Result<Vec<Arc<Stamped>>, JournalError> {
    journal
        .read(&LogId::from(log), Seq(after))
        .try_collect()
        .await
}
