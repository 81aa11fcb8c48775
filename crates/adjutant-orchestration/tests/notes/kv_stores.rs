//! Every kind of key-value store, empty; what cannot be had here is said.

use std::{fmt, sync::Arc};

use adjutant_agent::kv::{KvStore, MemoryKvStore};
use adjutant_store::{Postgres, Sqlite};
use adjutant_testing::PostgresServer;
use tempfile::TempDir;

/// A key-value store, and what must stay as long as it is used.
pub(crate) struct Place {
    pub(crate) kind: &'static str,
    pub(crate) kv: Arc<dyn KvStore>,
    /// The same key-value store, as another process has it.
    pub(crate) other: Arc<dyn KvStore>,
    _folder: Option<TempDir>,
}

/// A key-value store of each kind, for the test of this name.
pub(crate) async fn all(test: &str) -> Vec<Place> {
    let memory = MemoryKvStore::default();
    let mut places = vec![Place {
        kind: "memory",
        kv: Arc::new(memory.clone()),
        other: Arc::new(memory),
        _folder: None,
    }];
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        Sqlite::open(folder.path().join("db"))
            .expect("it opens")
            .kv("shared")
    };
    let (kv, other) = (Arc::new(open()), Arc::new(open()));
    places.push(Place {
        kind: "sqlite",
        kv,
        other,
        _folder: Some(folder),
    });
    if let Some(server) = PostgresServer::for_test(test) {
        let url = server.database().expect("a database");
        let open = async || {
            Postgres::connect(url.as_str())
                .connections(3)
                .await
                .expect("it opens")
                .kv("shared")
        };
        let (kv, other) = (Arc::new(open().await), Arc::new(open().await));
        places.push(Place {
            kind: "postgres",
            kv,
            other,
            _folder: None,
        });
    }
    places
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }
}
