//! Where sessions, boards, notes and memories are kept: JSON lines, SQLite, PostgreSQL.

#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteJournal, SqliteMemory, SqliteShelf};
#[cfg(feature = "postgres")]
mod postgres;

#[cfg(feature = "postgres")]
pub use postgres::{Connect, Postgres, PostgresJournal, PostgresMemory, PostgresShelf};
