//! A board of tasks on a key-value store: everyone with access to the store shares the board, in one process or in
//! many.
//!
//! A worker claims a task for a limited time, its lease, renews the lease with heartbeats, and finishes the task with
//! evidence. When it dies, the lease expires and another worker can take the task. One table, [`TaskStatus::after`],
//! defines the permitted actions for each status.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use adjutant_agent::kv::MemoryKvStore;
//! use adjutant_orchestration::board::{Board, Finish, NewTask, TaskStatus};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
//! let board = Board::new(Arc::new(MemoryKvStore::default()));
//! let dig = board.create(NewTask::new("Dig a hole")).await?;
//! board.create(NewTask::new("Plant a tree").after(dig.id.clone())).await?;
//!
//! let mine = board.claim_next("gardener-1", Duration::from_secs(60)).await?.expect("one task is ready");
//! board.finish(&mine.id, "gardener-1", Finish::success("It is a metre deep.")).await?;
//! let next = board.claim_next("gardener-2", Duration::from_secs(60)).await?.expect("now the other one is, too");
//! assert_eq!((&*next.title, next.status), ("Plant a tree", TaskStatus::InProgress));
//! # Ok::<(), adjutant_orchestration::Error>(())
//! # }).expect("the tree is planted");
//! ```

mod bounds;
mod claim;
mod close;
mod edit;
mod graph;
mod keys;
mod lapse;
mod list;
mod new;
mod show;
mod table;
mod task;
mod tools;
mod watch;
mod window;

use std::sync::Arc;

use adjutant_agent::kv::{Change, KvStore, KvStoreError, KvStoreErrorKind, Version};
use adjutant_llm::{SystemWorld, World};

use self::window::BoardShared;
pub use self::{
    bounds::{
        MAX_AGENT_BYTES, MAX_CRITERIA, MAX_DEPENDENCIES, MAX_DESCRIPTION_BYTES, MAX_KEY_BYTES,
        MAX_METADATA_BYTES, MAX_RESULT_BYTES, MAX_TEXT_BYTES, MAX_TITLE_BYTES,
    },
    list::{Blocker, ListedTask, MAX_PAGE, TaskPage, TaskQuery},
    new::{Finish, NewTask, TaskEdit},
    table::Action,
    task::{Evidence, Lease, Task, TaskId, TaskStatus},
    tools::BoardTools,
    watch::{TaskChange, TaskChanges},
};
use crate::{Error, ErrorKind};

/// The longest time that a task may be claimed for at once.
pub const MAX_LEASE: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 60 * 60);
/// The default number of consecutive workers that can lose a task before it fails.
pub const MAX_LOST: u32 = 10;

/// The number of attempts for a change that conflicts with others.
const MAX_TRIES: u32 = 1_000;

/// A board of tasks. Clones share their cache, and all boards on one key-value store share their tasks.
///
/// The key-value store must contain only the board. Times come from the `World`: the clocks of several processes
/// should agree to within a small part of a lease.
///
/// Invariant: a task's place in an index (ready, claimed) is a function of its record and changes in the same write,
/// which fails if the record has changed: no task is claimed twice, and none is lost between two states.
#[derive(Debug, Clone)]
pub struct Board {
    kv: Arc<dyn KvStore>,
    world: Arc<dyn World>,
    shared: Arc<BoardShared>,
    max_lost: u32,
}

/// A task as it was read.
#[derive(Debug, Clone)]
struct VersionedTask {
    task: Task,
    version: Version,
}

impl Board {
    /// The board on a key-value store, by the clock of the system.
    pub fn new(kv: Arc<dyn KvStore>) -> Self {
        let world = Arc::new(SystemWorld);
        Self {
            kv,
            world,
            shared: Arc::default(),
            max_lost: MAX_LOST,
        }
    }

    /// Sets clock, ids and chance.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Sets the number of consecutive workers that can lose a task before it fails; at least 1, by default
    /// [`MAX_LOST`].
    #[must_use]
    pub fn max_lost(self, max_lost: u32) -> Self {
        Self {
            max_lost: max_lost.max(1),
            ..self
        }
    }

    /// A task.
    ///
    /// # Errors
    /// `Missing`, `Store`.
    pub async fn get(&self, id: &TaskId) -> Result<Task, Error> {
        Ok(self.read(id).await?.task)
    }

    async fn read(&self, id: &TaskId) -> Result<VersionedTask, Error> {
        let missing = || {
            Error::new(
                ErrorKind::Missing,
                format!("there is no task {}", id.to_display_string()),
            )
        };
        self.find(id).await?.ok_or_else(missing)
    }

    async fn find(&self, id: &TaskId) -> Result<Option<VersionedTask>, Error> {
        if !id.is_possible() {
            return Ok(None);
        }
        let Some(item) = self.kv.get(&keys::task(id)).await? else {
            return Ok(None);
        };
        Ok(Some(VersionedTask {
            task: task::decode(&item.value)?,
            version: item.version,
        }))
    }

    /// Changes a task based on its current state, again after a conflict; a change that returns `None` has no effect.
    async fn change(
        &self,
        id: &TaskId,
        edit: impl Fn(&mut Task, u64) -> Result<(), Error> + Send + Sync,
    ) -> Result<Task, Error> {
        for _ in 0..MAX_TRIES {
            let kept = self.read(id).await?;
            let mut task = kept.task.clone();
            edit(&mut task, self.world.now_ms())?;
            if task == kept.task || self.replace(&kept, &mut task).await? {
                return Ok(task);
            }
        }
        Err(busy(id))
    }

    /// Replaces the version of a task that was read; returns whether it was unchanged.
    async fn replace(&self, before: &VersionedTask, after: &mut Task) -> Result<bool, Error> {
        after.updated_ms = self.world.now_ms().max(before.task.updated_ms);
        self.write(keys::replace(before, after)?).await
    }

    /// Writes; returns whether the conditions were met.
    async fn write(&self, changes: Vec<Change>) -> Result<bool, Error> {
        match self.kv.write(changes).await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_conflict(error: &KvStoreError) -> bool {
    matches!(error.kind, KvStoreErrorKind::Conflict { .. })
}

fn busy(id: &TaskId) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("task {id} is changed by others all the time"),
    )
}
