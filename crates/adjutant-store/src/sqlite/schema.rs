//! Connections, and the tables that they find: an older database is brought up to date, a newer one refused.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use adjutant_llm::private;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use uuid::Uuid;

use super::fault::Fault;

/// The statements that make each version of the tables from the one before.
const STEPS: [&str; 2] = [include_str!("schema/1.sql"), include_str!("schema/2.sql")];
/// Marks a database as ours: "ADJT".
const APPLICATION: i64 = 0x4144_4a54;
/// The longest time that a connection waits for another program that writes.
const BUSY: Duration = Duration::from_secs(10);
/// To how many bytes the write-ahead log is cut when a large one has been copied.
const MAX_WAL_BYTES: i64 = 64 * 1024 * 1024;
/// The number of statements that a connection keeps ready.
const STATEMENTS: usize = 128;

/// The location of a database.
#[derive(Debug)]
pub(super) enum DatabaseLocation {
    File(PathBuf),
    Memory,
}

impl DatabaseLocation {
    /// A file by any path; none is special.
    pub(super) fn file(path: &Path) -> Result<Self, Fault> {
        Ok(Self::File(std::path::absolute(path)?))
    }
}

/// The way in which a database file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Concurrently with writers.
    Shared,
    /// For a database that cannot be written: without locks, and without extra files.
    Frozen,
}

/// Opens a database to write, or to read if it cannot be written.
pub(super) fn open(place: &DatabaseLocation) -> Result<(Option<Connection>, Reading), Fault> {
    let DatabaseLocation::File(path) = place else {
        return Ok((Some(writer(place)?), Reading::Shared));
    };
    let fault = match writer(place) {
        // SQLite opens a file that it may not write only to read it.
        Ok(db) if db.is_readonly("main")? => Fault::ReadOnly,
        Ok(db) => return Ok((Some(db), Reading::Shared)),
        Err(fault) if fault.is_unwritable() && path.is_file() => fault,
        Err(fault) => return Err(fault),
    };
    for reading in [Reading::Shared, Reading::Frozen] {
        if reading == Reading::Frozen && !is_frozen(path) {
            break;
        }
        match reader(path, reading).and_then(|db| check(&db)) {
            Ok(version) if version == STEPS.len() => return Ok((None, reading)),
            Ok(version) => {
                return Err(Fault::Version(format!(
                    "it has version {version}, and cannot be brought up to date"
                )));
            }
            Err(fault) if fault.is_unwritable() => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(fault)
}

/// True if a database has no writers: all changes are in its file, and the file is read-only.
fn is_frozen(path: &Path) -> bool {
    let is_whole = fs::metadata(beside(path, "-wal")).map_or(true, |wal| wal.len() == 0);
    let probe = path.with_file_name(format!(".{}", Uuid::new_v4().simple()));
    let made = private::file(OpenOptions::new().write(true).create_new(true)).open(&probe);
    let is_medium = made
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem);
    // It was only made to see whether it can be.
    let is_folder = made.map(|_| fs::remove_file(&probe)).is_err();
    let is_file = fs::metadata(path).is_ok_and(|file| file.permissions().readonly());
    is_whole && (is_medium || (is_folder && is_file))
}

/// Opens a database to write, and brings it up to date.
fn writer(place: &DatabaseLocation) -> Result<Connection, Fault> {
    let mut db = match place {
        DatabaseLocation::File(path) => {
            make(path)?;
            let how = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, how)?
        }
        DatabaseLocation::Memory => Connection::open_in_memory()?,
    };
    prepare(&db)?;
    check(&db)?;
    if let DatabaseLocation::File(_) = place {
        to_wal(&db)?;
    }
    // On some systems the system's own flush does not reach the disk; SQLite knows a stronger one there.
    db.pragma_update(None, "fullfsync", true)?;
    db.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    migrate(&mut db)?;
    Ok(db)
}

/// A path next to a database file.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(end);
    beside.into()
}

/// Creates an empty file, unless it exists. SQLite gives its additional files the same mode.
///
/// A file that is there is not opened: SQLite would lose its locks when it is closed.
fn make(path: &Path) -> io::Result<()> {
    match private::file(OpenOptions::new().write(true).create_new(true)).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.is_file() => Err(error),
        _ => Ok(()),
    }
}

/// Opens a database file to read.
pub(super) fn reader(path: &Path, reading: Reading) -> Result<Connection, Fault> {
    let how = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = match reading {
        Reading::Shared => Connection::open_with_flags(path, how)?,
        Reading::Frozen => {
            let bytes = path.as_os_str().as_encoded_bytes().iter();
            let escaped: String = bytes.map(|byte| format!("%{byte:02x}")).collect();
            let uri = format!("file:{escaped}?immutable=1");
            Connection::open_with_flags(uri, how | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    prepare(&db)?;
    Ok(db)
}

fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// Refuses databases of other programs and of newer versions; returns the version. It reads a consistent snapshot.
fn check(db: &Connection) -> Result<usize, Fault> {
    let moment = db.unchecked_transaction()?;
    let version = look(&moment)?;
    moment.finish()?;
    Ok(version)
}

/// The same, within a transaction.
fn look(db: &Connection) -> Result<usize, Fault> {
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && tables + application + version != 0 {
        return Err(Fault::Invalid(
            "it is the database of another program".into(),
        ));
    }
    match usize::try_from(version) {
        Ok(version) if version <= STEPS.len() => Ok(version),
        _ => Err(Fault::Version(format!(
            "it has version {version}; this program reads up to {}",
            STEPS.len()
        ))),
    }
}

/// From now on, readers and the writer can work concurrently, in any program.
fn to_wal(db: &Connection) -> Result<(), Fault> {
    let set =
        || db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    let mut mode = set();
    // Of several programs that create one file only one can change the mode; SQLite fails for the others immediately.
    for _ in 0..100 {
        match &mode {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                thread::sleep(Duration::from_millis(20));
                mode = set();
            }
            _ => break,
        }
    }
    match mode?.as_str() {
        "wal" => Ok(()),
        other => Err(Fault::Invalid(format!(
            "its file system allows only the journal mode {other:?}"
        ))),
    }
}

fn migrate(db: &mut Connection) -> Result<(), Fault> {
    if check(db)? == STEPS.len() {
        return Ok(());
    }
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another program may have been faster.
    let version = look(&transaction)?;
    for step in STEPS.iter().skip(version) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}
