//! A server that is gone in the middle of appends, and back.

use std::{sync::Arc, time::Duration};

use adjutant_core::{Flush, Journal, JournalErrorKind, Log, LogId, Owner, Post, PostNo};
use adjutant_store::{Postgres, PostgresJournal};
use adjutant_testing::PostgresServer;
use futures_util::StreamExt;
use tokio::{sync::watch, time};

use super::{read, record, records};

/// How long the server may take to come back.
const LONG: Duration = Duration::from_secs(60);

/// Owns a log when the server is back.
async fn own_again(journal: &PostgresJournal, log: &LogId, owner: &Owner) -> Box<dyn Log> {
    let owned = async {
        loop {
            match journal.own(log, owner).await {
                Ok(owned) => return owned,
                Err(error) => assert_eq!(error.kind, JournalErrorKind::Io, "{error}"),
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(LONG, owned)
        .await
        .expect("the server comes back")
}

/// Appends records up to a number, each exactly once; says how far it is. Gives how often it was interrupted.
async fn append_all(
    journal: PostgresJournal,
    log: LogId,
    upto: u64,
    far: watch::Sender<u64>,
) -> u32 {
    let owner = Owner::default();
    let mut owned = own_again(&journal, &log, &owner).await;
    let mut broken = 0;
    while owned.head().seq.0 < upto {
        let next = owned.head().seq.0 + 1;
        far.send_replace(next);
        if let Err(error) = owned.append(&[record(next, next)], Flush::Now).await {
            assert_eq!(error.kind, JournalErrorKind::Io, "{error}");
            broken += 1;
            let error = owned
                .append(&[record(next, next)], Flush::Now)
                .await
                .expect_err("it is broken");
            assert_eq!(error.kind, JournalErrorKind::Io);
            owned = own_again(&journal, &log, &owner).await;
        }
    }
    broken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_gone_in_mid_append_loses_and_repeats_nothing() {
    const NAME: &str = "server_that_is_gone_in_mid_append_loses_and_repeats_nothing";
    let server = match PostgresServer::start() {
        Ok(server) => Arc::new(server),
        Err(why) => return why.skips(NAME),
    };
    let database = Postgres::connect(server.url("postgres"))
        .await
        .expect("it opens");
    let journal = database.journal();
    let (far, mut reached) = watch::channel(0);
    let upto = 600;
    let append = |number| {
        tokio::spawn(append_all(
            journal.clone(),
            LogId::from(format!("{number}")),
            upto,
            far.clone(),
        ))
    };
    let tasks: Vec<_> = (0..8).map(append).collect();
    for place in [150, 350] {
        reached
            .wait_for(|far| *far > place)
            .await
            .expect("they go on");
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || server.restart())
            .await
            .expect("it ends")
            .expect("it is back");
    }
    let mut broken = 0;
    for task in tasks {
        broken += task.await.expect("it ends");
    }
    assert!(broken > 0, "nothing was interrupted");
    for number in 0..8 {
        assert_eq!(
            read(&journal, &number.to_string(), 0)
                .await
                .expect("it is whole"),
            records(0, upto)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_go_on_when_the_server_is_back() {
    let server = match PostgresServer::start() {
        Ok(server) => server,
        Err(why) => return why.skips("posts_go_on_when_the_server_is_back"),
    };
    let journal = Postgres::connect(server.url("postgres"))
        .await
        .expect("it opens")
        .journal();
    let id = LogId::from("log");
    drop(
        journal
            .own(&id, &Owner::default())
            .await
            .expect("it is free"),
    );
    let mut posts = journal.posts(&id, PostNo(0)).expect("it takes posts");
    journal.post(&id, Post::Cancel).await.expect("it is posted");
    assert_eq!(
        posts.next().await.expect("no end").expect("a post").no,
        PostNo(1)
    );
    server.stop();
    assert_eq!(
        posts
            .next()
            .await
            .expect("no end")
            .expect_err("it is gone")
            .kind,
        JournalErrorKind::Io
    );
    server.restart().expect("it is back");
    let next = async {
        while journal.post(&id, Post::Cancel).await.is_err() {
            time::sleep(Duration::from_millis(20)).await;
        }
        loop {
            match posts.next().await.expect("no end") {
                Ok(posted) => return posted,
                Err(error) => assert_eq!(error.kind, JournalErrorKind::Io),
            }
        }
    };
    assert_eq!(
        time::timeout(LONG, next)
            .await
            .expect("the server comes back")
            .no,
        PostNo(2)
    );
}
