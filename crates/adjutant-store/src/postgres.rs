//! Sessions, key-value stores and memory in PostgreSQL, for many processes at once. TLS is not spoken.

mod database;
mod fault;
mod journal;
mod json;
mod kv;
mod memory;
mod migrate;
mod row;
mod wake;
mod words;

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use adjutant_core::JournalError;
use adjutant_llm::{SystemWorld, World};

use self::database::Database;
pub use self::{journal::PostgresJournal, kv::PostgresKvStore, memory::PostgresMemory};

/// A schema of a PostgreSQL database, which holds journals, key-value stores and memories; clones share its
/// connections.
///
/// The tables are made when it is opened, and brought up to date if an older program made them. The server must be
/// PostgreSQL 12 or newer, the database encoded in UTF-8. Connections are not encrypted, and a URL that demands TLS is
/// refused: use a socket, a network of your own, or a tunnel.
///
/// ```no_run
/// # async fn open() -> Result<(), adjutant_core::JournalError> {
/// let database = adjutant_store::Postgres::connect("postgresql://agents@localhost/agents").await?;
/// let (journal, memory) = (database.journal(), database.memory());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Postgres {
    database: Arc<Database>,
}

/// A [`Postgres`] that is about to be opened: await it.
#[must_use = "it is opened when it is awaited"]
pub struct Connect {
    url: Box<str>,
    schema: Arc<str>,
    lease: Duration,
    connections: usize,
    world: Arc<dyn World>,
}

impl Postgres {
    /// Opens the database at a URL, or at a list of `key=value` as libpq has it.
    ///
    /// # Errors
    /// When awaited: `Invalid` for a URL, a schema or an encoding that cannot be, or if TLS is demanded, `Version` if a newer program made the
    /// tables, `Io` if the server cannot be reached or refuses.
    pub fn connect(url: impl Into<Box<str>>) -> Connect {
        Connect {
            url: url.into(),
            schema: "adjutant".into(),
            lease: Duration::from_secs(15),
            connections: 16,
            world: Arc::new(SystemWorld),
        }
    }

    /// The logs that it holds.
    pub fn journal(&self) -> PostgresJournal {
        PostgresJournal::new(Arc::clone(&self.database))
    }

    /// The key-value store with this name, of 1 to 512 bytes; it is made by the first write.
    pub fn kv(&self, name: impl Into<Arc<str>>) -> PostgresKvStore {
        PostgresKvStore::new(Arc::clone(&self.database), name.into())
    }

    /// The facts that it holds.
    pub fn memory(&self) -> PostgresMemory {
        PostgresMemory::new(Arc::clone(&self.database))
    }
}

impl Connect {
    /// Sets the schema that holds the tables: 1 to 40 small letters, digits and `_`, not beginning with a digit or
    /// `pg_`; `adjutant` without it.
    pub fn schema(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            schema: name.into(),
            ..self
        }
    }

    /// Sets how long a log stays with an owner whose process has died; 15 seconds by default, at least 100
    /// milliseconds.
    pub fn lease(self, lease: Duration) -> Self {
        Self {
            lease: lease.max(Duration::from_millis(100)),
            ..self
        }
    }

    /// Sets the largest number of connections, in addition to one that listens; 16 by default, at least 2.
    pub fn connections(self, connections: usize) -> Self {
        Self {
            connections: connections.max(2),
            ..self
        }
    }

    /// Sets the clock for the creation times of logs and values; leases use the server's clock.
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }
}

impl IntoFuture for Connect {
    type Output = Result<Postgres, JournalError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self {
                url,
                schema,
                lease,
                connections,
                world,
            } = self;
            let database = Database::open(&url, schema, connections, lease, world)?;
            migrate::bring_up_to_date(&database).await?;
            Ok(Postgres {
                database: Arc::new(database),
            })
        })
    }
}

impl fmt::Debug for Postgres {
    /// Contains neither the database's address nor the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("schema", &self.database.schema)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Connect {
    /// Contains neither the database's address nor the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connect = &mut f.debug_struct("Connect");
        connect
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
