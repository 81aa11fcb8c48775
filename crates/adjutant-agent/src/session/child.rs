//! The session of an agent under another one: its log is lent to it while it is at work.

use std::sync::Arc;

use adjutant_llm::Entry;
use async_trait::async_trait;
use futures_util::stream;

use super::{Claim, Core, Session};
use crate::{
    Answered, Error, Journal, JournalError, JournalErrorKind, LocalPort, Log, LogId, Owner, Record, RecordStream, Run,
    Seq, Setup, commit, mailbox::Mailbox, run::Tally, scope::SessionWriter,
};

/// The journal of who has none: the log belongs to the first agent.
#[derive(Debug)]
struct Lent;

impl Session {
    /// The session of an agent under another one, with the fold of its thread.
    pub(crate) fn of_child(log: LogId, run: Run) -> Self {
        let session = Self::new(log, Arc::new(Lent));
        session.show(run.history());
        if let Ok(mut core) = session.core.try_lock() {
            core.run = run;
        }
        session
    }

    /// What the run that is open used, if one is and nobody is at it.
    pub(crate) fn open_tally(&self) -> Option<Tally> {
        let core = self.core.try_lock().ok()?;
        core.run.is_open().then(|| core.run.tally())
    }

    /// Takes the log back; the session may stay.
    pub(crate) fn take_back(&self) {
        if let Ok(mut core) = self.core.try_lock() {
            core.log = None;
        }
    }
}

impl Claim {
    /// The session's own part, if nobody is in the way.
    fn core(&mut self) -> Option<&mut Core> {
        match self {
            Claim::Now(core) => Some(core),
            Claim::Soon(_) => None,
        }
    }

    /// Lends the log.
    pub(crate) fn lend(&mut self, writer: SessionWriter) {
        if let Some(core) = self.core() {
            core.log = Some(writer);
        }
    }

    /// What the open run was answered; `None` if no run is open.
    pub(crate) fn answers(&mut self, known: &[Answered]) -> Option<Vec<Answered>> {
        let run = &self.core().filter(|core| core.run.is_open())?.run;
        let asked: Vec<_> = run.pauses().map(|pause| pause.id.clone()).collect();
        Some(known.iter().filter(|answered| asked.contains(&answered.pause)).cloned().collect())
    }

    /// What the newest run used so far.
    pub(crate) fn tally(&mut self) -> Tally {
        self.core().map(|core| core.run.tally()).unwrap_or_default()
    }

    /// Begins the conversation with these entries, if nothing was said yet.
    ///
    /// # Errors
    /// Whatever keeps them from being recorded.
    pub(crate) async fn seed(
        &mut self,
        setup: &Arc<Setup>,
        writer: SessionWriter,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let Some(core) = self.core().filter(|core| core.run.seq() == Seq(0)) else { return Ok(()) };
        let mut port = LocalPort::observed(Arc::clone(setup), writer, Arc::new(Mailbox::closed()), Arc::default());
        commit(&mut core.run, &mut port, vec![Record::Seeded { entries }]).await
    }
}

#[async_trait]
impl Journal for Lent {
    async fn own(&self, log: &LogId, _: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Err(given_up(log))
    }

    fn read(&self, log: &LogId, _: Seq) -> RecordStream {
        Box::pin(stream::iter([Err(given_up(log))]))
    }
}

fn given_up(log: &LogId) -> JournalError {
    let message = format!("the agent that owns log {:?} has given it up", log.0);
    JournalError::new(JournalErrorKind::Fenced, message)
}
