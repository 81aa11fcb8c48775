//! One session: its log, the fold of it, and who may use them now.

mod entries;
mod live;

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use adjutant_llm::{
    Entry, ThreadId, Transcript,
    telemetry::{self, Contents},
};
use futures_util::StreamExt;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tracing::{Instrument, Span};

pub(crate) use entries::append;

use crate::{
    CancelBy, Error, Event, Exit, Failure, Journal, JournalErrorKind, LocalPort, Log, LogId, Outcome, Pause, Record,
    Run, RunNo, RunResult, Seq, Setup, Stopper, TurnNo, commit, drive,
    event::EventKind,
    inbox::Inbox,
    mailbox::Mailbox,
    queue::Queues,
    running::{Begin, Start},
};

/// One session; shared by the clones of an agent.
#[derive(Debug)]
pub(crate) struct Session {
    id: LogId,
    journal: Arc<dyn Journal>,
    core: Arc<AsyncMutex<Core>>,
    leaving: AtomicBool,
    history: Mutex<Transcript>,
    pauses: Mutex<Vec<Arc<Pause>>>,
    queues: Arc<Queues>,
    /// What the conversation begins with, if its log is empty.
    seed: Vec<Entry>,
    live: Mutex<Weak<Stopper>>,
}

/// What only one run at a time may hold.
#[derive(Debug, Default)]
pub(crate) struct Core {
    run: Run,
    log: Option<Box<dyn Log>>,
}

/// The right to run in a session: at once, or when a run that was left behind has closed its turn.
pub(crate) enum Claim {
    Now(OwnedMutexGuard<Core>),
    Soon(Pin<Box<dyn Future<Output = OwnedMutexGuard<Core>> + Send>>),
}

impl Session {
    pub(crate) fn new(id: LogId, journal: Arc<dyn Journal>) -> Self {
        Self {
            id,
            journal,
            core: Arc::default(),
            leaving: AtomicBool::new(false),
            history: Mutex::default(),
            pauses: Mutex::default(),
            queues: Arc::default(),
            seed: Vec::new(),
            live: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> &LogId {
        &self.id
    }

    /// Claims the session.
    ///
    /// # Errors
    /// `Busy` if a run has it that was not left behind.
    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        // Whoever claims takes the place of who left; the next one finds it taken.
        let left = self.leaving.swap(false, Ordering::AcqRel);
        match Arc::clone(&self.core).try_lock_owned() {
            Ok(core) => Ok(Claim::Now(core)),
            Err(_) if left => Ok(Claim::queue(Arc::clone(&self.core))),
            Err(_) => Err(Error::busy()),
        }
    }

    /// The run that has the session was left behind: it only closes its turn.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Everything that was said in the session, as of the newest run that ended.
    pub(crate) fn history(&self) -> Transcript {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The fold of what the log holds now, also while a run goes on; nothing is taken or written.
    ///
    /// # Errors
    /// `Journal` if the log cannot be read, `Defect` if it does not fold.
    pub(crate) async fn look(&self, thread: &ThreadId) -> Result<Run, Error> {
        if let Ok(core) = self.core.try_lock()
            && core.log.is_some()
        {
            return Ok(core.run.clone());
        }
        let mut run = Run::new();
        let mut records = self.journal.read(&self.id, Seq(0));
        while let Some(stamped) = records.next().await {
            match stamped {
                Ok(stamped) if stamped.thread == *thread => run.apply(&stamped)?,
                Ok(_) => {}
                // A session that never ran has no log yet.
                Err(error) if error.kind() == JournalErrorKind::Missing => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(run)
    }

    /// What the session waits for, as of the newest drive that ended.
    pub(crate) fn pauses(&self) -> Vec<Arc<Pause>> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show_pauses(&self, run: &Run) {
        *self.pauses.lock().unwrap_or_else(PoisonError::into_inner) = run.pauses().cloned().collect();
    }

    fn show(&self, history: &Transcript) {
        *self.history.lock().unwrap_or_else(PoisonError::into_inner) = history.clone();
    }
}

impl Claim {
    /// A place in the queue, taken at once: before anyone who asks later.
    fn queue(core: Arc<AsyncMutex<Core>>) -> Self {
        let mut soon = Box::pin(core.lock_owned());
        match soon.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(core) => Claim::Now(core),
            Poll::Pending => Claim::Soon(soon),
        }
    }

    async fn take(self) -> OwnedMutexGuard<Core> {
        match self {
            Claim::Now(core) => core,
            Claim::Soon(core) => core.await,
        }
    }
}

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
    let performed = core.perform(&start, &mailbox, &inbox).instrument(span.clone()).await;
    if !span.is_disabled() {
        tell(&span, &performed, start.setup.contents);
    }
    start.session.show(core.run.history());
    start.session.show_pauses(&core.run);
    performed
}

/// Reads the log of a session, if it was not read yet, and shows what it holds.
pub(crate) async fn look(start: Start, claim: Claim) -> Result<(), Error> {
    let mut core = claim.take().await;
    let log = core.open(&start).await?;
    core.log = Some(log);
    start.session.show(core.run.history());
    start.session.show_pauses(&core.run);
    Ok(())
}

/// Records what a run came to on its span.
fn tell(span: &Span, performed: &Result<RunResult, Error>, contents: Contents) {
    // A message may repeat what was said.
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
    async fn perform(&mut self, start: &Start, mailbox: &Arc<Mailbox>, inbox: &Arc<Inbox>) -> Result<RunResult, Error> {
        let opened = match self.open(start).await {
            Ok(log) => self.check(start, log),
            Err(error) => Err(error),
        };
        let log = match opened {
            Ok(log) => log,
            Err(error) => {
                self.tell_never(start, mailbox, &error);
                return Err(error);
            }
        };
        let mut port = LocalPort::observed(Arc::clone(&start.setup), log, Arc::clone(mailbox), Arc::clone(inbox));
        port.listen(Arc::clone(start.session.queues()));
        if let Some(cancel) = &start.cancel {
            port.hear(cancel.clone());
        }
        let driven = self.begin_and_drive(&mut port, &start.begin).await;
        let result = match (&driven, self.run.result(&start.setup.who)) {
            (Ok(_), Some(result)) => result,
            _ => self.lost(start, driven.as_ref().err()),
        };
        port.tell_end(&result);
        driven?;
        self.log = Some(port.into_log().await?);
        Ok(result)
    }

    /// Whether the session can begin what is asked of it; the log is kept for later if it cannot.
    fn check(&mut self, start: &Start, log: Box<dyn Log>) -> Result<Box<dyn Log>, Error> {
        let waiting = || self.run.pauses().map(|pause| pause.id.clone()).collect::<Vec<_>>();
        let refused = match &start.begin {
            Begin::Run { .. } if self.run.is_open() => Some(Error::paused(waiting())),
            Begin::Resume { answers } => self.run.mismatch(answers, start.setup.world.now_ms()).map(Error::answers),
            Begin::Cancel if !self.run.is_open() => Some(Error::answers("no run is open")),
            Begin::Cancel => None,
            Begin::Run { prompts, .. } if prompts.is_empty() => self.nothing_to_answer(start),
            Begin::Run { .. } => None,
        };
        match refused {
            None => Ok(log),
            Some(error) => {
                self.log = Some(log);
                Err(error)
            }
        }
    }

    /// The log, with its fold at hand. A fold that may be behind its log is made again.
    async fn open(&mut self, start: &Start) -> Result<Box<dyn Log>, Error> {
        if let Some(log) = self.log.take() {
            return Ok(log);
        }
        let (id, journal) = (start.session.id(), &start.session.journal);
        let log = journal.own(id).await?;
        self.run = Run::new();
        let mut records = journal.read(id, Seq(0));
        while let Some(stamped) = records.next().await {
            let stamped = stamped?;
            if stamped.thread == start.setup.who.thread {
                self.run.apply(&stamped)?;
            }
        }
        let log = self.seed(log, start).await?;
        start.session.queues().restore(&self.run);
        let left = self.run.is_open() && self.run.pauses().next().is_none();
        if left && matches!(start.begin, Begin::Run { .. }) {
            return self.close(log, &start.setup).await;
        }
        Ok(log)
    }

    /// Ends a run that the program before this one, or a dropped future, has left open.
    async fn close(&mut self, log: Box<dyn Log>, setup: &Arc<Setup>) -> Result<Box<dyn Log>, Error> {
        let mut port = LocalPort::observed(Arc::clone(setup), log, Arc::new(Mailbox::closed()), Arc::default());
        commit(&mut self.run, &mut port, vec![Record::CancelAsked { by: CancelBy::Shutdown }]).await?;
        drive(&mut self.run, &mut port).await?;
        port.into_log().await
    }

    async fn begin_and_drive(&mut self, port: &mut LocalPort, begin: &Begin) -> Result<Exit, Error> {
        if !matches!(begin, Begin::Run { .. }) {
            port.go_on(&self.run);
        }
        let records = match begin {
            Begin::Run { prompts, limits } => {
                let began = Record::Began { run: self.run.next_run(), prompts: prompts.clone(), limits: limits.clone() };
                port.opening(&self.run, began).await
            }
            Begin::Resume { answers } => port.hear_answers(&self.run, answers).await,
            Begin::Cancel => vec![Record::CancelAsked { by: CancelBy::User }],
        };
        commit(&mut self.run, port, records).await?;
        drive(&mut self.run, port).await
    }

    /// Shows the end of a run that never began: its log could not be opened, or another run waits and goes on waiting.
    fn tell_never(&self, start: &Start, mailbox: &Mailbox, error: &Error) {
        let (who, at_ms) = (Arc::clone(&start.setup.who), start.setup.world.now_ms());
        let waiting = self.run.result(&who).filter(|result| matches!(result.outcome, Outcome::Paused { .. }));
        let (run, turn, kind) = match waiting {
            Some(result) => (self.run.run(), self.run.turn(), EventKind::RunPaused { result: Arc::new(result) }),
            None => {
                let outcome = Outcome::Failed { failure: Failure::Log { message: chain(error).into() } };
                let result = Arc::new(RunResult::never(&who, outcome));
                (RunNo(0), TurnNo(0), EventKind::RunFinished { result })
            }
        };
        mailbox.push(Event { seq: self.run.seq(), at_ms, run, turn, who, kind });
    }

    /// The result of a run whose log gave up: what is known of it.
    fn lost(&self, start: &Start, error: Option<&Error>) -> RunResult {
        let message = error.map_or_else(|| "the run has no result".into(), |error| chain(error).into());
        let outcome = Outcome::Failed { failure: Failure::Log { message } };
        if !self.run.is_open() {
            // It never began: what the fold knows is the run before it.
            return RunResult::never(&start.setup.who, outcome);
        }
        let mut run = self.run.clone();
        run.give_up(outcome.clone());
        run.result(&start.setup.who).unwrap_or_else(|| RunResult::never(&start.setup.who, outcome))
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl LocalPort {
    /// Shows the end of the run: the one event that is no record and no delta.
    fn tell_end(&self, result: &RunResult) {
        if self.is_watched() {
            let result = Arc::new(result.clone());
            self.tell(match result.outcome {
                Outcome::Paused { .. } => EventKind::RunPaused { result },
                _ => EventKind::RunFinished { result },
            });
        }
    }
}
