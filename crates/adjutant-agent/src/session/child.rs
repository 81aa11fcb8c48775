//! The session of a sub-agent: its log is lent to it while it is running.

use std::sync::Arc;

use adjutant_core::{
    Answered, Error, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, Record,
    RecordStream, Run, RunResult, Seq, Tally, commit,
};
use adjutant_llm::{Entry, Transcript};
use async_trait::async_trait;
use futures_util::stream;

use super::{Claim, Core, Session, Start, perform};
use crate::{
    begin::Begin,
    executor::LocalExecutor,
    inbox::Inbox,
    mailbox::Mailbox,
    queue::Queues,
    scope::{ChildDrive, ChildSession, SessionWriter, Threads},
    setup::Setup,
};

/// The journal of a sub-agent: the log belongs to the first agent.
#[derive(Debug)]
struct Lent;

/// A claim with its session.
struct Claimed {
    session: Arc<Session>,
    claim: Claim,
}

impl LocalExecutor {
    /// An executor that performs with this setup and records in this log. Its events have no reader.
    pub fn new(setup: Setup, log: Box<dyn Log>) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(Lent);
        let names = (LogId("".into()), setup.who.thread.clone());
        let writer =
            SessionWriter::new(log, names, &journal, Threads::default(), Session::new_child);
        Self::with_mailbox(
            Arc::new(setup),
            writer,
            Arc::new(Mailbox::closed()),
            Arc::default(),
        )
    }
}

impl Session {
    /// The session of an agent under another one, with the fold of its thread.
    pub(super) fn new_child(log: LogId, run: Run) -> Arc<dyn ChildSession> {
        let session = Self::new(log, Arc::new(Lent));
        session.show(run.history());
        if run.seq() > Seq(0) {
            session.queues().restore(&run);
        }
        if let Ok(mut core) = session.core.try_lock() {
            core.run = run;
        }
        Arc::new(session)
    }
}

impl ChildSession for Session {
    fn history(&self) -> Transcript {
        Self::history(self)
    }

    fn queue(&self) -> Arc<Queues> {
        Arc::clone(self.queues())
    }

    fn open_tally(&self) -> Option<Tally> {
        let core = self.core.try_lock().ok()?;
        core.run.is_open().then(|| core.run.request().tally())
    }

    fn claim(self: Arc<Self>) -> Result<Box<dyn ChildDrive>, Error> {
        let claim = Self::claim(&self)?;
        Ok(Box::new(Claimed {
            session: self,
            claim,
        }))
    }

    fn take_back(&self) {
        if let Ok(mut core) = self.core.try_lock() {
            core.log = None;
        }
    }
}

impl Claimed {
    /// Returns the session's own part, unless another user holds it.
    fn core(&mut self) -> Option<&mut Core> {
        match &mut self.claim {
            Claim::Now(core) => Some(core),
            Claim::Soon(_) => None,
        }
    }
}

#[async_trait]
impl ChildDrive for Claimed {
    fn answers(&mut self, known: &[Answered]) -> Option<Vec<Answered>> {
        let run = &self.core().filter(|core| core.run.is_open())?.run;
        let asked: Vec<_> = run.pauses().map(|pause| pause.id.clone()).collect();
        Some(
            known
                .iter()
                .filter(|answered| asked.contains(&answered.pause))
                .cloned()
                .collect(),
        )
    }

    fn tally(&mut self) -> Tally {
        self.core()
            .map(|core| core.run.request().tally())
            .unwrap_or_default()
    }

    async fn seed(
        &mut self,
        setup: &Arc<Setup>,
        writer: SessionWriter,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let Some(core) = self.core().filter(|core| core.run.seq() == Seq(0)) else {
            return Ok(());
        };
        let mut executor = LocalExecutor::with_mailbox(
            Arc::clone(setup),
            writer,
            Arc::new(Mailbox::closed()),
            Arc::default(),
        );
        commit(
            &mut core.run,
            &mut executor,
            vec![Record::Seeded { entries }],
        )
        .await
    }

    fn lend(&mut self, writer: SessionWriter) {
        if let Some(core) = self.core() {
            core.log = Some(writer);
        }
    }

    async fn perform(
        self: Box<Self>,
        setup: Arc<Setup>,
        begin: Begin,
        mailbox: Arc<Mailbox>,
        inbox: Arc<Inbox>,
    ) -> Result<RunResult, Error> {
        let Self { session, claim } = *self;
        perform(
            Start {
                setup,
                session,
                begin,
                cancel: None,
            },
            claim,
            mailbox,
            inbox,
        )
        .await
    }
}

#[async_trait]
impl Journal for Lent {
    async fn own(&self, log: &LogId, _: &Owner) -> Result<Box<dyn Log>, JournalError> {
        Err(log_fenced_error(log))
    }

    fn read(&self, log: &LogId, _: Seq) -> RecordStream {
        Box::pin(stream::iter([Err(log_fenced_error(log))]))
    }
}

fn log_fenced_error(log: &LogId) -> JournalError {
    let message = format!("the agent that owns log {:?} has given it up", log.0);
    JournalError::new(JournalErrorKind::Fenced, message)
}
