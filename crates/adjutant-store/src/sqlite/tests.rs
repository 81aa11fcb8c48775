//! Tests of what cannot be seen from outside: which jobs are committed together, how they are flushed, what a full disk
//! does.

use std::{
    error::Error as _,
    future::Future,
    sync::{Arc, mpsc},
};

use adjutant_core::{
    Flush, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, Record, Seq, Stamped,
};
use adjutant_llm::{Entry, UserMessage};
use futures_util::{StreamExt, future::join_all, poll};
use rusqlite::Connection;

use super::{Sqlite, fault::Fault, writer::Order};

/// Holds the writer back until what is asked for meanwhile waits as one group.
struct Gate {
    go: mpsc::Sender<()>,
    held: tokio::task::JoinHandle<Result<(), Fault>>,
}

impl Gate {
    async fn close(sqlite: &Sqlite) -> Self {
        let (go, wait) = mpsc::channel::<()>();
        let (reached, is_reached) = tokio::sync::oneshot::channel();
        let (store, mut reached) = (Arc::clone(&sqlite.store), Some(reached));
        let hold = async move {
            let work = move |_: &Connection| {
                let _ = reached.take().map(|reached| reached.send(()));
                // An error is as good: who would open the gate is gone.
                let _ = wait.recv();
                Ok(())
            };
            store.write(Order::lazy(), work).await
        };
        let held = tokio::spawn(hold);
        is_reached.await.expect("the writer has come to the gate");
        Self { go, held }
    }

    /// Lets all of these wait, and then be done together.
    async fn together<T>(self, jobs: Vec<impl Future<Output = T>>) -> Vec<T> {
        let mut jobs: Vec<_> = jobs.into_iter().map(Box::pin).collect();
        for job in &mut jobs {
            assert!(poll!(job).is_pending());
        }
        self.go.send(()).expect("the writer waits");
        self.held
            .await
            .expect("no panic")
            .expect("nothing was done");
        join_all(jobs).await
    }
}

fn open() -> (tempfile::TempDir, Sqlite) {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = Sqlite::open(folder.path().join("db")).expect("opens");
    (folder, sqlite)
}

fn record(seq: u64, bytes: usize) -> Arc<Stamped> {
    let entries = vec![Entry::User(UserMessage::text("x".repeat(bytes)))];
    Arc::new(Stamped::new(
        Seq(seq),
        seq,
        "main".into(),
        Record::Appended { entries },
    ))
}

async fn own(sqlite: &Sqlite, count: usize) -> Vec<Box<dyn Log>> {
    let mut logs = Vec::new();
    for number in 0..count {
        let owned = sqlite
            .journal()
            .own(&LogId::from(format!("log {number}")), &Owner::default())
            .await;
        logs.push(owned.expect("owned"));
    }
    logs
}

#[tokio::test]
async fn jobs_that_wait_are_committed_as_one() {
    let (folder, sqlite) = open();
    let heads = |db: &Connection| {
        db.query_row("SELECT sum(head) FROM logs", [], |row| row.get::<_, i64>(0))
    };
    let outside = Connection::open(folder.path().join("db")).expect("opens");
    let mut logs = own(&sqlite, 20).await;
    let gate = Gate::close(&sqlite).await;
    let (store, (seen, sight)) = (Arc::clone(&sqlite.store), mpsc::channel());
    // The last job of the group sees changes that nobody else sees before they are committed.
    let look = async move {
        let work = move |db: &Connection| {
            seen.send((heads(db)?, heads(&outside)?))
                .map_err(|_| Fault::Gone)
        };
        store.write(Order::lazy(), work).await.expect("seen");
        Ok(Seq(0))
    };
    let mut jobs: Vec<futures_util::future::BoxFuture<'_, Result<Seq, JournalError>>> = Vec::new();
    jobs.extend(
        logs.iter_mut()
            .map(|log| Box::pin(append(log, 10, Flush::Lazy)) as _),
    );
    jobs.push(Box::pin(look));
    let done: Vec<_> = gate
        .together(jobs)
        .await
        .into_iter()
        .map(|seq| seq.expect("appended"))
        .collect();
    assert_eq!(done, [vec![Seq(1); 20], vec![Seq(0)]].concat());
    assert_eq!(sight.recv(), Ok((20, 0)));
}

async fn append(log: &mut Box<dyn Log>, bytes: usize, flush: Flush) -> Result<Seq, JournalError> {
    Ok(log.append(&[record(1, bytes)], flush).await?.seq)
}

#[tokio::test]
async fn group_is_flushed_if_one_of_its_jobs_asks_for_it() {
    let (_folder, sqlite) = open();
    for (orders, want) in [
        ([Order::lazy(), Order::lazy()], 1),
        ([Order::lazy(), Order::now()], 2),
        ([Order::now(), Order::lazy()], 2),
        ([Order::lazy(), Order::lazy()], 1),
    ] {
        let gate = Gate::close(&sqlite).await;
        let flush = |db: &Connection| {
            Ok(db.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?)
        };
        let jobs = orders.map(|order| sqlite.store.write(order, flush));
        let found: Vec<_> = gate
            .together(jobs.into())
            .await
            .into_iter()
            .map(|found| found.expect("read"))
            .collect();
        assert_eq!(found, [want, want]);
    }
}

#[tokio::test]
async fn full_disk_fails_the_append_that_does_not_fit_and_no_other() {
    let (_folder, sqlite) = open();
    let mut logs = own(&sqlite, 3).await;
    let limit = |pages: u32| {
        let work = move |db: &Connection| {
            Ok(
                db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| {
                    row.get::<_, i64>(0)
                })?,
            )
        };
        sqlite.store.write(Order::lazy(), work)
    };
    limit(200).await.expect("limited");
    let gate = Gate::close(&sqlite).await;
    let sizes = [1_000, 2_000_000, 1_000];
    let jobs = logs
        .iter_mut()
        .zip(sizes)
        .map(|(log, bytes)| append(log, bytes, Flush::Now));
    let mut done = gate.together(jobs.collect()).await;
    let error = done.remove(1).expect_err("full");
    assert_eq!(error.kind, JournalErrorKind::Io);
    assert_eq!(
        error.source().map(ToString::to_string).as_deref(),
        Some("database or disk is full")
    );
    assert_eq!(
        done.into_iter()
            .map(|seq| seq.expect("fits"))
            .collect::<Vec<_>>(),
        [Seq(1), Seq(1)]
    );
    limit(100_000).await.expect("limited");
    // With space again, it goes on from where it was.
    assert_eq!(
        logs[1]
            .append(&[record(1, 2_000_000)], Flush::Now)
            .await
            .expect("fits")
            .seq,
        Seq(1)
    );
    for number in 0..3 {
        let read: Vec<_> = sqlite
            .journal()
            .read(&format!("log {number}").into(), Seq(0))
            .collect()
            .await;
        assert_eq!(read.len(), 1);
        assert!(read.into_iter().all(|record| record.is_ok()));
    }
}

#[tokio::test]
async fn owner_that_nobody_waited_for_lets_go() {
    let (_folder, sqlite) = open();
    let (journal, log, owner) = (sqlite.journal(), LogId::from("log"), Owner::default());
    drop(own(&sqlite, 1).await);
    let gate = Gate::close(&sqlite).await;
    let mut wish = Box::pin(journal.own(&log, &owner));
    // It reads the end first, beside the writer; then its claim, which shares the owners, waits for the writer.
    let shares = Arc::strong_count(&sqlite.store.owners);
    while Arc::strong_count(&sqlite.store.owners) <= shares {
        assert!(poll!(&mut wish).is_pending());
        tokio::task::yield_now().await;
    }
    drop(wish);
    // A change behind the claim: once it is answered, the claim was, and found nobody.
    let behind = gate
        .together(vec![
            sqlite.store.write(Order::lazy(), |_: &Connection| Ok(())),
        ])
        .await;
    assert!(behind.iter().all(Result::is_ok));
    drop(journal.own(&log, &Owner::default()).await.expect("free"));
}
