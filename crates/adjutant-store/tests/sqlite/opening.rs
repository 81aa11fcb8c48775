//! Files that cannot be opened, each refused in its way.

use std::{error::Error, fs};

use adjutant_core::JournalErrorKind;
use adjutant_store::Sqlite;

use super::{Place, check_kind, own, records, whole};

#[test]
fn file_that_is_no_database_is_corrupt() {
    let place = Place::new();
    fs::write(
        place.path(),
        "this is a letter, not a database. ".repeat(1_000),
    )
    .expect("written");
    check_kind(Sqlite::open(place.path()), JournalErrorKind::Corrupt);
}

#[test]
fn database_of_a_newer_program_is_refused() {
    let place = Place::new();
    drop(place.open());
    place
        .raw()
        .pragma_update(None, "user_version", 999)
        .expect("written");
    let error = check_kind(Sqlite::open(place.path()), JournalErrorKind::Version);
    assert!(
        error
            .to_string()
            .ends_with("it has version 999; this program reads up to 2"),
        "{error}"
    );
}

#[test]
fn database_of_another_program_is_left_alone() {
    let place = Place::new();
    place
        .raw()
        .execute_batch("CREATE TABLE birds(name)")
        .expect("written");
    check_kind(Sqlite::open(place.path()), JournalErrorKind::Invalid);
    let tables: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .expect("read");
    assert_eq!(tables, 1);
}

#[test]
fn folder_that_is_missing_or_in_the_way_is_an_io_error_with_its_cause() {
    let place = Place::new();
    for path in [
        place.folder.path().join("no/such/folder.db"),
        place.folder.path().to_owned(),
    ] {
        let error = check_kind(Sqlite::open(path), JournalErrorKind::Io);
        assert!(error.source().is_some(), "{error}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn path_is_never_special() {
    let place = Place::new();
    for name in [":memory:", "file:x?mode=memory", "a b%20c?d#e"] {
        let path = place.folder.path().join(name);
        let journal = Sqlite::open(&path).expect("opens").journal();
        super::append(&mut *own(&journal, "log").await, &records(1, 1)).await;
        assert!(path.is_file(), "{name}");
        assert_eq!(
            whole(&Sqlite::open(&path).expect("opens").journal(), "log").await,
            records(1, 1)
        );
    }
}
