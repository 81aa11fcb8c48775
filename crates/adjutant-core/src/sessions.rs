//! Session management: list, fork, compare, check, show and move sessions. Nothing here runs an agent.

mod chain;
mod diff;
mod explain;
mod export;
mod fields;
mod file;
mod fork;
mod half;
mod import;
mod left;
mod short;
mod show;
mod tree;
mod verify;
mod words;

use std::sync::Arc;

use adjutant_llm::{SystemWorld, World};
use futures_util::StreamExt;

use self::half::Half;

pub use self::{
    diff::{Diff, DiffLine},
    export::Exported,
    fields::Field,
    left::OpenRun,
    show::{ShownKind, ShownPage, ShownStream, TimelineItem},
    tree::{Branch, SessionTree},
    verify::Verified,
};
use crate::{
    journal::{
        GcReport, Journal, JournalError, JournalErrorKind, LogId, LogInfo, LogPage, LogQuery,
        SessionMeta,
    },
    number::Seq,
    run::Run,
};

/// The number of labels that a session may have.
pub const MAX_LABELS: usize = 64;
/// The number of bytes that a label may have.
pub const MAX_LABEL_BYTES: usize = 256;
/// The number of bytes that a title may have, and the name of an agent.
pub const MAX_TITLE_BYTES: usize = 4096;

/// The sessions of a journal.
///
/// New sessions are created under a hidden name and renamed when they are complete: no partial session is ever
/// visible. [`sweep`](Sessions::sweep) removes the remains of a crash.
///
/// # Example
/// ```
/// use std::sync::Arc;
///
/// use adjutant_agent::{Agent, LogId, MemoryJournal, Seq, sessions::Sessions};
/// use adjutant_llm::{Script, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
/// let journal = MemoryJournal::default();
/// let agent = Agent::new(ScriptedModel::new([Script::new().text("Hello.")])).journal(journal.clone());
/// agent.run("Hi.").await?;
///
/// let sessions = Sessions::new(Arc::new(journal));
/// let fork = LogId::from("another try");
/// sessions.fork(agent.session_id(), Some(Seq(1)), &fork).await?;
/// let diff = sessions.diff(agent.session_id(), &fork).await?;
/// assert_eq!((diff.shared, diff.beyond[1]), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).expect("it forks");
/// ```
#[derive(Debug, Clone)]
pub struct Sessions {
    journal: Arc<dyn Journal>,
    world: Arc<dyn World>,
}

impl Sessions {
    /// The sessions of this journal.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            world: Arc::new(SystemWorld),
        }
    }

    /// Returns the journal that keeps them.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Sets clock and ids.
    #[must_use]
    pub fn world(self, world: impl World + 'static) -> Self {
        Self {
            world: Arc::new(world),
            ..self
        }
    }

    /// Creates an empty session with this description.
    ///
    /// # Errors
    /// `Exists`, `Invalid` if the name or the description is not valid, `Unsupported`, `Io`.
    pub async fn create(&self, id: &LogId, about: SessionMeta) -> Result<LogInfo, JournalError> {
        check_about(&about)?;
        let half = Half::new(self, id).await?;
        half.end(Ok(about), id).await
    }

    /// Returns the sessions, one page at a time, the last changed first. A page may contain fewer sessions than its
    /// limit without being the last one.
    ///
    /// # Errors
    /// `Unsupported`, `Io`.
    pub async fn list(&self, query: &LogQuery) -> Result<LogPage, JournalError> {
        let mut page = self.journal.list(query).await?;
        page.logs.retain(|info| !half::is_half(&info.log));
        Ok(page)
    }

    /// Renames a session; its forks are updated.
    ///
    /// # Errors
    /// `Missing`, `Exists`, `Owned` while the session is in use, `Invalid`, `Unsupported`, `Io`.
    pub async fn rename(&self, from: &LogId, to: &LogId) -> Result<(), JournalError> {
        half::check_name(to)?;
        self.journal.rename(from, to).await
    }

    /// Deletes a session; its forks stay whole.
    ///
    /// # Errors
    /// `Missing`, `Owned` while the session is in use, `Unsupported`, `Io`.
    pub async fn delete(&self, id: &LogId) -> Result<(), JournalError> {
        self.journal.delete(id).await
    }

    /// Sets a session's title; an empty one removes it. Of two changes at the same moment, one may be lost.
    ///
    /// # Errors
    /// `Missing`, `Invalid` if it is longer than [`MAX_TITLE_BYTES`], `Unsupported`, `Io`.
    pub async fn title(&self, id: &LogId, text: &str) -> Result<(), JournalError> {
        let about = self.journal.info(id).await?.about;
        let title = (!text.is_empty()).then(|| Arc::from(text));
        self.describe(id, SessionMeta { title, ..about }).await
    }

    /// Adds labels to a session, and removes others. Of two changes at the same moment, one may be lost.
    ///
    /// # Errors
    /// `Missing`, `Invalid` if a label is empty, longer than [`MAX_LABEL_BYTES`], or one of more than [`MAX_LABELS`],
    /// `Unsupported`, `Io`.
    pub async fn label(
        &self,
        id: &LogId,
        add: &[&str],
        remove: &[&str],
    ) -> Result<(), JournalError> {
        let mut about = self.journal.info(id).await?.about;
        about.labels.retain(|label| !remove.contains(&&**label));
        about
            .labels
            .extend(add.iter().map(|label| Arc::from(*label)));
        self.describe(id, about).await
    }

    /// The conversation of a session after a record; `Seq(u64::MAX)` for all of it. Nothing is run.
    ///
    /// # Errors
    /// `Missing`, `Corrupt` if the log cannot be read or does not fold, `Version`, `Io`.
    pub async fn transcript(&self, id: &LogId, until: Seq) -> Result<Run, JournalError> {
        let (mut run, mut first) = (Run::default(), None);
        let mut records = self.journal.read(id, Seq(0));
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            if stamped.seq > until {
                break;
            }
            if *first.get_or_insert_with(|| stamped.thread.clone()) == stamped.thread {
                run.apply(&stamped)
                    .map_err(|error| chain::fold_error(id, error))?;
            }
        }
        Ok(run)
    }

    /// Removes attachments without references, and remainders of sessions whose creation crashed.
    ///
    /// # Errors
    /// `Io`.
    pub async fn sweep(&self) -> Result<GcReport, JournalError> {
        half::sweep(self).await?;
        self.journal.sweep().await
    }

    async fn describe(&self, id: &LogId, about: SessionMeta) -> Result<(), JournalError> {
        check_about(&about)?;
        self.journal.describe(id, about).await
    }
}

fn check_about(about: &SessionMeta) -> Result<(), JournalError> {
    let titled = about.title.as_ref().map_or(0, |title| title.len());
    if titled > MAX_TITLE_BYTES {
        return Err(invalid(format!(
            "the title has {titled} bytes; it may have {MAX_TITLE_BYTES}"
        )));
    }
    let named = about.agent.as_ref().map_or(0, |agent| agent.len());
    if named > MAX_TITLE_BYTES {
        return Err(invalid(format!(
            "the name of the agent has {named} bytes; it may have {MAX_TITLE_BYTES}"
        )));
    }
    if let Some((parent, _)) = &about.parent {
        parent.check()?;
    }
    if about.labels.len() > MAX_LABELS {
        return Err(invalid(format!(
            "there are {} labels; there may be {MAX_LABELS}",
            about.labels.len()
        )));
    }
    match about
        .labels
        .iter()
        .find(|label| label.is_empty() || label.len() > MAX_LABEL_BYTES)
    {
        Some(label) => Err(invalid(format!(
            "a label has {} bytes; it may have from 1 to {MAX_LABEL_BYTES}",
            label.len()
        ))),
        None => Ok(()),
    }
}

fn invalid(why: impl Into<Arc<str>>) -> JournalError {
    JournalError::new(JournalErrorKind::Invalid, why)
}

fn corrupt(why: impl Into<Arc<str>>) -> JournalError {
    JournalError::new(JournalErrorKind::Corrupt, why)
}
