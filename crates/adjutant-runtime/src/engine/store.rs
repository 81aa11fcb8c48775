//! The store of a manifest: sessions, and other durable data.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Credentials, Error, ErrorKind, Workspace,
    manifest::{StoreKind, StoreSpec},
};
use adjutant_agent::{
    DueWork, Journal, JournalError, KvStore, Memory, MemoryJournal, kv::MemoryKvStore,
    memory::InMemory,
};
use adjutant_llm::World;
#[cfg(feature = "postgres")]
use adjutant_store::Postgres;
use adjutant_store::{JsonlJournal, Sqlite};

/// An open store of sessions and other data.
#[derive(Clone)]
pub struct Store(Kind);

#[derive(Clone)]
enum Kind {
    Sqlite(Sqlite),
    Jsonl(JsonlJournal),
    /// Data is lost when the process exits; no thread is needed.
    Memory(Volatile),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
}

/// Key-value stores by name.
type KvStores = BTreeMap<Arc<str>, Arc<dyn KvStore>>;

/// A store in memory.
#[derive(Clone)]
struct Volatile {
    journal: Arc<MemoryJournal>,
    memory: Arc<InMemory>,
    kv_stores: Arc<Mutex<KvStores>>,
    world: Arc<dyn World>,
}

impl Store {
    /// Creates a store in memory, whose data is lost when the process exits.
    pub fn memory_only(world: impl World + 'static) -> Self {
        let world: Arc<dyn World> = Arc::new(world);
        Self(Kind::Memory(Volatile {
            journal: Arc::new(MemoryJournal::default().world(world.clone())),
            memory: Arc::new(InMemory::default()),
            kv_stores: Arc::default(),
            world,
        }))
    }

    /// True if its data outlives the process.
    pub(super) fn lasts(&self) -> bool {
        !matches!(self.0, Kind::Memory(_))
    }

    /// Opens the store of a workspace, and creates it if it does not exist.
    ///
    /// # Errors
    /// `Storage` if it cannot be opened or a variable is missing, `Config` if its description is invalid.
    pub(super) async fn open(
        spec: &StoreSpec,
        workspace: &Workspace,
        credentials: &Credentials,
        world: &Arc<dyn World>,
    ) -> Result<Self, Error> {
        let world = Arc::clone(world);
        let path = |usual: &str| {
            place(
                &workspace.state(),
                spec.path.as_deref().unwrap_or(Path::new(usual)),
            )
        };
        match spec.kind {
            StoreKind::Sqlite => {
                let path = path("agent.db")?;
                Ok(Sqlite::open(&path)
                    .map_err(|error| cannot(&path, error))?
                    .world(world)
                    .into())
            }
            StoreKind::Jsonl => {
                let path = path("sessions")?;
                Ok(JsonlJournal::open(&path)
                    .map_err(|error| cannot(&path, error))?
                    .world(world)
                    .into())
            }
            StoreKind::Memory => Ok(Self::memory_only(world)),
            StoreKind::Postgres => postgres(spec, credentials, world).await,
        }
    }

    /// Returns its sessions.
    pub fn journal(&self) -> Arc<dyn Journal> {
        match &self.0 {
            Kind::Sqlite(store) => Arc::new(store.journal()),
            Kind::Jsonl(journal) => Arc::new(journal.clone()),
            Kind::Memory(store) => Arc::clone(&store.journal) as Arc<dyn Journal>,
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Arc::new(store.journal()),
        }
    }

    /// Returns its sessions with the queue of work.
    ///
    /// # Errors
    /// `Config` if it has no work queue.
    pub fn due_work(&self) -> Result<Arc<dyn DueWork>, Error> {
        match &self.0 {
            Kind::Sqlite(store) => Ok(Arc::new(store.journal())),
            Kind::Jsonl(_) => Err(only_sessions("knowledge of what is due")),
            Kind::Memory(store) => Ok(Arc::clone(&store.journal) as Arc<dyn DueWork>),
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Ok(Arc::new(store.journal())),
        }
    }

    /// Returns its memory.
    ///
    /// # Errors
    /// `Config` if it has none.
    pub fn memory(&self) -> Result<Arc<dyn Memory>, Error> {
        match &self.0 {
            Kind::Sqlite(store) => Ok(Arc::new(store.memory())),
            Kind::Jsonl(_) => Err(only_sessions("memory")),
            Kind::Memory(store) => Ok(Arc::clone(&store.memory) as Arc<dyn Memory>),
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Ok(Arc::new(store.memory())),
        }
    }

    /// Returns one of its key-value stores; `what` is its purpose, for errors.
    ///
    /// # Errors
    /// `Config` if it has none.
    pub fn kv(&self, name: &str, what: &str) -> Result<Arc<dyn KvStore>, Error> {
        match &self.0 {
            Kind::Sqlite(store) => Ok(Arc::new(store.kv(name))),
            Kind::Jsonl(_) => Err(only_sessions(what)),
            Kind::Memory(store) => {
                let mut kv_stores = store
                    .kv_stores
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let kv = kv_stores.entry(name.into()).or_insert_with(|| {
                    Arc::new(MemoryKvStore::default().world(store.world.clone()))
                });
                Ok(Arc::clone(kv))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Ok(Arc::new(store.kv(name))),
        }
    }
}

/// Joins a path to a directory, and refuses paths that lead out of it.
///
/// # Errors
/// `Config` if it leads out.
pub(super) fn place(folder: &Path, path: &Path) -> Result<PathBuf, Error> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.components().all(is_plain)
        && path
            .components()
            .any(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(folder.join(path));
    }
    Err(Error::new(
        ErrorKind::Config,
        format!("a path leads out of the workspace: {}", path.display()),
    ))
}

#[cfg(feature = "postgres")]
async fn postgres(
    spec: &StoreSpec,
    credentials: &Credentials,
    world: Arc<dyn World>,
) -> Result<Store, Error> {
    let Some(variable) = &spec.url_variable else {
        return Err(Error::new(
            ErrorKind::Config,
            "`sessions.store` is postgres, and `url_variable` is missing",
        ));
    };
    let url = credentials.get(variable).ok_or_else(|| {
        Error::new(
            ErrorKind::Storage,
            format!("the variable {variable} is not set: it holds the store's address"),
        )
    })?;
    match Postgres::connect(url).world(world).await {
        Ok(store) => Ok(store.into()),
        // The server's message may contain the same secrets as the address.
        Err(error) => {
            let message = format!(
                "the PostgreSQL database that {variable} names cannot be used: {:?}",
                error.kind
            );
            Err(Error::new(ErrorKind::Storage, message))
        }
    }
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &StoreSpec, _: &Credentials, _: Arc<dyn World>) -> Result<Store, Error> {
    Err(Error::new(
        ErrorKind::Config,
        "`sessions.store` is postgres, which this program was built without",
    ))
}

fn cannot(path: &Path, error: JournalError) -> Error {
    Error::new(
        ErrorKind::Storage,
        format!("the store cannot be opened: {}", path.display()),
    )
    .with_source(error)
}

fn only_sessions(wanted: &str) -> Error {
    let message =
        format!("a store of JSON lines keeps sessions and no {wanted}; hint: take `sqlite` for it");
    Error::new(ErrorKind::Config, message)
}

impl From<Sqlite> for Store {
    fn from(store: Sqlite) -> Self {
        Self(Kind::Sqlite(store))
    }
}

impl From<JsonlJournal> for Store {
    fn from(journal: JsonlJournal) -> Self {
        Self(Kind::Jsonl(journal))
    }
}

#[cfg(feature = "postgres")]
impl From<Postgres> for Store {
    fn from(store: Postgres) -> Self {
        Self(Kind::Postgres(store))
    }
}

impl fmt::Debug for Store {
    /// Omits the address, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
