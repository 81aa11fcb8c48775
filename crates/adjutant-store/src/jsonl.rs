//! Sessions in files: a folder for each, its records in one file of JSON lines.
//!
//! A file is repaired only by the next owner of its log: the remains of an incomplete batch are cut off. Damage in
//! other places is reported (`Corrupt`) and never cut off: a log that is shorter than its flushed part can be read up
//! to there, and cannot be continued. Ownership works between processes of one machine, with file locks of its
//! kernel: several machines must not share the folder.

mod blobs;
mod flushed;
mod fold;
mod line;
mod meta;
mod name;
mod owner;
mod place;
mod posts;
mod reader;
mod scan;
mod tend;
mod writer;

use std::{path::Path, sync::Arc};

use adjutant_core::{
    Folded, GcReport, Journal, JournalError, JournalErrorKind, Log, LogId, LogInfo, LogPage,
    LogQuery, Owner, Post, PostNo, PostStream, Posted, RecordStream, Seq, SessionMeta,
    StoredStream,
};
use adjutant_llm::{SystemWorld, World};
use async_trait::async_trait;

use crate::Exposed;

use self::{
    place::JournalFolder,
    writer::{JsonlLog, Writer},
};

/// A journal in a folder: one file of JSON lines for each session. Clones share it.
///
/// ```
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let folder = folder.path();
/// let journal = adjutant_store::JsonlJournal::open(folder)?;
/// // Agent::new(model).journal(journal)
/// # Ok::<(), adjutant_core::JournalError>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonlJournal {
    place: JournalFolder,
    world: Arc<dyn World>,
    exposed: Option<Arc<Exposed>>,
}

impl JsonlJournal {
    /// Opens the journal in this folder, which is created if it does not exist. New files are private to their owner.
    ///
    /// # Errors
    /// `Io` if the folder does not exist and cannot be created.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, JournalError> {
        let place = JournalFolder::new(folder.as_ref());
        place::make_folder(folder.as_ref())?;
        place.empty_trash();
        let exposed = Exposed::among([folder.as_ref().to_owned()]).map(Arc::new);
        Ok(Self {
            place,
            world: Arc::new(SystemWorld),
            exposed,
        })
    }

    /// Returns the folder if it was there before and others on the machine may enter it.
    pub fn exposure(&self) -> Option<&Exposed> {
        self.exposed.as_deref()
    }

    /// Sets the clock for the creation times of logs.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Does something with the files on a thread that may wait.
    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&JournalFolder) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let place = self.place.clone();
        off_thread(move || act(&place)).await
    }
}

/// Runs blocking disk work on a separate thread; it completes even if its future is dropped.
async fn off_thread<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    tokio::task::spawn_blocking(act)
        .await
        .unwrap_or_else(|error| {
            let message = "the thread that works on the files ended early";
            Err(JournalError::new(JournalErrorKind::Io, message).with_source(error))
        })
}

#[async_trait]
impl Journal for JsonlJournal {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let (log, owner, now_ms) = (log.clone(), owner.clone(), self.world.now_ms());
        let writer = self
            .with(move |place| Writer::own(place, &log, &owner, now_ms))
            .await?;
        Ok(Box::new(JsonlLog::new(writer)))
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        reader::records(self.place.clone(), log.clone(), after)
    }

    fn read_stored(&self, log: &LogId, after: Seq) -> StoredStream {
        reader::read_stored(self.place.clone(), log.clone(), after)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<PostNo, JournalError> {
        let log = log.clone();
        self.with(move |place| posts::post(place, &log, post)).await
    }

    fn posts(&self, log: &LogId, after: PostNo) -> Option<PostStream> {
        Some(posts::watch(self.place.clone(), log.clone(), after))
    }

    async fn read_posts(&self, log: &LogId, after: PostNo) -> Result<Vec<Posted>, JournalError> {
        let log = log.clone();
        self.with(move |place| posts::read_posts(place, &log, after))
            .await
    }

    async fn info(&self, log: &LogId) -> Result<LogInfo, JournalError> {
        let log = log.clone();
        self.with(move |place| meta::info(place, &log)).await
    }

    async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        let query = query.clone();
        self.with(move |place| meta::list(place, &query)).await
    }

    async fn describe(&self, log: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        let log = log.clone();
        self.with(move |place| meta::describe(place, &log, about))
            .await
    }

    async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        let (from, to) = (from.clone(), to.clone());
        self.with(move |place| tend::rename(place, &from, &to))
            .await
    }

    async fn delete(&self, log: &LogId) -> Result<(), JournalError> {
        let log = log.clone();
        self.with(move |place| tend::delete(place, &log)).await
    }

    async fn sweep(&self) -> Result<GcReport, JournalError> {
        self.with(blobs::sweep).await
    }

    async fn load_fold(&self, log: &LogId) -> Result<Option<Folded>, JournalError> {
        let log = log.clone();
        self.with(move |place| fold::read(&place.log(&log))).await
    }
}
