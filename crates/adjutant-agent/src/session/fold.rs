//! The fold of a log: the state of a session when it opens; it starts from the fold stored next to the log, if there
//! is one.

use std::sync::Arc;

use adjutant_core::{
    Error, Event, Events, Folded, JournalError, JournalErrorKind, Run, Seq, Stamped,
};
use adjutant_tool::Identity;
use futures_util::StreamExt;

use super::{Core, Session, folded};
use crate::{
    scope::{SessionWriter, Threads},
    setup::Setup,
};

/// The fold of a log.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) run: Run,
    pub(super) events: Events,
    pub(super) threads: Threads,
    /// The newest record of the fold that it began from.
    pub(super) kept: Seq,
    /// The record after which the events of further records are wanted.
    pub(super) shown: Option<Seq>,
    pub(super) told: Vec<Event>,
}

impl Fold {
    pub(super) fn new(who: &Arc<Identity>) -> Self {
        let events = Events::new(Arc::clone(who));
        Self {
            run: Run::default(),
            events,
            threads: Threads::default(),
            kept: Seq(0),
            shown: None,
            told: Vec::new(),
        }
    }

    /// Returns the fold of a log with this head, or without an owner, and the events of the records after `shown`.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold.
    pub(super) async fn load(
        session: &Session,
        who: &Arc<Identity>,
        head: Seq,
        shown: Option<Seq>,
    ) -> Result<Self, Error> {
        if let Some(fold) = Self::load_stored(session, who, head.min(shown.unwrap_or(head))).await {
            let fold = Self { shown, ..fold };
            match fold.go_on(session, who).await {
                Ok(fold) => return Ok(fold),
                Err(error) => {
                    tracing::debug!(%error, log = %session.id(), "the kept fold does not fit the log")
                }
            }
        }
        Self {
            shown,
            ..Self::new(who)
        }
        .go_on(session, who)
        .await
    }

    /// The fold stored next to the log, if it is usable.
    async fn load_stored(session: &Session, who: &Arc<Identity>, most: Seq) -> Option<Self> {
        let id = session.id();
        let folded = match session.journal().load_fold(id).await {
            Ok(folded) => folded?,
            Err(error) => {
                tracing::debug!(%error, log = %id, "the kept fold cannot be had");
                return None;
            }
        };
        if folded.seq == Seq(0) || folded.seq > most || *folded.format != *folded::FORMAT {
            tracing::debug!(log = %id, seq = %folded.seq, format = %folded.format, "the kept fold is not for this program");
            return None;
        }
        let read = folded::read(folded.bytes, who).await;
        let read =
            read.inspect_err(|why| tracing::debug!(why, log = %id, "the kept fold cannot be read"));
        let (run, events, threads) = read.ok()?;
        Some(Self {
            run,
            events,
            threads,
            kept: folded.seq,
            ..Self::new(who)
        })
    }

    /// Reads on after the fold.
    async fn go_on(mut self, session: &Session, who: &Identity) -> Result<Self, Error> {
        // The newest record of the fold is read again: the log must contain it.
        let mut records = session
            .journal()
            .read(session.id(), Seq(self.kept.0.saturating_sub(1)));
        if self.kept > Seq(0) {
            let known = records.next().await.transpose()?;
            if known.is_none_or(|known| known.seq != self.kept) {
                let message = format!("log {:?} has no record {}", session.id().0, self.kept);
                return Err(JournalError::new(JournalErrorKind::Corrupt, message).into());
            }
        }
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            self.take(&stamped, who)?;
        }
        Ok(self)
    }

    pub(super) fn take(&mut self, stamped: &Stamped, who: &Identity) -> Result<(), Error> {
        if stamped.thread == who.thread {
            self.run.apply(stamped)?;
            match self.shown {
                Some(shown) if stamped.seq > shown => {
                    self.events.fold(stamped, |event| self.told.push(event))
                }
                _ => self.events.learn(stamped),
            }
        }
        Ok(self.threads.fold(stamped, &who.thread)?)
    }
}

impl Core {
    /// Returns the newest record if enough was recorded since the stored fold.
    pub(super) async fn due(&self, log: &SessionWriter) -> Option<Seq> {
        let (head, every) = log.keeps().await?;
        let behind = head.0.saturating_sub(self.kept.0);
        (behind >= every.max(1) && behind.saturating_mul(4) >= head.0).then_some(head)
    }

    /// Stores a fold next to the log, up to its newest record. It is optional data.
    ///
    /// Cancel: nothing is lost.
    pub(super) async fn keep(&mut self, log: &SessionWriter, setup: &Setup, head: Seq) {
        let told = log.threads().to_recorded();
        // The log describes running threads differently.
        let (Some(events), Some(threads)) = (self.events.clone(), told) else {
            return;
        };
        let written = folded::write(&setup.who.thread, &self.run, events, threads).await;
        // Also if it fails: it is not tried again with every drive.
        self.kept = head;
        let kept = match written {
            Ok(bytes) => {
                log.keep(Folded {
                    seq: head,
                    format: folded::FORMAT.into(),
                    bytes,
                })
                .await
            }
            Err(why) => {
                tracing::debug!(why, log = %log.name(), "no fold is kept");
                return;
            }
        };
        if let Err(error) = kept {
            tracing::warn!(%error, log = %log.name(), "a fold was not kept: the log will open slowly");
        }
    }
}
