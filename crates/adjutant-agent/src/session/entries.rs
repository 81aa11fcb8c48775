//! Entries that join a conversation without a request: its first ones, and appended ones while it is idle.

use adjutant_core::{Error, Record, Seq, Tail, commit};
use adjutant_llm::{Entry, Transcript};

use super::{Claim, Core, Session, Start};
use crate::scope::SessionWriter;

impl Session {
    /// A session that begins with these entries, once its log is made.
    pub(crate) fn with_entries(mut self, entries: Vec<Entry>) -> Self {
        let mut history = Transcript::new();
        entries.iter().for_each(|entry| {
            history.push(entry.clone());
        });
        self.show(&history);
        self.seed = entries;
        self
    }

    /// Leaves the session as it was when it was claimed.
    pub(crate) fn give_back(&self, claim: Claim) {
        if matches!(claim, Claim::Soon(_)) {
            self.leave();
        }
    }
}

/// Appends entries to a conversation that rests.
pub(crate) async fn append(start: Start, claim: Claim, entries: Vec<Entry>) -> Result<(), Error> {
    let mut core = claim.take().await;
    let log = core.open(&start).await?;
    if core.run.is_open() {
        let waiting = core.run.pauses().map(|pause| pause.id.clone()).collect();
        core.log = Some(log);
        return Err(Error::Paused(waiting));
    }
    let log = core
        .record(&start, log, Record::Appended { entries })
        .await?;
    core.log = Some(log);
    start.session.show(core.run.history());
    Ok(())
}

impl Core {
    /// Writes the entries that the conversation begins with into an empty log first.
    pub(super) async fn seed(
        &mut self,
        log: SessionWriter,
        start: &Start,
    ) -> Result<SessionWriter, Error> {
        if self.run.seq() > Seq(0) || start.session.seed.is_empty() {
            return Ok(log);
        }
        self.record(
            start,
            log,
            Record::Seeded {
                entries: start.session.seed.clone(),
            },
        )
        .await
    }

    /// Returns an error if a run without a prompt has nothing to answer.
    pub(super) fn nothing_to_answer(&self, start: &Start) -> Option<Error> {
        match self.run.waiting().tail() {
            Tail::Open => None,
            Tail::Nothing | Tail::Answer if start.session.queues().is_filled() => None,
            Tail::Nothing => Some(Error::Prompt(
                "there is none, and there is no earlier message",
            )),
            Tail::Answer => Some(Error::Prompt(
                "there is none, and a run cannot continue from an answer",
            )),
        }
    }

    async fn record(
        &mut self,
        start: &Start,
        log: SessionWriter,
        record: Record,
    ) -> Result<SessionWriter, Error> {
        let mut executor = self.quiet_port(&start.setup, log);
        commit(&mut self.run, &mut executor, vec![record]).await?;
        self.events = Some(executor.take_events());
        executor.flush_writer().await
    }
}
