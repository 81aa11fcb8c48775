//! Who owns a log, here and in other programs.

use std::fs::File;

use adjutant_core::{Flush, Journal, JournalErrorKind, LogId, Owner, Seq};

use super::{Place, append, check_kind, own, records, whole};

#[tokio::test]
async fn log_is_free_at_once_when_its_value_is_dropped() {
    let place = Place::new();
    let (one, two) = (place.open().journal(), place.open().journal());
    for _ in 0..50 {
        for (holder, other) in [(&one, &two), (&two, &one), (&one, &one)] {
            let log = own(holder, "log").await;
            check_kind(
                other.own(&"log".into(), &Owner::default()).await,
                JournalErrorKind::Owned,
            );
            check_kind(other.delete(&"log".into()).await, JournalErrorKind::Owned);
            check_kind(
                other.rename(&"log".into(), &"new".into()).await,
                JournalErrorKind::Owned,
            );
            assert!(other.info(&"log".into()).await.expect("known").is_owned);
            drop(log);
            assert!(!other.info(&"log".into()).await.expect("known").is_owned);
        }
    }
}

#[tokio::test]
async fn owner_that_was_taken_over_is_fenced() {
    let place = Place::new();
    let (one, two) = (place.open().journal(), place.open().journal());
    let mut late = own(&one, "log").await;
    append(&mut *late, &records(1, 2)).await;
    let mut log = two
        .own(
            &"log".into(),
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("taken over");
    assert_eq!(
        (log.head().seq, log.head().epoch),
        (Seq(2), adjutant_core::Epoch(2))
    );
    for batch in [records(3, 3), records(4, 4), records(1, 1), Vec::new()] {
        check_kind(
            late.append(&batch, Flush::Now).await,
            JournalErrorKind::Fenced,
        );
    }
    check_kind(
        late.mark_consumed(adjutant_core::PostNo(1)).await,
        JournalErrorKind::Fenced,
    );
    drop(late);
    append(&mut *log, &records(3, 3)).await;
    check_kind(
        one.own(&"log".into(), &Owner::default()).await,
        JournalErrorKind::Owned,
    );
    assert_eq!(whole(&one, "log").await, records(1, 3));
}

#[tokio::test]
async fn same_owner_has_the_log_again_and_its_older_value_is_fenced() {
    let place = Place::new();
    let owner = Owner {
        id: "me".into(),
        takes_over: false,
    };
    let log = LogId::from("log");
    let mut late = place
        .open()
        .journal()
        .own(&log, &owner)
        .await
        .expect("owned");
    let mut held = place
        .open()
        .journal()
        .own(&log, &owner)
        .await
        .expect("owned");
    check_kind(
        late.append(&records(1, 1), Flush::Lazy).await,
        JournalErrorKind::Fenced,
    );
    append(&mut *held, &records(1, 1)).await;
}

#[tokio::test]
async fn log_of_another_program_is_free_when_its_lock_is() {
    let place = Place::new();
    let journal = place.open().journal();
    let log = own(&journal, "log").await;
    // What a program leaves that is killed now: the row, and a file whose lock went with it.
    let folder = place.folder.path().join("sessions.db-owners");
    let dead = folder.join("another.lock");
    let lock = File::create(&dead).expect("made");
    lock.lock().expect("locked");
    place
        .raw()
        .execute("UPDATE logs SET instance = 'another'", [])
        .expect("written");
    check_kind(
        journal.own(&"log".into(), &Owner::default()).await,
        JournalErrorKind::Owned,
    );
    check_kind(
        place
            .open()
            .journal()
            .own(&"log".into(), &Owner::default())
            .await,
        JournalErrorKind::Owned,
    );
    assert!(journal.info(&"log".into()).await.expect("known").is_owned);
    drop(lock);
    assert!(!journal.info(&"log".into()).await.expect("known").is_owned);
    let taken = own(&journal, "log").await;
    drop((taken, log));
    // The next program that owns anything clears away what the dead one left.
    let next = place.open().journal();
    let held = own(&next, "other").await;
    assert!(!dead.exists());
    drop(held);
}

#[tokio::test]
async fn log_whose_owner_left_no_file_is_free() {
    let place = Place::new();
    let journal = place.open().journal();
    let log = own(&journal, "log").await;
    place
        .raw()
        .execute("UPDATE logs SET instance = 'another'", [])
        .expect("written");
    drop(own(&journal, "log").await);
    drop(log);
}

#[tokio::test]
async fn claims_at_once_have_one_winner() {
    let place = Place::new();
    for sqlite in [
        place.open(),
        adjutant_store::Sqlite::in_memory().expect("opens"),
    ] {
        let journal = sqlite.journal();
        let claim = |_| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.own(&"log".into(), &Owner::default()).await })
        };
        let claims = futures_util::future::join_all((0..40).map(claim)).await;
        let won = claims
            .into_iter()
            .filter_map(|claim| claim.expect("no panic").ok())
            .collect::<Vec<_>>();
        assert_eq!(won.len(), 1);
    }
}
