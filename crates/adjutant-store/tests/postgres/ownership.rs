//! Who owns a log, how long, and what becomes of the others. Leases are real time, of the server's clock.

use std::{collections::BTreeSet, sync::Arc, thread, time::Duration};

use adjutant_core::{
    Epoch, Flush, Journal, JournalErrorKind, Log, LogId, Owner, PostNo, Record, Stamped,
};
use adjutant_store::{Postgres, PostgresJournal};
use futures_util::future;
use tokio::{runtime::Runtime, time};

use super::{own, place, read, record, records};

/// Waits for a log as one should.
async fn when_free(journal: &PostgresJournal, log: &LogId) -> Box<dyn Log> {
    loop {
        match journal.own(log, &Owner::default()).await {
            Ok(owned) => return owned,
            Err(error) => {
                assert_eq!(error.kind, JournalErrorKind::Owned);
                time::sleep(error.retry_after().unwrap_or(Duration::from_millis(10))).await;
            }
        }
    }
}

#[tokio::test]
async fn log_belongs_to_one_owner_until_it_is_dropped() {
    let place = place!("log_belongs_to_one_owner_until_it_is_dropped");
    let (one, other) = (place.open().await.journal(), place.open().await.journal());
    let id = LogId::from("log");
    for _ in 0..20 {
        let log = own(&one, "log").await;
        let error = one
            .own(&id, &Owner::default())
            .await
            .expect_err("it is owned");
        assert_eq!(error.kind, JournalErrorKind::Owned);
        let left = error.retry_after().expect("it is known");
        assert!(
            left > Duration::from_secs(5) && left <= Duration::from_secs(15),
            "{left:?}"
        );
        assert_eq!(
            other
                .own(&id, &Owner::default())
                .await
                .expect_err("it is owned")
                .kind,
            JournalErrorKind::Owned
        );
        drop(log);
        // The same program sees at once that it is free.
        assert!(!one.info(&id).await.expect("it is there").is_owned);
    }
}

#[tokio::test]
async fn owner_that_owns_again_fences_itself() {
    let place = place!("owner_that_owns_again_fences_itself");
    let (one, other) = (place.open().await.journal(), place.open().await.journal());
    let (id, owner) = (
        LogId::from("log"),
        Owner {
            id: "me\0".into(),
            takes_over: false,
        },
    );
    let mut first = one.own(&id, &owner).await.expect("it is free");
    first
        .append(&records(0, 2), Flush::Lazy)
        .await
        .expect("they follow");
    let mut second = other.own(&id, &owner).await.expect("it is mine");
    assert_eq!(
        (second.head().seq.0, second.head().epoch),
        (2, Epoch(first.head().epoch.0 + 1))
    );
    assert_eq!(
        first
            .append(&records(2, 3), Flush::Now)
            .await
            .expect_err("fenced")
            .kind,
        JournalErrorKind::Fenced
    );
    assert_eq!(
        first
            .mark_consumed(PostNo(1))
            .await
            .expect_err("fenced")
            .kind,
        JournalErrorKind::Fenced
    );
    // Dropping a fenced value gives nothing up.
    drop(first);
    assert!(
        one.own(&id, &Owner::default())
            .await
            .is_err_and(|error| error.kind == JournalErrorKind::Owned)
    );
    second
        .append(&records(2, 3), Flush::Now)
        .await
        .expect("they follow");
    let mut third = one
        .own(
            &id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("it is taken");
    assert_eq!(
        second
            .append(&records(3, 4), Flush::Now)
            .await
            .expect_err("fenced")
            .kind,
        JournalErrorKind::Fenced
    );
    third
        .append(&records(3, 4), Flush::Now)
        .await
        .expect("they follow");
    assert_eq!(read(&one, "log", 0).await.expect("all"), records(0, 4));
}

#[tokio::test]
async fn deleted_log_fences_who_owned_it_once() {
    let place = place!("deleted_log_fences_who_owned_it_once");
    let journal = place.open().await.journal();
    let mut old = own(&journal, "log").await;
    place.execute("update $.logs set owner = null");
    journal
        .delete(&LogId::from("log"))
        .await
        .expect("nobody owns it");
    let _new = own(&journal, "log").await;
    assert_eq!(
        old.append(&records(0, 1), Flush::Now)
            .await
            .expect_err("fenced")
            .kind,
        JournalErrorKind::Fenced
    );
}

#[tokio::test]
async fn log_of_a_dead_process_is_free_when_its_lease_ends() {
    let place = place!("log_of_a_dead_process_is_free_when_its_lease_ends");
    let lease = Duration::from_secs(600);
    let theirs = place.clone();
    let dead = thread::spawn(move || {
        let runtime = Runtime::new().expect("a runtime");
        let log = runtime.block_on(async {
            let journal = theirs
                .connect()
                .lease(lease)
                .await
                .expect("it opens")
                .journal();
            let mut log = own(&journal, "log").await;
            log.append(&records(0, 3), Flush::Lazy)
                .await
                .expect("they follow");
            log
        });
        // Nobody renews the lease, nobody gives it up.
        drop(runtime);
        log
    });
    let mut old = dead.join().expect("it ends");
    let journal = place.open().await.journal();
    let error = journal
        .own(&LogId::from("log"), &Owner::default())
        .await
        .expect_err("its lease goes on");
    assert_eq!(error.kind, JournalErrorKind::Owned);
    assert!(
        error.retry_after().is_some_and(|left| left <= lease),
        "{:?}",
        error.retry_after()
    );
    place.execute("update $.logs set until = clock_timestamp() + interval '200 milliseconds'");
    let mut log = when_free(&journal, &LogId::from("log")).await;
    log.append(&records(3, 4), Flush::Now)
        .await
        .expect("they follow");
    // It comes back to life, too late.
    assert!(old.append(&records(3, 4), Flush::Now).await.is_err());
    assert_eq!(read(&journal, "log", 0).await.expect("all"), records(0, 4));
}

#[tokio::test]
async fn lease_is_renewed_while_the_log_is_owned() {
    let place = place!("lease_is_renewed_while_the_log_is_owned");
    let lease = Duration::from_secs(3);
    let journal = place
        .connect()
        .lease(lease)
        .await
        .expect("it opens")
        .journal();
    let other = place.open().await.journal();
    let mut log = own(&journal, "log").await;
    let (mut last, mut renewed) = (lease, 0);
    while renewed < 2 {
        let error = other
            .own(&LogId::from("log"), &Owner::default())
            .await
            .expect_err("it is renewed");
        assert_eq!(error.kind, JournalErrorKind::Owned);
        // What is left of a lease only grows when it is renewed.
        let left = error.retry_after().expect("the lease has an end");
        renewed += u32::from(left > last);
        last = left;
        time::sleep(Duration::from_millis(20)).await;
    }
    log.append(&records(0, 1), Flush::Now)
        .await
        .expect("it is still mine");
}

#[tokio::test]
async fn lease_that_is_longer_than_it_can_be_has_ended() {
    let place = place!("lease_that_is_longer_than_it_can_be_has_ended");
    let journal = place.open().await.journal();
    let mut old = own(&journal, "log").await;
    place.execute("update $.logs set until = clock_timestamp() + interval '1 day'");
    let _new = own(&journal, "log").await;
    assert_eq!(
        old.append(&records(0, 1), Flush::Now)
            .await
            .expect_err("fenced")
            .kind,
        JournalErrorKind::Fenced
    );
}

/// Appends so many records to a log that another process wants as well; gives what was acknowledged.
async fn contend(database: Postgres, log: LogId, who: u64, count: u64) -> BTreeSet<u64> {
    let journal = database.journal();
    let owner = Owner {
        takes_over: true,
        ..Owner::default()
    };
    let mut acknowledged = BTreeSet::new();
    let mut owned = journal.own(&log, &owner).await.expect("it is taken");
    while (acknowledged.len() as u64) < count {
        let item = who * 1_000 + acknowledged.len() as u64;
        match owned
            .append(&[record(owned.head().seq.0 + 1, item)], Flush::Lazy)
            .await
        {
            Ok(_) => {
                acknowledged.insert(item);
            }
            Err(error) => {
                assert_eq!(error.kind, JournalErrorKind::Fenced, "{error}");
                owned = journal.own(&log, &owner).await.expect("it is taken");
            }
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_fifty_logs_lose_and_mix_nothing() {
    let place = place!("two_processes_on_fifty_logs_lose_and_mix_nothing");
    let processes = [place.open().await, place.open().await];
    let mut tasks = Vec::new();
    for number in 0..50 {
        for (who, database) in (1..).zip(&processes) {
            let log = LogId::from(format!("log {number}"));
            tasks.push((number, tokio::spawn(contend(database.clone(), log, who, 6))));
        }
    }
    let mut wanted = vec![BTreeSet::new(); 50];
    for (number, task) in tasks {
        let acknowledged = task.await.expect("it ends");
        let known: &mut BTreeSet<u64> = &mut wanted[number];
        known.extend(acknowledged);
    }
    let journal = processes[0].journal();
    for (number, wanted) in wanted.into_iter().enumerate() {
        let found = read(&journal, &format!("log {number}"), 0)
            .await
            .expect("the chain is whole");
        assert_eq!(found.len(), 12);
        let items: Vec<u64> = found.iter().filter_map(item).collect();
        assert_eq!(items.iter().copied().collect::<BTreeSet<_>>(), wanted);
        for who in [1, 2] {
            assert!(
                items
                    .iter()
                    .filter(|item| **item / 1_000 == who)
                    .is_sorted(),
                "{items:?}"
            );
        }
    }
}

fn item(stamped: &Arc<Stamped>) -> Option<u64> {
    match stamped.record {
        Record::Withdrawn { item } => Some(item),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_at_once_share_few_connections() {
    let place = place!("two_hundred_sessions_at_once_share_few_connections");
    let journal = place
        .connect()
        .connections(4)
        .await
        .expect("it opens")
        .journal();
    let session = async |number: u64| {
        let mut log = own(&journal, &format!("{number}")).await;
        for part in 0..5 {
            log.append(&records(part * 4, part * 4 + 4), Flush::Lazy)
                .await
                .expect("they follow");
        }
    };
    future::join_all((0..200).map(session)).await;
    for number in 0..200 {
        assert_eq!(
            read(&journal, &format!("{number}"), 0).await.expect("all"),
            records(0, 20)
        );
    }
}

#[tokio::test]
async fn log_is_free_at_once_when_nobody_waits_for_its_ownership_any_more() {
    let place = place!("log_is_free_at_once_when_nobody_waits_for_its_ownership_any_more");
    let database = place
        .connect()
        .lease(Duration::from_secs(600))
        .await
        .expect("the database opens");
    let journal = database.journal();
    for polls in 1..8 {
        let id = LogId::from(format!("log {polls}"));
        let claim = Owner::default();
        {
            let mut owned = journal.own(&id, &claim);
            for _ in 0..polls {
                if future::poll_immediate(&mut owned).await.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let again = async {
            loop {
                match journal.own(&id, &Owner::default()).await {
                    Ok(_) => return,
                    Err(error) => assert_eq!(error.kind, JournalErrorKind::Owned),
                }
                tokio::task::yield_now().await;
            }
        };
        time::timeout(Duration::from_secs(20), again)
            .await
            .expect("long before the lease ends");
    }
}
