//! Requests of a scope to the session that keeps the conversation of a child.

use std::sync::Arc;

use adjutant_core::{Answered, Error, LogId, Run, RunResult, Tally};
use adjutant_llm::{Entry, Transcript};
use async_trait::async_trait;

use super::SessionWriter;
use crate::{begin::Begin, inbox::Inbox, mailbox::Mailbox, queue::Queues, setup::Setup};

/// Opens the conversation of a child in a log, with the fold of its thread.
pub(crate) type OpenChild = fn(LogId, Run) -> Arc<dyn ChildSession>;

/// The conversation of a child.
pub(crate) trait ChildSession: Send + Sync {
    /// Returns its complete conversation, as of the last run that ended.
    fn history(&self) -> Transcript;

    /// Its queues.
    fn queue(&self) -> Arc<Queues>;

    /// Returns the usage of the open run, if one is open and has no driver.
    fn open_tally(&self) -> Option<Tally>;

    /// Acquires the right to drive it.
    ///
    /// # Errors
    /// `Busy` if another caller has claimed it.
    fn claim(self: Arc<Self>) -> Result<Box<dyn ChildDrive>, Error>;

    /// Takes the log back; the session may stay.
    fn take_back(&self);
}

/// The right to drive the conversation of a child.
#[async_trait]
pub(crate) trait ChildDrive: Send {
    /// Returns the answers that the open run was given; `None` if no run is open.
    fn answers(&mut self, known: &[Answered]) -> Option<Vec<Answered>>;

    /// Returns the usage of the newest run so far.
    fn tally(&mut self) -> Tally;

    /// Starts the conversation with these entries, if it is empty.
    ///
    /// # Errors
    /// The error while recording them.
    async fn seed(
        &mut self,
        setup: &Arc<Setup>,
        writer: SessionWriter,
        entries: Vec<Entry>,
    ) -> Result<(), Error>;

    /// Lends the log.
    fn lend(&mut self, writer: SessionWriter);

    /// Performs one drive of it.
    async fn perform(
        self: Box<Self>,
        setup: Arc<Setup>,
        begin: Begin,
        mailbox: Arc<Mailbox>,
        inbox: Arc<Inbox>,
    ) -> Result<RunResult, Error>;
}
