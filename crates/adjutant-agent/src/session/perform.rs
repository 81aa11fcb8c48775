//! Performs one drive of a session, from its claim to its last event.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use adjutant_core::{Error, Next, Outcome, RunResult};
use adjutant_llm::telemetry::{self, Contents};
use tracing::{Instrument, Span};

use super::{Claim, Core, Start, drive_setup::DriveSetup, mail::Mail};
use crate::{begin::Begin, inbox::Inbox, mailbox::Mailbox, scope::SessionWriter};

/// Performs one run of a session from its prompt to its end.
pub(crate) async fn perform(
    start: Start,
    claim: Claim,
    mailbox: Arc<Mailbox>,
    inbox: Arc<Inbox>,
) -> Result<RunResult, Error> {
    let mut core = claim.take().await;
    let (who, model) = (&start.setup.who, start.setup.model.info());
    let span = telemetry::agent_span(&who.name, &who.agent_id, &start.session.id().0, model);
    let running = AtWork::new(&start);
    let performed = core
        .perform(&start, &mailbox, &inbox)
        .instrument(span.clone())
        .await;
    drop(running);
    if !span.is_disabled() {
        tell(&span, &performed, start.setup.calls.contents);
    }
    start.session.show(core.run.history());
    start.session.show_pauses(&core.run);
    performed
}

/// Shows that the session runs, until it is dropped.
struct AtWork<'a>(&'a Start);

impl<'a> AtWork<'a> {
    fn new(start: &'a Start) -> Self {
        start.session.view().running.store(true, Ordering::Release);
        Self(start)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0
            .session
            .view()
            .running
            .store(false, Ordering::Release);
    }
}

/// Records the result of a run on its span.
fn tell(span: &Span, performed: &Result<RunResult, Error>, contents: Contents) {
    // A message may repeat the conversation.
    let message = |of: &dyn std::fmt::Display| match contents {
        Contents::Recorded => of.to_string(),
        _ => String::new(),
    };
    match performed {
        Ok(result) => {
            telemetry::record_usage(span, &result.usage);
            if let Outcome::Failed { failure } = &result.outcome {
                telemetry::record_error(span, failure.kind(), &message(failure));
            }
        }
        Err(error) => telemetry::record_error(span, "log", &message(error)),
    }
}

impl Core {
    async fn perform(
        &mut self,
        start: &Start,
        mailbox: &Arc<Mailbox>,
        inbox: &Arc<Inbox>,
    ) -> Result<RunResult, Error> {
        // Work that happens once in a session is boxed, so that a waiting run reserves no memory for it.
        let log = match self.log.take() {
            // The log was only read since its program ended.
            Some(log) if self.is_left() && matches!(start.begin, Begin::Run { .. }) => {
                Box::pin(self.close(log, &start.setup)).await
            }
            Some(log) => Ok(log),
            None => Box::pin(self.open(start)).await,
        };
        let opened = match log {
            Ok(log) => {
                let mail = self.mail(start).await;
                self.check(start, &mail, log).map(|log| (log, mail))
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok((log, mail)) => {
                start.session.view().catch_up(&self.run);
                if start.setup.within.is_none() {
                    log.set_awaited(start.setup.awaited);
                }
                let mut driven = DriveSetup::new(self, start, log, mailbox, inbox)
                    .mail(mail)
                    .wanting()
                    .with_recorded_model();
                let plain = start.setup.middleware.is_empty();
                let left = if plain {
                    driven.perform_catch_unwind().await
                } else {
                    Box::pin(driven.run_middleware()).await
                };
                if let Some(judged) = left {
                    Box::pin(driven.overrule(judged)).await;
                }
                if driven.shared.is_some() {
                    Box::pin(driven.clear_state()).await;
                }
                driven.end().await
            }
            Err(error) => {
                self.park_again(start, &error).await;
                self.tell_never(start, mailbox, &error);
                Err(error)
            }
        }
    }

    /// Reports to the journal what a run waits for that did not continue: its previous driver may have died before
    /// its report, or its wake-up time came and it cannot continue.
    async fn park_again(&self, start: &Start, error: &Error) {
        let waits =
            matches!(error, Error::Answers(_)) && start.setup.within.is_none() && self.is_parked();
        if let Some(log) = self.log.as_ref().filter(|_| waits) {
            Box::pin(self.park(start, log)).await;
        }
    }

    /// True if only the outside can continue the run.
    fn is_parked(&self) -> bool {
        matches!(self.run.next(&BTreeSet::new()), Next::Park(_))
    }

    /// True if the run is past its deadline, and no other one is set.
    pub(super) fn is_late(&self, start: &Start) -> bool {
        let is_late = || self.run.waiting().is_late(start.setup.world.now_ms());
        matches!(&start.begin, Begin::Resume { bounds, .. } if bounds.deadline_ms.is_none() && is_late())
    }

    /// Returns an error if the session cannot start the requested drive; the log is then kept for later.
    fn check(
        &mut self,
        start: &Start,
        mail: &Mail,
        log: SessionWriter,
    ) -> Result<SessionWriter, Error> {
        let waiting = || {
            self.run
                .pauses()
                .map(|pause| pause.id.clone())
                .collect::<Vec<_>>()
        };
        let refused = match &start.begin {
            Begin::Run { .. } if self.run.is_open() => Some(Error::Paused(waiting())),
            Begin::Run { prompts, .. } if prompts.is_empty() => self.nothing_to_answer(start),
            Begin::Run { .. } => None,
            // The answers for agents under another one were matched where they were given.
            Begin::Resume { .. } if start.setup.within.is_some() => None,
            Begin::Resume { .. } if mail.cancels || self.is_late(start) => None,
            Begin::Resume { .. } | Begin::Cancel if !self.run.is_open() => {
                let name = &start.session.id().0;
                Some(Error::Answers(
                    format!("no run is open in session {name:?}").into(),
                ))
            }
            Begin::Resume { terms, .. } => {
                // Without answers it continues as far as possible: it may have been interrupted between its last
                // steps.
                let goes = mail.answers.is_empty() && !self.is_parked();
                let mismatch = || {
                    self.run
                        .waiting()
                        .mismatch(&mail.answers, start.setup.world.now_ms())
                };
                let mismatch = (!goes).then(mismatch).flatten();
                let said = terms.as_ref().and_then(|terms| terms.model.as_ref());
                let unknown = || {
                    start
                        .setup
                        .chosen(said.or(self.run.request().chosen_model()))
                        .err()
                };
                mismatch
                    .map(|why| Error::Answers(why.into()))
                    .or_else(unknown)
            }
            Begin::Cancel => None,
        };
        match refused {
            None => Ok(log),
            Some(error) => {
                self.log = Some(log);
                // The unreadable posts may contain the prompt or the answers that it lacks.
                let is_lacking = matches!(error, Error::Prompt(_) | Error::Answers(_));
                let unread = mail.unread.as_deref().filter(|_| is_lacking);
                Err(unread.cloned().map_or(error, Error::Journal))
            }
        }
    }
}
