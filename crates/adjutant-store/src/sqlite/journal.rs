//! Sessions in SQLite: each method calls one of the parts below, off the caller's thread.

mod append;
mod due;
mod inbox;
mod log;
mod own;
mod place;
mod read;
mod sessions;

use std::sync::Arc;

use adjutant_core::{
    Backlog, DueLog, DueWork, Folded, GcReport, Journal, JournalError, Log, LogId, LogInfo,
    LogPage, LogQuery, Owner, Post, PostNo, PostStream, Posted, RecordStream, Seq, SessionMeta,
    StoredStream,
};
use adjutant_llm::World;
use async_trait::async_trait;

use self::log::SqliteLog;
use super::{changes::Topic, fault::Fault, store::Store, writer::Order};

/// The sessions of a database; clones share it.
#[derive(Debug, Clone)]
pub struct SqliteJournal {
    pub(super) store: Arc<Store>,
    pub(super) world: Arc<dyn World>,
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        log.check()?;
        let failed = |fault: Fault| fault.journal(|| format!("cannot own log {:?}", log.0));
        let id = log.clone();
        self.store
            .read(move |db| read::check_end(db, &id))
            .await
            .map_err(failed)?;
        let claim = own::Claim {
            log: log.clone(),
            owner: owner.clone(),
            now_ms: self.world.now_ms(),
        };
        let (owners, store) = (Arc::clone(&self.store.owners), Arc::clone(&self.store));
        let own = move |db: &rusqlite::Connection| own::own(db, &owners, &claim);
        let id = log.clone();
        let owned = self
            .store
            .write_then(Order::lazy(), own, |owned| SqliteLog::new(store, id, owned))
            .await;
        Ok(Box::new(owned.map_err(failed)?))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        read::stream(Arc::clone(&self.store), log, after, |record, before| {
            record.open(before)
        })
    }

    fn read_stored(&self, log: &LogId, after: Seq) -> StoredStream {
        read::stream(Arc::clone(&self.store), log, after, |record, _| Ok(record))
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        let failed = |fault: Fault| fault.journal(|| format!("cannot post to log {:?}", log.0));
        let json = super::json::write(&post, "the post").map_err(failed)?;
        let order = Order {
            bytes: json.len(),
            topic: Some(Topic::Posts),
            ..Order::now()
        };
        let id = log.clone();
        self.store
            .write(order, move |db| inbox::post(db, &id, &json))
            .await
            .map_err(failed)
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        Some(inbox::stream(Arc::clone(&self.store), log.clone(), after))
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        let id = log.clone();
        let read = self
            .store
            .read(move |db| inbox::read_posts(db, &id, after))
            .await;
        read.map_err(|fault| fault.journal(|| format!("cannot read the posts of log {:?}", log.0)))
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        let (id, owners) = (log.clone(), Arc::clone(&self.store.owners));
        let read = self
            .store
            .read(move |db| sessions::info(db, &owners, &id))
            .await;
        read.map_err(|fault| fault.journal(|| format!("cannot tell of log {:?}", log.0)))
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        let (query, owners) = (query.clone(), Arc::clone(&self.store.owners));
        let read = self
            .store
            .read(move |db| sessions::list(db, &owners, &query))
            .await;
        read.map_err(|fault| fault.journal(|| "cannot list logs".to_owned()))
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        let id = log.clone();
        let done = self
            .store
            .write(Order::now(), move |db| sessions::describe(db, &id, &about))
            .await;
        done.map_err(|fault| fault.journal(|| format!("cannot describe log {:?}", log.0)))
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        to.check()?;
        let (old, new, owners) = (from.clone(), to.clone(), Arc::clone(&self.store.owners));
        let done = self
            .store
            .write(Order::now(), move |db| {
                sessions::rename(db, &owners, &old, &new)
            })
            .await;
        done.map_err(|fault| {
            fault.journal(|| format!("cannot rename log {:?} to {:?}", from.0, to.0))
        })
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        let (id, owners) = (log.clone(), Arc::clone(&self.store.owners));
        let done = self
            .store
            .write(Order::now(), move |db| sessions::delete(db, &owners, &id))
            .await;
        done.map_err(|fault| fault.journal(|| format!("cannot delete log {:?}", log.0)))
    }

    async fn sweep(&self) -> Result<GcReport, JournalError> {
        let done = self.store.write(Order::lazy(), sessions::sweep).await;
        done.map_err(|fault| fault.journal(|| "cannot sweep attachments".to_owned()))
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        let id = log.clone();
        let read = self.store.read(move |db| read::load_fold(db, &id)).await;
        read.map_err(|fault| fault.journal(|| format!("cannot read the fold of log {:?}", log.0)))
    }
}

#[async_trait]
impl DueWork for SqliteJournal {
    async fn due(&self, owner: &Owner, most: usize) -> Result<Vec<DueLog>, JournalError> {
        let (owner, now_ms) = (owner.clone(), self.world.now_ms());
        let failed = |fault: Fault| fault.journal(|| "cannot take due logs".to_owned());
        let owners = Arc::clone(&self.store.owners);
        if !self
            .store
            .read(move |db| due::is_any(db, &owners, now_ms))
            .await
            .map_err(failed)?
        {
            return Ok(Vec::new());
        }
        let (owners, store) = (Arc::clone(&self.store.owners), Arc::clone(&self.store));
        let claim = move |db: &rusqlite::Connection| due::claim(db, &owners, &owner, now_ms, most);
        let taken = move |claimed: Vec<due::Claimed>| {
            let due = |(info, newest_post, lost, owned): due::Claimed| {
                let log = SqliteLog::new(Arc::clone(&store), info.log.clone(), owned);
                DueLog {
                    info,
                    newest_post,
                    lost,
                    log: Box::new(log),
                }
            };
            claimed.into_iter().map(due).collect()
        };
        self.store
            .write_then(Order::lazy(), claim, taken)
            .await
            .map_err(failed)
    }

    async fn until_due(&self) {
        self.store
            .changes
            .listen(Topic::Posts)
            .wait_for_change()
            .await;
    }

    async fn pass_over(&self, log: &LogId, upto: PostNo) -> Result<(), JournalError> {
        let id = log.clone();
        let done = self
            .store
            .write(Order::lazy(), move |db| due::pass_over(db, &id, upto))
            .await;
        done.map_err(|fault| fault.journal(|| format!("cannot pass over posts to log {:?}", log.0)))
    }

    async fn set_aside(&self, log: &LogId, why: &str) -> Result<(), JournalError> {
        let (id, why) = (log.clone(), why.to_owned());
        let done = self
            .store
            .write(Order::now(), move |db| due::set_aside(db, &id, Some(&why)))
            .await;
        done.map(drop)
            .map_err(|fault| fault.journal(|| format!("cannot set log {:?} aside", log.0)))
    }

    async fn retry(&self, log: &LogId) -> Result<bool, JournalError> {
        let id = log.clone();
        let done = self
            .store
            .write(Order::now(), move |db| due::set_aside(db, &id, None))
            .await;
        done.map_err(|fault| fault.journal(|| format!("cannot drive log {:?} again", log.0)))
    }

    async fn backlog(&self) -> Result<Backlog, JournalError> {
        let (owners, now_ms) = (Arc::clone(&self.store.owners), self.world.now_ms());
        let read = self
            .store
            .read(move |db| due::backlog(db, &owners, now_ms))
            .await;
        read.map_err(|fault| fault.journal(|| "cannot count due logs".to_owned()))
    }
}
