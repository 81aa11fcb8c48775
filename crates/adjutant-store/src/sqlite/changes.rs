//! Notifications about new posts and values: immediately for changes of this program, soon for changes of others.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::watch;

use super::{
    fault::Fault,
    schema::{self, Reading},
};

/// The longest time that a change of another program goes unseen, about.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// A topic that can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Posts,
    KvStores,
}

/// Publishes changes.
#[derive(Debug)]
pub(super) struct Changes {
    posts: watch::Sender<()>,
    kv_stores: watch::Sender<()>,
    /// `None` in memory, where there are no other writers.
    path: Option<PathBuf>,
    watching: Mutex<Watching>,
}

/// The number of listeners, and whether other programs are watched for them.
#[derive(Debug, Default)]
struct Watching {
    listeners: usize,
    is_running: bool,
}

/// Receives changes; other programs are watched while a listener exists.
#[derive(Debug)]
pub(super) struct Listener {
    told: watch::Receiver<()>,
    changes: Arc<Changes>,
}

/// The progress of other programs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct SeenChanges {
    posts: i64,
    kv_stores: i64,
}

impl Changes {
    /// Changes of the database in this file.
    pub(super) fn from_path(path: Option<PathBuf>) -> Self {
        Self {
            posts: watch::Sender::new(()),
            kv_stores: watch::Sender::new(()),
            path,
            watching: Mutex::default(),
        }
    }

    /// Something has changed.
    pub(super) fn tell(&self, topic: Topic) {
        self.topic(topic).send_replace(());
    }

    /// Receives the changes from now on.
    pub(super) fn listen(self: &Arc<Self>, topic: Topic) -> Listener {
        let told = self.topic(topic).subscribe();
        let mut watching = self.watching();
        watching.listeners += 1;
        if let Some(path) = self.path.clone().filter(|_| !watching.is_running) {
            let changes = Arc::clone(self);
            let started = thread::Builder::new()
                .name("sqlite-watcher".into())
                .spawn(move || changes.watch(&path));
            watching.is_running = started.is_ok();
            if let Err(error) = started {
                tracing::warn!(%error, "cannot watch a database for changes of other programs");
            }
        }
        drop(watching);
        Listener {
            told,
            changes: Arc::clone(self),
        }
    }

    /// Watches for changes of other programs, until there are no listeners.
    fn watch(&self, path: &Path) {
        let (mut db, mut seen, mut is_failing) = (None, None, false);
        while self.goes_on() {
            match look(&mut db, path) {
                Ok(None) => {}
                Ok(Some(now)) => {
                    // Changes before the first check may have been missed.
                    let before: Option<SeenChanges> = seen.replace(now);
                    if before.is_none_or(|before| before.posts != now.posts) {
                        self.tell(Topic::Posts);
                    }
                    if before.is_none_or(|before| before.kv_stores != now.kv_stores) {
                        self.tell(Topic::KvStores);
                    }
                    is_failing = false;
                }
                Err(fault) => {
                    if !is_failing {
                        tracing::warn!(?fault, "cannot look for changes of other programs");
                    }
                    (db, is_failing) = (None, true);
                }
            }
            thread::park_timeout(POLL);
        }
    }

    fn goes_on(&self) -> bool {
        let mut watching = self.watching();
        watching.is_running = watching.listeners > 0;
        watching.is_running
    }

    fn topic(&self, topic: Topic) -> &watch::Sender<()> {
        match topic {
            Topic::Posts => &self.posts,
            Topic::KvStores => &self.kv_stores,
        }
    }

    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Notes that the listener knows every change before this.
    pub(super) fn looks(&mut self) {
        self.told.mark_unchanged();
    }

    /// Waits for a change after the last look.
    pub(super) async fn wait_for_change(&mut self) {
        // The sender lives as long as the listener.
        let _ = self.told.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.changes.watching().listeners -= 1;
    }
}

/// Reads the progress, if there was a commit since the last check.
fn look(known: &mut Option<(Connection, i64)>, path: &Path) -> Result<Option<SeenChanges>, Fault> {
    let version = |db: &Connection| {
        db.prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))
    };
    if let Some((db, before)) = known {
        let now = version(db)?;
        if now == *before {
            return Ok(None);
        }
        *before = now;
        return Ok(Some(read_latest(db)?));
    }
    let db = schema::reader(path, Reading::Shared)?;
    let (now, seen) = (version(&db)?, read_latest(&db)?);
    *known = Some((db, now));
    Ok(Some(seen))
}

fn read_latest(db: &Connection) -> rusqlite::Result<SeenChanges> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'posts'), 0), \
               (SELECT coalesce(sum(newest), 0) FROM shelves)";
    db.prepare_cached(sql)?.query_row([], |row| {
        Ok(SeenChanges {
            posts: row.get(0)?,
            kv_stores: row.get(1)?,
        })
    })
}
