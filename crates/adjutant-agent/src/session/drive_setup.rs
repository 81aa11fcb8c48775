//! One drive: its parts, and its state.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_core::{
    CancelBy, Error, EventKind, Exit, Failure, Outcome, Record, RunNo, commit, drive,
};
use adjutant_llm::{Entry, LimitSource, Model, Warning, WarningKind};
use adjutant_tool::Cancel;
use futures_util::FutureExt;

use super::{Core, Start, mail::Mail};
use crate::{
    begin::Begin,
    executor::LocalExecutor,
    hooks::{HookContext, Point, Verdict},
    inbox::Inbox,
    mailbox::Mailbox,
    middleware::{MiddlewareState, panic_failure},
    output::Goal,
    scope::SessionWriter,
    setup::Setup,
};

/// One drive on its way.
pub(super) struct DriveSetup<'s> {
    pub(super) core: &'s mut Core,
    pub(super) start: &'s Start,
    /// The setup of this drive: the start's, with the instructions of this run.
    pub(super) setup: Arc<Setup>,
    pub(super) mailbox: &'s Arc<Mailbox>,
    pub(super) inbox: &'s Arc<Inbox>,
    /// The log, until an executor has it.
    pub(super) log: Option<SessionWriter>,
    pub(super) executor: Option<LocalExecutor>,
    /// The run that the drive is about.
    pub(super) run: RunNo,
    /// True if the log was read for it.
    pub(super) is_reopened: bool,
    pub(super) prompts: Option<Arc<[Entry]>>,
    /// True if `before_run` was reached, and `after_run` was not.
    pub(super) hears_run: bool,
    /// True if `before_agent` was passed, and `after_agent` was not reached.
    pub(super) hears_agent: bool,
    /// True while the drive itself is running, neither before nor after it.
    pub(super) inside: Arc<AtomicBool>,
    /// The warnings that are emitted as soon as the run has started.
    pub(super) untold: Vec<Warning>,
    /// The posts that came before.
    pub(super) mail: Mail,
    /// The state for its middleware, if there is any.
    pub(super) shared: Option<Arc<MiddlewareState>>,
    /// The error that keeps the run from being recorded.
    pub(super) error: Option<Error>,
}

/// The reason why a run ends before it begins.
pub(super) enum Never {
    Denied {
        point: &'static str,
        reason: Arc<str>,
    },
    Failed(Failure),
    Cancelled(CancelBy),
    Ended(Outcome),
}

/// The judgement of a drive by its surroundings: another outcome, or nothing.
pub(super) struct Judged {
    pub(super) outcome: Option<Outcome>,
    pub(super) by: Arc<str>,
}

impl<'s> DriveSetup<'s> {
    pub(super) fn new(
        core: &'s mut Core,
        start: &'s Start,
        log: SessionWriter,
        mailbox: &'s Arc<Mailbox>,
        inbox: &'s Arc<Inbox>,
    ) -> Self {
        let resumes = !matches!(start.begin, Begin::Run { .. });
        Self {
            run: if resumes {
                core.run.run()
            } else {
                RunNo(core.run.run().0 + 1)
            },
            is_reopened: std::mem::take(&mut core.is_reopened),
            core,
            start,
            setup: Arc::clone(&start.setup),
            mailbox,
            inbox,
            log: Some(log),
            executor: None,
            prompts: None,
            hears_run: false,
            // An earlier drive has passed it.
            hears_agent: resumes,
            inside: Arc::default(),
            untold: Vec::new(),
            mail: Mail::default(),
            shared: None,
            error: None,
        }
    }

    /// Adds the posts from before the drive.
    pub(super) fn mail(mut self, mut mail: Mail) -> Self {
        self.untold.append(&mut mail.warnings);
        self.mail = mail;
        self
    }

    /// Adds the requested output of an open run.
    pub(super) fn wanting(mut self) -> Self {
        let wish = self
            .core
            .run
            .output()
            .map(|(wish, _)| Arc::clone(wish))
            .filter(|_| !self.setup.anew);
        if !matches!(self.start.begin, Begin::Run { .. })
            && (wish.is_some() || self.setup.goal.is_some())
        {
            let (goal, warning) = Goal::resume(self.setup.goal.as_ref(), wish.as_deref());
            self.setup = Arc::new(Setup {
                goal,
                ..Setup::clone(&self.setup)
            });
            let warn = |message: &str| Warning {
                kind: WarningKind::Degraded,
                message: message.into(),
            };
            self.untold.extend(warning.map(warn));
        }
        self
    }

    /// Uses the recorded abilities of the model, if this process knows less of them, or if a run is resumed.
    pub(super) fn with_recorded_model(mut self) -> Self {
        let config = self.core.run.config();
        let Some(recorded) = config.and_then(|config| config.info.clone()) else {
            return self;
        };
        let resumes = !matches!(self.start.begin, Begin::Run { .. });
        let is_better = |now: LimitSource| match recorded.limits {
            LimitSource::Server => resumes || now == LimitSource::Assumed,
            _ => resumes && now == LimitSource::Assumed,
        };
        let recall = |model: &Arc<dyn Model>| {
            let info = model.info();
            let is_recalled = info.id == recorded.id
                && !info.limits.is_known()
                && is_better(info.limits)
                && *info != *recorded;
            is_recalled.then(|| model.with_info(&recorded)).flatten()
        };
        let mut setup = Setup::clone(&self.setup);
        let mut models: Vec<_> = setup.models.to_vec();
        let mut changes = false;
        for model in std::iter::once(&mut setup.model).chain(&mut models) {
            if let Some(recalled) = recall(model) {
                *model = recalled;
                changes = true;
            }
        }
        if changes {
            setup.models = models.into();
            self.setup = Arc::new(setup);
        }
        self
    }

    /// The drive without middleware; a panic of it is a failure all the same.
    pub(super) async fn perform_catch_unwind(&mut self) -> Option<Judged> {
        let driven = AssertUnwindSafe(self.perform()).catch_unwind().await;
        let panic = driven.err()?;
        let outcome = Some(Outcome::Failed {
            failure: panic_failure(&*panic),
        });
        Some(Judged {
            outcome,
            by: "drive".into(),
        })
    }

    /// The drive: its hooks, its instructions, and what the run decides.
    pub(super) async fn perform(&mut self) {
        self.inside.store(true, Ordering::Release);
        let driven = self.steps().await;
        self.error = driven.err();
        if !self.setup.hooks.is_empty() {
            Box::pin(self.after()).await;
        }
        self.inside.store(false, Ordering::Release);
    }

    async fn steps(&mut self) -> Result<(), Error> {
        let ready = if self.is_plain() {
            self.keep_system();
            Ok(self.first(None))
        } else {
            Box::pin(self.before()).await
        };
        match ready {
            Ok(records) => {
                let records = self.opening(records).await?;
                let ends = |record: &Record| {
                    matches!(record, Record::CancelAsked { .. } | Record::Ended { .. })
                };
                let resumes = !matches!(self.start.begin, Begin::Run { .. });
                let goes_on =
                    (resumes || !self.setup.middleware.is_empty()) && !records.iter().any(ends);
                self.commit(records).await?;
                if goes_on {
                    Box::pin(self.start_middleware(resumes)).await;
                }
                self.drive().await
            }
            Err(never) => Box::pin(self.never(never)).await,
        }
    }

    /// Lets the middleware continue the remains of an earlier drive.
    async fn start_middleware(&mut self, resumes: bool) {
        let (setup, patience) = (Arc::clone(&self.setup), self.patience());
        let Some(executor) = &mut self.executor else {
            return;
        };
        executor.look_back(&self.core.run);
        executor.begin_budget(&self.core.run);
        if setup.middleware.is_empty() {
            return executor.release_kept_places();
        }
        let start = executor.drive_start(&self.core.run, (resumes, self.is_reopened));
        let all = async {
            for middleware in &*setup.middleware {
                middleware.on_start(&start).await;
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = patience => tracing::warn!("the task that continues agents did not end when the run was stopped"),
        }
        executor.release_kept_places();
    }

    /// Returns the first records of the drive, with the queued messages, or with the answers after their hooks.
    async fn opening(&mut self, records: Vec<Record>) -> Result<Vec<Record>, Error> {
        if self.executor.is_none() {
            self.executor = Some(self.open_executor()?);
        }
        self.attend();
        let executor = self.executor.as_mut().ok_or(Error::Stuck)?;
        executor.hold();
        let mut records = records.into_iter();
        let opening = match (&self.start.begin, records.next()) {
            (Begin::Resume { .. }, _) if self.mail.cancels => {
                vec![Record::CancelAsked { by: CancelBy::User }]
            }
            (Begin::Resume { .. }, _) if self.core.is_late(self.start) => {
                vec![Record::CancelAsked {
                    by: CancelBy::Deadline,
                }]
            }
            (Begin::Resume { .. }, Some(Record::Resumed { limits, terms, .. })) => {
                // Boxed, so that a run which is not resumed stays small.
                Box::pin(executor.hear_answers(&self.core.run, &self.mail.answers, (limits, terms)))
                    .await
            }
            (Begin::Run { .. }, Some(began)) => {
                let begins = matches!(began, Record::Began { .. });
                let mut opening = match begins.then(|| executor.collect_queue_records()).flatten() {
                    None => LocalExecutor::opening_now(&self.core.run, began),
                    // Boxed, so that a run without waiting messages stays small.
                    Some(news) => Box::pin(executor.opening(&self.core.run, began, news)).await,
                };
                let ends = |record: &Record| {
                    matches!(record, Record::CancelAsked { .. } | Record::Ended { .. })
                };
                if !opening.iter().any(ends) {
                    opening.extend(records);
                }
                opening
            }
            (_, first) => first.into_iter().chain(records).collect(),
        };
        Ok(self.with_mail(opening))
    }

    /// True if no hook or middleware is called before the run starts.
    fn is_plain(&self) -> bool {
        let is_instructed =
            self.setup.is_instructed() && matches!(self.start.begin, Begin::Run { .. });
        self.setup.hooks.is_empty() && is_instructed && self.prompts.is_none()
    }

    /// True if the run of this drive is in the log.
    pub(super) fn has_begun(&self) -> bool {
        self.core.run.run() == self.run
    }

    pub(super) async fn commit(&mut self, records: Vec<Record>) -> Result<(), Error> {
        if self.executor.is_none() {
            self.executor = Some(self.open_executor()?);
        }
        let executor = self.executor.as_mut().ok_or(Error::Stuck)?;
        let committed = commit(&mut self.core.run, executor, records).await;
        executor.release();
        committed?;
        for warning in self.untold.drain(..) {
            executor.tell(EventKind::Warning { warning });
        }
        Ok(())
    }

    fn open_executor(&mut self) -> Result<LocalExecutor, Error> {
        let log = self.log.take().ok_or(Error::Stuck)?;
        let (mailbox, inbox) = (Arc::clone(self.mailbox), Arc::clone(self.inbox));
        let seen = Arc::clone(self.start.session.view());
        let mut executor =
            LocalExecutor::with_view(Arc::clone(&self.setup), log, mailbox, inbox, seen);
        executor.go_on(self.core.events.take(), &self.core.run);
        executor.listen(Arc::clone(self.start.session.queues()));
        if let Some(cancel) = &self.start.cancel {
            executor.hear(cancel.clone());
        }
        Ok(executor)
    }

    pub(super) async fn drive(&mut self) -> Result<(), Error> {
        let executor = self.executor.as_mut().ok_or(Error::Stuck)?;
        loop {
            let exit = drive(&mut self.core.run, executor).await?;
            if !matches!(exit, Exit::Parked(_)) {
                return Ok(());
            }
            executor.save_all().await?;
            self.start.session.show_pauses(&self.core.run);
            // Agents of the run continue while it waits for the outside; answers that arrive by then are processed.
            let heard = executor.rest().await;
            if heard.is_empty() {
                return Ok(());
            }
            commit(&mut self.core.run, executor, heard).await?;
        }
    }

    /// Passes a point through its hooks; `None` if they ran too long after a cancellation.
    pub(super) async fn pass<P: Point>(&mut self, point: P) -> Option<Verdict<P>> {
        let cx = HookContext {
            who: Arc::clone(&self.setup.who),
            run: self.run,
            turn: self.core.run.turn(),
            at_ms: self.setup.world.now_ms(),
            cancel: self.inbox.stop(),
        };
        let (setup, patience) = (Arc::clone(&self.setup), self.patience());
        let mut told = Vec::new();
        let passed = tokio::select! {
            biased;
            verdict = setup.hooks.pass_with(&cx, point, |warning| told.push(warning)) => Some(verdict),
            () = patience => None,
        };
        if passed.is_none() {
            tracing::warn!(
                point = P::NAME,
                "a hook did not end when the run was stopped, and is passed over"
            );
        }
        match &self.executor {
            Some(executor) if self.has_begun() => {
                told.into_iter()
                    .for_each(|warning| executor.tell(EventKind::Warning { warning }));
            }
            _ => self.untold.extend(told),
        }
        passed
    }

    /// Completes when the grace period after a cancellation is over.
    pub(super) fn patience(&self) -> impl Future<Output = ()> + Send + use<> {
        let wished = self.wait_for_cancel();
        let grace = self.setup.calls.grace;
        async move {
            wished.await;
            tokio::time::sleep(grace).await;
        }
    }

    /// Completes when the run is cancelled.
    pub(super) fn wait_for_cancel(&self) -> impl Future<Output = ()> + Send + use<> {
        await_cancel(self.inbox.stop(), self.start.cancel.clone())
    }

    /// Returns the source of the cancellation, if there was one.
    pub(super) fn wish(&self) -> Option<CancelBy> {
        let outer = self
            .start
            .cancel
            .as_ref()
            .filter(|cancel| cancel.is_cancelled());
        self.inbox.wish().or(outer.map(|_| CancelBy::User))
    }
}

/// Completes when the run is cancelled, and cancels `stop`.
async fn await_cancel(stop: Cancel, outer: Option<Cancel>) {
    match outer {
        None => stop.cancelled().await,
        Some(outer) => tokio::select! {
            () = stop.cancelled() => {}
            () = outer.cancelled() => stop.cancel(),
        },
    }
}
