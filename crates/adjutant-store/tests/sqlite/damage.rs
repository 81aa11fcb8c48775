//! Damage of any kind: found, and nothing that is read is other than what was written.

use std::{fs, sync::Arc};

use adjutant_core::{Flush, Journal, JournalError, JournalErrorKind, Owner, Stamped};
use adjutant_store::Sqlite;

use super::{Place, append, check_kind, own, read, record, records, whole};

async fn written(place: &Place) -> Vec<Arc<Stamped>> {
    let journal = place.open().journal();
    let all = [records(1, 99), vec![record(100, &"long ".repeat(20_000))]].concat();
    append(&mut *own(&journal, "log").await, &all).await;
    all
}

/// Reads a log up to what is wrong with it.
async fn upto(sqlite: &Sqlite) -> (Vec<Arc<Stamped>>, Option<JournalError>) {
    let mut items = read(&sqlite.journal(), "log").await;
    let error = items.pop_if(|last| last.is_err()).and_then(Result::err);
    (
        items
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("only the last item fails"),
        error,
    )
}

#[tokio::test]
async fn changed_and_missing_rows_are_found_where_they_are() {
    let place_of = |seq: i64| (1_i64 << 36) | seq;
    let cases = [
        (format!("UPDATE records SET bytes = replace(bytes, 'text 7\"', 'text 8\"') WHERE place = {}", place_of(7)), 6),
        (format!("UPDATE records SET link = zeroblob(32) WHERE place = {}", place_of(50)), 49),
        (format!("UPDATE records SET bytes = 5 WHERE place = {}", place_of(1)), 0),
        (format!("DELETE FROM records WHERE place = {}", place_of(33)), 32),
        (format!("DELETE FROM records WHERE place > {}", place_of(60)), 60),
        ("DELETE FROM records".to_owned(), 0),
        ("DELETE FROM attached".to_owned(), 96),
        ("DELETE FROM attachments".to_owned(), 96),
        ("UPDATE attachments SET bytes = CAST(replace(CAST(bytes AS TEXT), 'long', 'lung') AS BLOB)".to_owned(), 99),
        ("UPDATE logs SET link = zeroblob(32)".to_owned(), 100),
    ];
    for (damage, whole) in cases {
        let place = Place::new();
        let all = written(&place).await;
        place.raw().execute(&damage, []).expect("damaged");
        let (found, error) = upto(&place.open()).await;
        check_kind(
            Err::<(), _>(error.expect("damage is found")),
            JournalErrorKind::Corrupt,
        );
        assert!(found.len() <= whole, "{damage}");
        assert_eq!(found, all[..found.len()], "{damage}");
    }
}

#[tokio::test]
async fn log_with_a_damaged_end_cannot_be_owned() {
    let place = Place::new();
    written(&place).await;
    place
        .raw()
        .execute("DELETE FROM attachments", [])
        .expect("damaged");
    check_kind(
        place
            .open()
            .journal()
            .own(&"log".into(), &Owner::default())
            .await,
        JournalErrorKind::Corrupt,
    );
    assert!(place.open().journal().info(&"log".into()).await.is_ok());
}

#[tokio::test]
async fn file_that_was_cut_or_has_flipped_bytes_gives_nothing_but_what_was_written() {
    let place = Place::new();
    let all = written(&place).await;
    place
        .raw()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("copied");
    let file = fs::read(place.path()).expect("readable");
    let mut damaged: Vec<Vec<u8>> = (0..24)
        .map(|part| file[..file.len() * part / 24].to_vec())
        .collect();
    damaged.extend((0..100).map(|number| {
        let mut flipped = file.clone();
        let at = number * 7_919 % file.len();
        flipped[at] ^= 1 << (number % 8);
        flipped
    }));
    let mut found_out = 0;
    for damaged in damaged {
        let copy = Place::new();
        fs::write(copy.path(), damaged).expect("written");
        let (found, error) = match Sqlite::open(copy.path()) {
            Ok(sqlite) => upto(&sqlite).await,
            Err(error) => (Vec::new(), Some(error)),
        };
        assert_eq!(found, all[..found.len()]);
        assert!(error.is_some() || found.len() == all.len());
        found_out += usize::from(error.is_some());
    }
    assert!(found_out > 24, "{found_out}");
}

#[tokio::test]
async fn log_goes_on_when_the_file_was_damaged_elsewhere() {
    let place = Place::new();
    let mut all = written(&place).await;
    let journal = place.open().journal();
    append(&mut *own(&journal, "other").await, &records(1, 3)).await;
    place
        .raw()
        .execute("DELETE FROM records WHERE place > (2 << 36)", [])
        .expect("damaged");
    let mut log = own(&journal, "log").await;
    all.push(record(101, "on"));
    log.append(&all[100..], Flush::Now).await.expect("appended");
    assert_eq!(whole(&journal, "log").await, all);
    check_kind(
        read(&journal, "other").await.remove(0),
        JournalErrorKind::Corrupt,
    );
}
