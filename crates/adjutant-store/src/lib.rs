//! The stores of sessions, boards, notes and memories: JSON lines, SQLite, PostgreSQL.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod exposed;
#[cfg(any(feature = "jsonl", feature = "postgres", feature = "sqlite"))]
mod folds;
#[cfg(feature = "jsonl")]
mod jsonl;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub use exposed::Exposed;
#[cfg(feature = "jsonl")]
pub use jsonl::JsonlJournal;
#[cfg(feature = "postgres")]
pub use postgres::{Connect, Postgres, PostgresJournal, PostgresKvStore, PostgresMemory};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteJournal, SqliteKvStore, SqliteMemory};
