//! Opening a database: tables are made once, newer ones are refused, and nothing that is secret is said.

use std::error::Error;

use adjutant_core::{Journal, JournalErrorKind, LogId};
use adjutant_store::Postgres;
use futures_util::future;

use super::place;

fn whole(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(|error| format!("{error} {error:?} ")).collect()
}

#[tokio::test]
async fn tables_are_made_once_when_many_open_at_once() {
    let place = place!("tables_are_made_once_when_many_open_at_once");
    let opened = future::join_all((0..12).map(|_| place.connect().into_future())).await;
    for database in opened {
        let database = database.expect("it opens");
        let missing = database
            .journal()
            .info(&LogId::from("none"))
            .await
            .expect_err("no log is there");
        assert_eq!(missing.kind, JournalErrorKind::Missing);
    }
}

#[tokio::test]
async fn newer_tables_are_refused_and_named() {
    let place = place!("newer_tables_are_refused_and_named");
    drop(place.open().await);
    place.execute("insert into $.adjutant_versions values (99, now())");
    let error = place.connect().await.expect_err("it is newer");
    assert_eq!(error.kind, JournalErrorKind::Version);
    assert_eq!(
        error.to_string(),
        "the tables have version 99; this program knows up to 2"
    );
}

#[tokio::test]
async fn schema_that_cannot_be_is_invalid() {
    for schema in ["", "Upper", "1st", "pg_own", "a;b", "a b", &"a".repeat(41)] {
        let error = Postgres::connect("postgresql://127.0.0.1/none")
            .schema(schema)
            .await
            .expect_err("no name");
        assert_eq!(error.kind, JournalErrorKind::Invalid, "{schema}");
    }
}

#[tokio::test]
async fn url_that_demands_tls_is_invalid() {
    let error = Postgres::connect("postgresql://127.0.0.1:1/none?sslmode=require")
        .await
        .expect_err("no TLS");
    assert_eq!(error.kind, JournalErrorKind::Invalid);
}

#[tokio::test]
async fn errors_and_debug_tell_no_secret() {
    for url in [
        "postgresql://agent:hunter2@127.0.0.1:1/secretdb",
        "postgresql://agent:hunter2@127.0.0.1:notaport/secretdb",
        "host=127.0.0.1 port=1 password=hunter2 dbname=secretdb",
        "postgresql://agent:hunter2@127.0.0.1:1/secretdb?hunter2=secretdb",
    ] {
        let connect = Postgres::connect(url);
        let said = format!("{connect:?}");
        let error = connect.await.expect_err("nobody is there");
        let said = said + &whole(&error);
        assert!(
            !said.contains("hunter2") && !said.contains("secretdb"),
            "{said}"
        );
    }
    let place = place!("errors_and_debug_tell_no_secret");
    let database = place.open().await;
    let said = format!(
        "{database:?} {:?} {:?} {:?}",
        database.journal(),
        database.kv("s"),
        database.memory()
    );
    assert!(
        !said.contains("postgresql") && !said.contains("127.0.0.1"),
        "{said}"
    );
}
