//! Where the log of the kill test is kept.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use adjutant::{
    agent::{Journal, kv::KvStore},
    store::{JsonlJournal, Postgres, Sqlite},
};

/// How long a log belongs to a process that is gone; short, because the next one waits for it.
const LEASE: Duration = Duration::from_millis(300);

/// Where a log is kept: `sqlite:<path>`, `jsonl:<directory>` or the address of a PostgreSQL database.
#[derive(Debug, Clone)]
pub enum Place {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A directory of JSON lines.
    Jsonl(PathBuf),
    /// A PostgreSQL database.
    Postgres(String),
}

impl Place {
    /// Reads a place from what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some(("sqlite", path)) => Place::Sqlite(path.into()),
            Some(("jsonl", path)) => Place::Jsonl(path.into()),
            _ => Place::Postgres(text.to_owned()),
        }
    }

    /// Opens the journal there.
    ///
    /// # Errors
    /// Whatever keeps it from being opened.
    pub async fn open(&self) -> Result<Arc<dyn Journal>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(match self {
            Place::Sqlite(path) => Arc::new(Sqlite::open(path)?.journal()),
            Place::Jsonl(directory) => Arc::new(JsonlJournal::open(directory)?),
            Place::Postgres(url) => Arc::new(
                Postgres::connect(url.as_str())
                    .lease(LEASE)
                    .await?
                    .journal(),
            ),
        })
    }
}

impl Place {
    /// Opens the journal and the key-value store there; JSON lines have no key-value store.
    ///
    /// # Errors
    /// Whatever keeps them from being opened.
    pub async fn open_both(
        &self,
    ) -> Result<(Arc<dyn Journal>, Arc<dyn KvStore>), Box<dyn std::error::Error + Send + Sync>>
    {
        match self {
            Place::Sqlite(path) => {
                let store = Sqlite::open(path)?;
                Ok((Arc::new(store.journal()), Arc::new(store.kv("board"))))
            }
            Place::Postgres(url) => {
                let store = Postgres::connect(url.as_str()).lease(LEASE).await?;
                Ok((Arc::new(store.journal()), Arc::new(store.kv("board"))))
            }
            Place::Jsonl(_) => Err("there is no key-value store in files of JSON lines".into()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Place::Jsonl(path) => write!(f, "jsonl:{}", path.display()),
            Place::Postgres(url) => f.write_str(url),
        }
    }
}
