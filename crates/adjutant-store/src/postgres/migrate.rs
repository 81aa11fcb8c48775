//! The tables, and how they came to be: each version is a text of statements that runs once.

use adjutant_core::{JournalError, JournalErrorKind};
use tokio_postgres::error::SqlState;

use super::{database::Database, fault::Fault};

/// The statements that make each version from the one before; the first one is made from nothing.
const VERSIONS: [&str; 2] = [include_str!("version_1.sql"), include_str!("version_2.sql")];

/// The lock that those take who change tables.
const LOCK: i64 = 0x6164_6a75_7461_6e74;

/// Makes the tables, or brings them up to date; any number of programs may do so at once.
pub(super) async fn bring_up_to_date(database: &Database) -> Result<(), JournalError> {
    let failed = |fault: Fault| fault.journal("bring the tables of the database up to date");
    let encoding = database
        .row("select current_setting('server_encoding')", &[])
        .await
        .map_err(failed)?;
    let encoding: String = encoding.map(|row| row.get(0)).unwrap_or_default();
    if encoding != "UTF8" {
        let message = format!("the database is encoded in {encoding}; it must be UTF8");
        return Err(JournalError::new(JournalErrorKind::Invalid, message));
    }
    // A user that only reads and writes the tables may not be allowed to change them.
    let known = match read_version(database).await {
        Ok(known) => known,
        Err(fault) if fault.is(&SqlState::UNDEFINED_TABLE) => 0,
        Err(fault) => return Err(failed(fault)),
    };
    let known = if known < VERSIONS.len() {
        migrate(database).await.map_err(failed)?
    } else {
        known
    };
    if known > VERSIONS.len() {
        let message = format!(
            "the tables have version {known}; this program knows up to {}",
            VERSIONS.len()
        );
        return Err(JournalError::new(JournalErrorKind::Version, message));
    }
    Ok(())
}

async fn read_version(database: &Database) -> Result<usize, Fault> {
    let row = database
        .row(
            "select coalesce(max(version), 0) from adjutant_versions",
            &[],
        )
        .await?;
    Ok(row.map_or(0, |row| version(row.get(0))))
}

/// Runs the pending migrations in one transaction; returns the version before it, or a newer one.
async fn migrate(database: &Database) -> Result<usize, Fault> {
    let mut client = database.client().await?;
    let change = client.transaction().await?;
    change
        .execute("select pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let schema = &database.schema;
    // An existing schema can belong to another user who grants access.
    let exists = change
        .query_opt(
            "select 1 from pg_namespace where nspname = $1",
            &[&&**schema],
        )
        .await?;
    if exists.is_none() {
        change
            .batch_execute(&format!("create schema {schema}"))
            .await?;
    }
    let versions = "create table if not exists adjutant_versions (version int primary key, since timestamptz not null)";
    change.batch_execute(versions).await?;
    let newest = change
        .query_one(
            "select coalesce(max(version), 0) from adjutant_versions",
            &[],
        )
        .await?;
    let known = version(newest.get(0));
    for (version, sql) in (1_i32..).zip(VERSIONS).skip(known) {
        change.batch_execute(sql).await?;
        change
            .execute(
                "insert into adjutant_versions values ($1, now())",
                &[&version],
            )
            .await?;
    }
    change.commit().await?;
    Ok(known)
}

fn version(stored: i32) -> usize {
    usize::try_from(stored).unwrap_or(0)
}
