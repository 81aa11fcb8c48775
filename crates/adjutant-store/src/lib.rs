//! Where sessions, boards, notes and memories are kept: JSON lines, SQLite, PostgreSQL.
//!
//! | feature | what it keeps | for |
//! |---|---|---|
//! | `jsonl` (default) | sessions, one folder each | a few sessions that people read with their own tools |
//! | `sqlite` (default) | sessions, key-value stores, memories in one file | one machine, any number of processes |
//! | `postgres` | sessions, key-value stores, memories in one schema | many machines |
//!
//! ```
//! use adjutant_agent::Agent;
//! use adjutant_llm::{Script, ScriptedModel};
//! use adjutant_store::Sqlite;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
//! let store = Sqlite::in_memory()?;
//! let model = ScriptedModel::new([Script::new().text("Good morning."), Script::new().text("As I said.")]);
//! let agent = Agent::new(model).journal(store.journal()).session("greetings".into());
//! agent.run("Hello!").await?;
//! drop(agent);
//! let model = ScriptedModel::new([Script::new().text("As I said.")]);
//! let later = Agent::new(model).journal(store.journal()).session("greetings".into());
//! later.run("What did you say?").await?;
//! assert_eq!(later.log().transcript().len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).expect("the runs finish");
//! ```

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
