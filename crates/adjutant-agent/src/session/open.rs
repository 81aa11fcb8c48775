//! Opens the log of a session and folds it; closes the open work of a previous program.

use std::sync::Arc;

use adjutant_core::{CancelBy, Error, Event, Record, Seq, commit, drive};

use super::{Claim, Core, Session, Start, describe, fold::Fold};
use crate::{
    begin::Begin, executor::LocalExecutor, inbox::Inbox, mailbox::Mailbox, scope::SessionWriter,
    setup::Setup,
};

/// Reads the log of a session, if it was not read yet, and emits its content.
pub(crate) async fn look(start: Start, claim: Claim) -> Result<(), Error> {
    let mut core = claim.take().await;
    let log = core.open(&start).await?;
    let closes = matches!(start.begin, Begin::Run { .. }) && core.is_left();
    core.log = Some(if closes {
        core.close(log, &start.setup).await?
    } else {
        log
    });
    start.session.show(core.run.history());
    start.session.show_pauses(&core.run);
    Ok(())
}

impl Core {
    /// True if a run was left open without a pause.
    pub(super) fn is_left(&self) -> bool {
        self.run.is_open() && self.run.pauses().next().is_none()
    }

    /// The log, with its fold at hand. A fold that may be behind its log is made again.
    pub(super) async fn open(&mut self, start: &Start) -> Result<SessionWriter, Error> {
        if let Some(log) = self.log.take() {
            return Ok(log);
        }
        let (log, _) = self.fold(start, None).await?;
        if let Some(due) = self.due(&log).await {
            self.keep(&log, &start.setup, due).await;
        }
        let log = self.seed(log, start).await?;
        start.session.queues().restore(&self.run);
        if self.is_left() && matches!(start.begin, Begin::Run { .. }) {
            return self.close(log, &start.setup).await;
        }
        Ok(log)
    }

    /// Takes the log over and folds it; returns the unemitted events, if any.
    async fn fold(
        &mut self,
        start: &Start,
        shown: Option<Seq>,
    ) -> Result<(SessionWriter, Vec<Event>), Error> {
        let (id, journal) = (start.session.id(), start.session.journal());
        let log = journal.own(id, start.session.owner()).await?;
        if log.head().seq == Seq(0) {
            describe::agent(&**journal, id, &start.setup.who.name).await?;
        }
        let fold = Fold::load(&start.session, &start.setup.who, log.head().seq, shown).await?;
        (self.run, self.events, self.kept, self.is_reopened) =
            (fold.run, Some(fold.events), fold.kept, true);
        let names = (id.clone(), start.setup.who.thread.clone());
        Ok((
            SessionWriter::new(log, names, journal, fold.threads, Session::new_child),
            fold.told,
        ))
    }

    /// Ends a run that the program before this one, or a runtime that was shut down, has left open: it was lost.
    pub(super) async fn close(
        &mut self,
        log: SessionWriter,
        setup: &Arc<Setup>,
    ) -> Result<SessionWriter, Error> {
        let mut executor = self.quiet_port(setup, log);
        commit(
            &mut self.run,
            &mut executor,
            vec![Record::CancelAsked {
                by: CancelBy::Crash,
            }],
        )
        .await?;
        drive(&mut self.run, &mut executor).await?;
        self.events = Some(executor.take_events());
        executor.flush_writer().await
    }

    /// Creates an executor without a reader of its events.
    pub(super) fn quiet_port(&mut self, setup: &Arc<Setup>, log: SessionWriter) -> LocalExecutor {
        let mut executor = LocalExecutor::with_mailbox(
            Arc::clone(setup),
            log,
            Arc::new(Mailbox::closed()),
            Arc::default(),
        );
        executor.go_on(self.events.take(), &self.run);
        executor
    }

    /// Creates a new executor on the same log, for a drive that was dropped in the middle: activities in flight are
    /// dropped, and recorded events that were not emitted are emitted now.
    pub(super) async fn reopen(
        &mut self,
        start: &Start,
        setup: &Arc<Setup>,
        shown: Seq,
        (mailbox, inbox): (&Arc<Mailbox>, &Arc<Inbox>),
    ) -> Result<LocalExecutor, Error> {
        let (log, told) = self.fold(start, Some(shown)).await?;
        told.into_iter().for_each(|event| {
            mailbox.push(event);
        });
        start.session.view().catch_up(&self.run);
        // Changes of the queues that the drive had received and not recorded count as new again.
        start.session.queues().restore(&self.run);
        let seen = Arc::clone(start.session.view());
        let mut executor = LocalExecutor::with_view(
            Arc::clone(setup),
            log,
            Arc::clone(mailbox),
            Arc::clone(inbox),
            seen,
        );
        executor.go_on(self.events.take(), &self.run);
        Ok(executor)
    }
}
