//! The end of a drive: the middleware decides, the run gets its result, and the last event reports it.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use adjutant_core::{
    CancelBy, Error, Event, EventKind, Failure, Outcome, Record, RunNo, RunResult, TurnNo, chain,
};
use adjutant_llm::{Entry, Warning, WarningKind};
use futures_util::FutureExt;

use super::{
    Core, Start,
    after::overrule_record,
    drive_setup::{DriveSetup, Judged, Never},
};
use crate::{
    begin::Begin,
    inbox::Stopper,
    mailbox::Mailbox,
    middleware::{DriveContext, Judge, MiddlewareState, NextDrive, panic_failure},
    scope::SessionWriter,
};

impl DriveSetup<'_> {
    /// The drive within its middleware.
    pub(super) async fn run_middleware(&mut self) -> Option<Judged> {
        let setup = Arc::clone(&self.setup);
        let prompts: Arc<[Entry]> = match &self.start.begin {
            Begin::Run { prompts, .. } => prompts.as_slice().into(),
            Begin::Resume { .. } | Begin::Cancel => Arc::from([]),
        };
        let at_work = match self.has_begun() {
            true => Duration::from_millis(self.core.run.request().active_ms()),
            false => Duration::ZERO,
        };
        let shared = Arc::new(MiddlewareState::new(&setup.model, self.core.run.history()));
        self.shared = Some(Arc::clone(&shared));
        let cx = DriveContext {
            who: Arc::clone(&setup.who),
            log: self.start.session.id().clone(),
            prompts: Arc::clone(&prompts),
            at_work,
            is_reopened: self.is_reopened,
            stopper: Stopper {
                inbox: Arc::clone(self.inbox),
            },
            cancel: self.inbox.stop(),
            shared: Arc::clone(&shared),
        };
        let (judge, impatience) = (Judge::default(), self.impatience());
        let last = Box::new(|cx: DriveContext| {
            let driven: crate::middleware::Last<'_> = Box::pin(async move {
                self.prompts = Some(cx.prompts).filter(|given| !Arc::ptr_eq(given, &prompts));
                self.perform().await;
                shared.show(self.core.run.history());
                self.result()
            });
            driven
        });
        let next = NextDrive {
            chain: &setup.middleware,
            judge: &judge,
            last,
        };
        let chain = AssertUnwindSafe(async { next.run(cx).await }).catch_unwind();
        let given = tokio::select! {
            biased;
            given = chain => Some(given),
            () = impatience => None,
        };
        let outcome = match given {
            Some(Ok(Ok(result))) => Some(result.outcome),
            Some(Ok(Err(failure))) => Some(Outcome::Failed { failure }),
            Some(Err(panic)) => Some(Outcome::Failed {
                failure: panic_failure(&*panic),
            }),
            None => None,
        };
        Some(Judged {
            outcome,
            by: judge.last().unwrap_or_else(|| "middleware".into()),
        })
    }

    /// Completes when a middleware runs too long after a cancellation; the inner drive is not limited.
    fn impatience(&self) -> impl Future<Output = ()> + Send + use<> {
        let inside = Arc::clone(&self.inside);
        let mut wished = Box::pin(self.wait_for_cancel());
        let (grace, mut heard, mut alarm) = (self.setup.calls.grace, false, None);
        std::future::poll_fn(move |cx| {
            heard = heard || wished.as_mut().poll(cx).is_ready();
            if !heard || inside.load(Ordering::Acquire) {
                alarm = None;
                return Poll::Pending;
            }
            alarm
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(grace)))
                .as_mut()
                .poll(cx)
        })
    }

    /// Lets the middleware decide about the drive, and closes its open work.
    pub(super) async fn overrule(&mut self, judged: Judged) {
        if self.error.is_some() {
            return;
        }
        let overruled = self.try_overrule(judged).await;
        self.error = overruled.err();
        self.after().await;
    }

    async fn try_overrule(&mut self, judged: Judged) -> Result<(), Error> {
        let left = self.inside.swap(false, Ordering::AcqRel);
        if left {
            self.reclaim().await?;
        }
        if !self.has_begun() {
            return self.stand_in(judged.outcome).await;
        }
        let hung = judged.outcome.is_none();
        let outcome = judged
            .outcome
            .filter(|outcome| !matches!(outcome, Outcome::Paused { .. }));
        let stops = left || outcome.is_some() || (hung && self.wish().is_some());
        if self.core.run.is_open() && stops {
            let by = self.wish().unwrap_or(CancelBy::Shutdown);
            self.commit(vec![Record::CancelAsked { by }]).await?;
            self.drive().await?;
        }
        let (Some(ended), Some(outcome)) = (self.core.run.outcome(), outcome) else {
            return Ok(());
        };
        if ended.is_same(&outcome) {
            return Ok(());
        }
        let record = overrule_record(self.run, ended, outcome, judged.by);
        self.commit(vec![record]).await
    }

    /// The drive was dropped in the middle: only the log counts.
    async fn reclaim(&mut self) -> Result<(), Error> {
        let Some(mut executor) = self.executor.take() else {
            return Ok(());
        };
        // Emitted records are saved, unless their write was dropped too, or hangs: then only the log contains the
        // truth.
        let _ = tokio::time::timeout(self.setup.calls.grace, executor.save_all()).await;
        let shown = executor.last_emitted();
        drop(executor);
        let hands = (self.mailbox, self.inbox);
        self.executor = Some(
            self.core
                .reopen(self.start, &self.setup, shown, hands)
                .await?,
        );
        self.attend();
        Ok(())
    }

    /// The run of a drive that its middleware prevented.
    async fn stand_in(&mut self, outcome: Option<Outcome>) -> Result<(), Error> {
        match outcome {
            Some(Outcome::Failed { failure }) => self.never(Never::Failed(failure)).await,
            Some(Outcome::Finished { reply, .. }) => {
                let records = self.first(Some(reply));
                self.commit(records).await?;
                self.drive().await
            }
            Some(outcome @ Outcome::Limit { .. }) => self.never(Never::Ended(outcome)).await,
            Some(Outcome::Cancelled { by }) => self.never(Never::Cancelled(by)).await,
            Some(Outcome::Paused { .. }) => {
                let failure = Failure::Middleware {
                    message: "a middleware returned a pause without a run".into(),
                };
                self.never(Never::Failed(failure)).await
            }
            None => {
                let by = self.wish().unwrap_or(CancelBy::Shutdown);
                self.never(Never::Cancelled(by)).await
            }
        }
    }

    /// Records and emits the notes of the middleware.
    pub(super) async fn clear_state(&mut self) {
        let (billed, warnings) = self
            .shared
            .take()
            .map(|shared| shared.take())
            .unwrap_or_default();
        if self.error.is_some() || !self.has_begun() {
            return;
        }
        self.untold.extend(warnings);
        if !billed.is_empty() || !self.untold.is_empty() {
            self.error = self.commit(billed).await.err();
        }
    }

    /// Returns the result of the run.
    pub(super) fn result(&self) -> RunResult {
        let known = self
            .core
            .run
            .result(&self.setup.who)
            .filter(|_| self.error.is_none() && self.has_begun());
        known.unwrap_or_else(|| self.log_failure_result())
    }

    /// Returns the known result of a run whose log failed.
    fn log_failure_result(&self) -> RunResult {
        let who = &self.setup.who;
        let message = self.error.as_ref().map_or_else(
            || "the run has no result".into(),
            |error| chain(error).into(),
        );
        let outcome = Outcome::Failed {
            failure: Failure::Log { message },
        };
        if !self.core.run.is_open() {
            // It never began: what the fold knows is the run before it.
            return RunResult::never(who, outcome);
        }
        let mut run = self.core.run.clone();
        run.give_up(outcome.clone());
        run.result(who)
            .unwrap_or_else(|| RunResult::never(who, outcome))
    }

    /// Emits the end of the drive, and returns the log.
    pub(super) async fn end(&mut self) -> Result<RunResult, Error> {
        if let Some(executor) = self.executor.as_mut().filter(|_| self.error.is_none()) {
            // A listener that receives the end may read the log.
            self.error = executor.save_all().await.err();
        }
        let result = self.result();
        match &self.executor {
            Some(executor) if executor.is_watched() => {
                if result.outcome.is_silent() {
                    let message = "the run ended in a reply without text and calls";
                    let warning = Warning {
                        kind: WarningKind::NothingSaid,
                        message: message.into(),
                    };
                    executor.tell(EventKind::Warning { warning });
                }
                executor.tell(end_of(&result));
            }
            Some(_) => {}
            None => self.core.tell(self.start, self.mailbox, &result),
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.core.log = match &mut self.executor {
            Some(executor) => {
                self.core.events = Some(executor.take_events());
                let writer = executor.flush_writer().await?;
                self.executor = None;
                if self.start.setup.within.is_none() {
                    // Posts belong to the log: only the owner's thread records which were consumed.
                    self.core.forget(&writer).await;
                    if matches!(result.outcome, Outcome::Paused { .. }) {
                        self.core.park(self.start, &writer).await;
                    }
                }
                Some(writer)
            }
            None => self.log.take(),
        };
        if let Some(log) = self.core.log.clone()
            && let Some(due) = self.core.due(&log).await
        {
            Box::pin(self.core.keep(&log, &self.setup, due)).await;
        }
        Ok(result)
    }
}

impl Core {
    /// Reports the pauses of the run to the journal; if that fails, the run is checked again.
    pub(super) async fn park(&self, start: &Start, writer: &SessionWriter) {
        let waits = self.run.waiting().to_work(start.setup.world.now_ms());
        if let Err(error) = writer.parks(waits).await {
            tracing::warn!(%error, "the journal was not notified that the run waits");
        }
    }

    /// Shows the end of a run that never began, because its log could not be opened.
    pub(super) fn tell_never(&self, start: &Start, mailbox: &Mailbox, error: &Error) {
        let waiting = self
            .run
            .result(&start.setup.who)
            .filter(|it| matches!(it.outcome, Outcome::Paused { .. }));
        let result = waiting.unwrap_or_else(|| {
            let outcome = Outcome::Failed {
                failure: Failure::Log {
                    message: chain(error).into(),
                },
            };
            RunResult::never(&start.setup.who, outcome)
        });
        self.tell(start, mailbox, &result);
    }

    fn tell(&self, start: &Start, mailbox: &Mailbox, result: &RunResult) {
        let (who, at_ms) = (Arc::clone(&start.setup.who), start.setup.world.now_ms());
        let (seq, run, kind) = (self.run.seq(), result.run, end_of(result));
        let turn = if run == RunNo(0) {
            TurnNo(0)
        } else {
            self.run.turn()
        };
        mailbox.push(Event {
            seq,
            at_ms,
            run,
            turn,
            who,
            kind,
        });
    }
}

/// The end of a drive: the only event that is neither a record nor a delta.
fn end_of(result: &RunResult) -> EventKind {
    let result = Arc::new(result.clone());
    match result.outcome {
        Outcome::Paused { .. } => EventKind::RunPaused { result },
        _ => EventKind::RunFinished { result },
    }
}
