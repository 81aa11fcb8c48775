//! Opens the log of a session and folds it; closes what a program before this one has left open.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Claim, Core, describe};
use crate::{
    CancelBy, Error, Events, LocalPort, Record, Run, Seq, Setup, Stamped, commit, drive,
    inbox::Inbox,
    mailbox::Mailbox,
    running::{Begin, Start},
    scope::Threads,
    writer::Writer,
};

/// Reads the log of a session, if it was not read yet, and shows what it holds.
pub(crate) async fn look(start: Start, claim: Claim) -> Result<(), Error> {
    let mut core = claim.take().await;
    let log = core.open(&start).await?;
    core.log = Some(log);
    start.session.show(core.run.history());
    start.session.show_pauses(&core.run);
    Ok(())
}

impl Core {
    /// The log, with its fold at hand. A fold that may be behind its log is made again.
    pub(super) async fn open(&mut self, start: &Start) -> Result<Writer, Error> {
        if let Some(log) = self.log.take() {
            return Ok(log);
        }
        let mut events = Events::of(Arc::clone(&start.setup.who));
        let log = self.fold(start, |stamped| events.learn(stamped)).await?;
        self.events = Some(events);
        let log = self.seed(log, start).await?;
        start.session.queues().restore(&self.run);
        let left = self.run.is_open() && self.run.pauses().next().is_none();
        if left && matches!(start.begin, Begin::Run { .. }) {
            return self.close(log, &start.setup).await;
        }
        Ok(log)
    }

    /// Takes the log over, folds all of it, and shows each record of the thread to `see`.
    async fn fold(&mut self, start: &Start, mut see: impl FnMut(&Arc<Stamped>)) -> Result<Writer, Error> {
        let (id, journal) = (start.session.id(), start.session.journal());
        let log = journal.own(id, start.session.owner()).await?;
        if log.head().seq == Seq(0) {
            describe::agent(&**journal, id, &start.setup.who.name).await?;
        }
        self.run = Run::new();
        let mut threads = Threads::default();
        let mut records = journal.read(id, Seq(0));
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            if stamped.thread == start.setup.who.thread {
                self.run.apply(&stamped)?;
                see(&stamped);
            }
            threads.fold(&stamped, &start.setup.who.thread)?;
        }
        Ok(Writer::new(log, id.clone(), threads))
    }

    /// Ends a run that the program before this one, or a dropped future, has left open.
    async fn close(&mut self, log: Writer, setup: &Arc<Setup>) -> Result<Writer, Error> {
        let mut port = LocalPort::observed(Arc::clone(setup), log, Arc::new(Mailbox::closed()), Arc::default());
        commit(&mut self.run, &mut port, vec![Record::CancelAsked { by: CancelBy::Shutdown }]).await?;
        drive(&mut self.run, &mut port).await?;
        port.into_writer().await
    }

    /// A new port on the same log, for a drive that was left in its middle: what is in flight is dropped, and what was
    /// recorded and not shown is shown now.
    pub(super) async fn reopen(
        &mut self,
        start: &Start,
        setup: &Arc<Setup>,
        shown: Seq,
        (mailbox, inbox): (&Arc<Mailbox>, &Arc<Inbox>),
    ) -> Result<LocalPort, Error> {
        let mut events = Events::of(Arc::clone(&setup.who));
        let log = self
            .fold(start, |stamped| {
                events.fold(stamped, |event| {
                    if event.seq > shown {
                        mailbox.push(event);
                    }
                });
            })
            .await?;
        start.session.seen().catch_up(&self.run);
        // What the drive had heard of the queues and not recorded is news again.
        start.session.queues().restore(&self.run);
        let seen = Arc::clone(start.session.seen());
        let mut port = LocalPort::watched(Arc::clone(setup), log, Arc::clone(mailbox), Arc::clone(inbox), seen);
        port.go_on(Some(events), &self.run);
        Ok(port)
    }
}
