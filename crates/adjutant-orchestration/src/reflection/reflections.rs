//! The reflections of a storage: recorded without secrets, recalled by a search, evaluated by outcomes.

use std::{path::PathBuf, sync::Arc};

use adjutant_agent::{
    Agent,
    kv::{KvStore, MemoryKvStore},
};
use adjutant_llm::{Entry, SystemWorld, World};

use super::{
    Directory, Failed, Learning, Listing, OnKvStore, Outcome, Recalling, Redactor, Reflection,
    ReflectionChange, ReflectionId, ReflectionStore, name, rank, recalling, render,
};
use crate::{Error, ErrorKind, text};

/// The largest number of reflections that are recalled for a task.
pub const MAX_RECALLED: usize = 5;
/// The largest number of bytes of reflections in a message, including tags.
pub const MAX_RENDERED_BYTES: usize = 32 * 1024;
/// The largest number of reflections in one storage; beyond it, the least helpful ones are removed.
pub const MAX_REFLECTIONS: usize = 1_000;
/// The largest number of bytes of a task that are kept.
pub const MAX_TASK_BYTES: usize = 4 * 1024;
/// The largest number of bytes of a summary that are kept.
pub const MAX_SUMMARY_BYTES: usize = 8 * 1024;
/// The largest number of bytes of caveats that are kept.
pub const MAX_CAVEATS_BYTES: usize = 4 * 1024;
/// The largest number of file names that are kept.
pub const MAX_FILES: usize = 50;
/// The largest number of bytes of a file name that are kept.
const MAX_PATH_BYTES: usize = 256;
/// The largest number of bytes of an agent's name that are kept.
const MAX_AGENT_BYTES: usize = 128;

/// The reflections of a place; cheap to clone.
///
/// # Example
/// ```
/// use adjutant_orchestration::reflection::{Failed, Outcome, Reflections};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let reflections = Reflections::in_memory();
/// let failed = Failed {
///     agent: "coder".into(),
///     task: "Build the parser crate".into(),
///     summary: "The build needs the nightly toolchain.".into(),
///     ..Failed::default()
/// };
/// reflections.record(&failed).await?;
/// let found = reflections.recall("build the parser again").await?;
/// assert!(Reflections::render(&found).contains("nightly toolchain"));
/// let ids: Vec<_> = found.into_iter().map(|it| it.id).collect();
/// reflections.outcome(&ids, Outcome::Helped).await?;
/// # Ok::<(), adjutant_orchestration::Error>(())
/// # }).expect("memory does not fail");
/// ```
#[derive(Debug, Clone)]
pub struct Reflections {
    store: Arc<dyn ReflectionStore>,
    world: Arc<dyn World>,
    redactor: Redactor,
}

impl Reflections {
    /// The reflections that this store keeps.
    pub fn new(store: impl ReflectionStore + 'static) -> Self {
        Self {
            store: Arc::new(store),
            world: Arc::new(SystemWorld),
            redactor: Redactor::new(),
        }
    }

    /// The reflections in a directory, one markdown file each; it is made when the first one is recorded.
    pub fn in_dir(path: impl Into<PathBuf>) -> Self {
        Self::new(Directory::new(path))
    }

    /// The reflections on a key-value store, which several processes may share.
    pub fn on_kv(kv: Arc<dyn KvStore>) -> Self {
        Self::new(OnKvStore::new(kv))
    }

    /// Reflections that live as long as the program.
    pub fn in_memory() -> Self {
        Self::on_kv(Arc::new(MemoryKvStore::default()))
    }

    /// Sets the clock.
    #[must_use]
    pub fn world(self, world: Arc<dyn World>) -> Self {
        Self { world, ..self }
    }

    /// Adds texts that are never written, besides whatever looks like a secret.
    #[must_use]
    pub fn redact(self, values: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        Self {
            redactor: self.redactor.values(values),
            ..self
        }
    }

    /// The reflections that may help with a task, best first: at most [`MAX_RECALLED`], with [`MAX_RENDERED_BYTES`]
    /// in total.
    ///
    /// A reflection must share two significant words with the task. They are ranked by relevance (BM25) times
    /// [`Reflection::helpfulness`]; of equal ones, the newest comes first.
    ///
    /// # Errors
    /// `Store` if they cannot be read, `TimedOut`.
    pub async fn recall(&self, task: &str) -> Result<Vec<Reflection>, Error> {
        let listing = self.store.all().await?;
        for skipped in &listing.skipped {
            tracing::warn!("a reflection is passed over: {skipped}");
        }
        let best = rank::best(task, listing.reflections, MAX_RECALLED);
        Ok(render::fitting(best, MAX_RENDERED_BYTES))
    }

    /// Keeps a note on a failure, without what looks like a secret in it, each part of bounded length.
    ///
    /// The same note of the same agent is stored once: the existing name is returned.
    ///
    /// # Errors
    /// `Invalid` if it names no task, `Store` if it cannot be written, `Full`, `TimedOut`.
    pub async fn record(&self, failed: &Failed) -> Result<ReflectionId, Error> {
        let failed = self.clean(failed);
        if failed.task.is_empty() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a reflection must say what was to be done",
            ));
        }
        let known = self.store.all().await?.reflections;
        let is_same = |it: &&Reflection| {
            (
                &it.agent,
                &it.task,
                &it.summary,
                &it.caveats,
                &it.files_modified,
            ) == (
                &failed.agent,
                &failed.task,
                &failed.summary,
                &failed.caveats,
                &failed.files_modified,
            )
        };
        if let Some(same) = known.iter().find(is_same) {
            return Ok(same.id.clone());
        }
        self.make_room(known).await?;
        let now_ms = self.world.now_ms();
        let id = name::first(&failed.agent, now_ms);
        self.store.add(&Reflection::new(id, failed, now_ms)).await
    }

    /// Counts the outcome of a run that received these reflections, each once; removed ones are skipped.
    ///
    /// # Errors
    /// The first of `Conflict`, `TimedOut` and `Store`; the others are counted all the same.
    pub async fn outcome(&self, ids: &[ReflectionId], outcome: Outcome) -> Result<(), Error> {
        let mut failed = None;
        for (at, id) in ids.iter().enumerate() {
            if ids.iter().take(at).any(|before| before == id) {
                continue;
            }
            if let Err(error) = self
                .store
                .change(id, ReflectionChange::Count(outcome))
                .await
            {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// All reflections, newest first, including dropped ones; and the skipped entries.
    ///
    /// # Errors
    /// `Store` if they cannot be read, `TimedOut`.
    pub async fn list(&self) -> Result<Listing, Error> {
        self.store.all().await
    }

    /// Reflections in the form for a model, in `<prior_reflections>`; empty without any.
    ///
    /// Never more than [`MAX_RENDERED_BYTES`]: the rest is omitted or cut, with a note. Text that looks like a tag of
    /// the framework is escaped.
    pub fn render(reflections: &[Reflection]) -> String {
        render::all(reflections, MAX_RENDERED_BYTES)
    }

    /// The reflections that entries show, as [`recalling`](Reflections::recalling) placed them.
    pub fn find_shown<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<ReflectionId> {
        render::find_shown(entries, recalling::KIND)
    }

    /// Lets an agent learn from its failures: relevant lessons are added next to each new message, and every run is
    /// evaluated.
    ///
    /// The same as adding [`recalling`](Reflections::recalling) and [`learning`](Reflections::learning). A failure
    /// with reflections is a warning, never the end of a run.
    pub fn install(&self, agent: Agent) -> Agent {
        agent.effect(self.recalling()).middleware(self.learning())
    }

    /// The effect that adds reflections, as a recorded entry next to the message that they may help with.
    pub fn recalling(&self) -> Recalling {
        Recalling::new(self.clone())
    }

    /// The middleware that counts the outcomes of runs with reflections, and records failures.
    pub fn learning(&self) -> Learning {
        Learning::new(self.clone())
    }

    /// Returns the parts of a failure that may be written.
    fn clean(&self, failed: &Failed) -> Failed {
        let part = |part: &str, max: usize| -> Arc<str> {
            // Redacted first: a secret that is cut in two does not look like one.
            let clean = self.redactor.redact(part).replace("\r\n", "\n");
            text::clip_text(clean.trim(), max).into()
        };
        let caveats = failed
            .caveats
            .as_deref()
            .map(|caveats| part(caveats, MAX_CAVEATS_BYTES));
        let files = failed
            .files_modified
            .iter()
            .map(|file| text::line(&self.redactor.redact(file), MAX_PATH_BYTES));
        let files = files.filter(|file| !file.is_empty()).take(MAX_FILES);
        Failed {
            agent: text::line(&self.redactor.redact(&failed.agent), MAX_AGENT_BYTES).into(),
            task: part(&failed.task, MAX_TASK_BYTES),
            summary: part(&failed.summary, MAX_SUMMARY_BYTES),
            caveats: caveats.filter(|caveats| !caveats.is_empty()),
            files_modified: files.map(Arc::from).collect(),
        }
    }

    /// Removes the least helpful ones, and of equal ones the oldest, until there is space for one more.
    async fn make_room(&self, mut known: Vec<Reflection>) -> Result<(), Error> {
        let Some(too_many) = (known.len() + 1).checked_sub(MAX_REFLECTIONS) else {
            return Ok(());
        };
        let rank = |it: &Reflection| (!it.is_dropped(), it.helpfulness());
        known.sort_by(|one, other| {
            let ((kept, helps), (other_kept, other_helps)) = (rank(one), rank(other));
            let by_use = kept.cmp(&other_kept).then(helps.total_cmp(&other_helps));
            by_use.then(one.created_ms.cmp(&other.created_ms))
        });
        for it in known.iter().take(too_many) {
            self.store.change(&it.id, ReflectionChange::Remove).await?;
        }
        Ok(())
    }
}
