//! One active run: a stream of its events that counts as active until it is dropped.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use adjutant_agent::{CancelBy, Event, EventKind, Outcome, Pause, RunResult};
use adjutant_llm::CallId;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Sleep,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{
    Lead,
    lead::LeadRun,
    open::{OpenRun, OpenRuns, OpenState},
    told,
};
use crate::error::{Error, ErrorKind};

/// The maximum number of idle sessions that stay open.
const MAX_IDLE: usize = 16;
/// The maximum number of runs without a waiting client.
const MAX_DETACHED: usize = 192;

/// Notifications for an observer of runs, without texts of prompts and answers.
#[derive(Debug)]
pub(crate) enum Work<'a> {
    /// A run started.
    Began {
        /// Its session; `None` for an object.
        session: Option<&'a str>,
    },
    /// A run ended, or was abandoned.
    Ended {
        /// Its session; `None` for an object.
        session: Option<&'a str>,
        /// The result of the run; `None` if it was abandoned before its end, or never started.
        result: Option<&'a RunResult>,
        /// The error that ended it without a result.
        error: Option<&'a Error>,
    },
}

/// Observes runs.
pub(crate) type Observer = Arc<dyn Fn(&Work<'_>) + Send + Sync>;

/// The active sessions, and their number.
pub(crate) struct SessionTable {
    sessions: Mutex<Sessions>,
    runs: watch::Sender<usize>,
    open: Mutex<OpenRuns>,
    /// Held while the pauses of a session are read, so that a concurrent answer waits instead of being refused.
    pub(super) looking: tokio::sync::Mutex<()>,
    observer: Mutex<Option<Observer>>,
    /// The permits of runs without a client.
    detached: Arc<Semaphore>,
    /// Cancelled when everything must stop, and nothing new starts.
    pub(super) stopping: CancellationToken,
    /// Cancelled when all remaining runs are abandoned.
    pub(super) leaving: CancellationToken,
    /// True if the remaining runs continue at the next start.
    goes_on: AtomicBool,
}

#[derive(Default)]
struct Sessions {
    open: BTreeMap<Arc<str>, OpenWork>,
    /// The counter of uses, for the least recently used session.
    uses: u64,
}

#[derive(Default)]
struct OpenWork {
    lead: Option<Lead>,
    at_work: bool,
    used: u64,
    /// The channel for requests about the active run.
    wishes: Option<mpsc::UnboundedSender<Wish>>,
}

/// A request about an active run.
#[derive(Debug)]
pub(super) enum Wish {
    Stop,
    StopCall(CallId),
}

/// An active slot: exclusively for a session, or for an object.
pub(super) struct SessionSlot {
    table: Arc<SessionTable>,
    session: Option<Arc<str>>,
    /// The state of its run before the answer, until the answer is processed.
    former: Option<OpenRun>,
    /// The pauses at that time.
    waited: Vec<Arc<Pause>>,
    has_begun: bool,
    ended: Option<Result<Arc<RunResult>, Error>>,
}

/// The events of one run; the last one contains its outcome.
pub(super) struct RunStream {
    run: Option<LeadRun>,
    /// The first events, which were awaited.
    first: VecDeque<Event>,
    slot: SessionSlot,
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    leaving: Pin<Box<WaitForCancellationFutureOwned>>,
    deadline: Option<Pin<Box<Sleep>>>,
    wishes: mpsc::UnboundedReceiver<Wish>,
}

impl SessionTable {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            sessions: Mutex::default(),
            runs: watch::Sender::new(0),
            open: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            observer: Mutex::default(),
            detached: Arc::new(Semaphore::new(MAX_DETACHED)),
            stopping: CancellationToken::new(),
            leaving: CancellationToken::new(),
            goes_on: AtomicBool::new(false),
        })
    }

    /// Returns the number of active runs, as a watch.
    pub(super) fn runs(&self) -> watch::Receiver<usize> {
        self.runs.subscribe()
    }

    /// Refuses new work, requests all runs to stop, and waits until they have stopped; then abandons the rest. For an
    /// update, all runs are abandoned immediately, and continue after it.
    pub(super) async fn close(&self, grace: Duration) {
        if self.open().is_updated() {
            self.goes_on.store(true, Ordering::Release);
            self.leaving.cancel();
        }
        self.stopping.cancel();
        let mut runs = self.runs();
        // The table holds the sender.
        let ended = tokio::time::timeout(grace, runs.wait_for(|runs| *runs == 0)).await;
        if ended.is_err() {
            self.leaving.cancel();
        }
    }

    pub(super) fn observe(&self, observer: Observer) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    /// Acquires a session, or a slot without one.
    ///
    /// # Errors
    /// `Conflict` if a run of the session is active, `Closed` if the agent was stopped.
    pub(super) fn sit(self: &Arc<Self>, session: Option<&Arc<str>>) -> Result<SessionSlot, Error> {
        if self.stopping.is_cancelled() {
            return Err(told::stopped());
        }
        if let Some(name) = session {
            let mut sessions = self.sessions();
            sessions.uses += 1;
            let used = sessions.uses;
            let open = sessions.open.entry(Arc::clone(name)).or_default();
            if open.at_work {
                let message = format!(
                    "a run of the session {name:?} is at work; hint: wait for it, or name another session"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            (open.at_work, open.used) = (true, used);
        }
        self.runs.send_modify(|runs| *runs += 1);
        self.tell(&Work::Began {
            session: session.map(|name| &**name),
        });
        Ok(SessionSlot {
            table: Arc::clone(self),
            session: session.cloned(),
            former: None,
            waited: Vec::new(),
            has_begun: false,
            ended: None,
        })
    }

    /// Closes idle sessions, except for the recently used ones.
    fn tidy(sessions: &mut Sessions) {
        let idle = sessions.open.iter().filter(|(_, open)| !open.at_work);
        let mut idle: Vec<(u64, Arc<str>)> = idle
            .map(|(name, open)| (open.used, Arc::clone(name)))
            .collect();
        idle.sort();
        let many = idle.len().saturating_sub(MAX_IDLE);
        for (_, name) in idle.into_iter().take(many) {
            sessions.open.remove(&name);
        }
    }

    fn tell(&self, work: &Work<'_>) {
        let observer = self
            .observer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        observer.iter().for_each(|observer| observer(work));
    }

    /// Returns the lead of a session: the open one, or a new one.
    pub(super) fn lead(
        &self,
        name: &Arc<str>,
        make: impl FnOnce(&str) -> Result<Lead, Error>,
    ) -> Result<Lead, Error> {
        let kept = self
            .sessions()
            .open
            .get(name)
            .and_then(|open| open.lead.clone());
        if let Some(lead) = kept {
            return Ok(lead);
        }
        let lead = make(name)?;
        let mut sessions = self.sessions();
        let open = sessions.open.entry(Arc::clone(name)).or_default();
        Ok(open.lead.get_or_insert(lead).clone())
    }

    /// Sends a request to the active run of a session; false without one.
    pub(super) fn wish(&self, session: &str, wish: Wish) -> bool {
        let sessions = self.sessions();
        let open = sessions.open.get(session).filter(|open| open.at_work);
        open.and_then(|open| open.wishes.as_ref())
            .is_some_and(|wishes| wishes.send(wish).is_ok())
    }

    /// Acquires a permit for a run without a client.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.detached).try_acquire_owned().map_err(|_| {
            Error::new(
                ErrorKind::Busy,
                format!("{MAX_DETACHED} runs are at work already; hint: ask again later"),
            )
        })
    }

    /// True if a run is active in a session.
    pub(super) fn is_at_work(&self, session: &str) -> bool {
        self.sessions()
            .open
            .get(session)
            .is_some_and(|open| open.at_work)
    }

    /// True if a crash interrupted the run of a session, and its continuation is undecided.
    pub(super) fn is_left(&self, session: &str) -> bool {
        self.open()
            .get(session)
            .is_some_and(|run| run.state == OpenState::Left)
    }

    /// Returns the unfinished runs.
    pub(super) fn open(&self) -> MutexGuard<'_, OpenRuns> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the unused leads, except for the most recently used.
    pub(super) fn forget(&self) {
        Self::tidy(&mut self.sessions());
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionSlot {
    /// Returns the lead of the session: the open one, or a new one.
    pub(super) fn lead(
        &self,
        make: impl FnOnce(&str) -> Result<Lead, Error>,
    ) -> Result<Lead, Error> {
        match &self.session {
            Some(name) => self.table.lead(name, make),
            None => Err(Error::new(ErrorKind::Invalid, "no session is named")),
        }
    }

    /// Receives requests about the run from now on.
    fn listen(&self) -> mpsc::UnboundedReceiver<Wish> {
        let (wishes, heard) = mpsc::unbounded_channel();
        let open = self
            .session
            .as_ref()
            .map(|name| (self.table.sessions(), name));
        if let Some((mut sessions, name)) = open
            && let Some(open) = sessions.open.get_mut(name)
        {
            open.wishes = Some(wishes);
        }
        heard
    }

    /// Drops the agent of the session, which releases its log.
    pub(super) fn let_go(&self) {
        if let Some(name) = &self.session
            && let Some(open) = self.table.sessions().open.get_mut(name)
        {
            open.lead = None;
        }
    }

    /// Records the state of the run.
    fn note(&self, note: impl FnOnce(&mut OpenRuns, &Arc<str>)) {
        if let Some(session) = &self.session {
            note(&mut self.table.open(), session);
        }
    }

    /// Records that a waiting run is about to be answered: it counts as active before the answer is in the log, so that
    /// it continues after a crash in between. If the answer is not processed, it waits again.
    pub(super) fn answers(&mut self, waited: Vec<Arc<Pause>>) {
        let Some(session) = &self.session else { return };
        let mut open = self.table.open();
        if let Some(run) = open
            .get(session)
            .filter(|run| run.state == OpenState::Waiting)
        {
            open.set(
                session,
                Some(OpenRun {
                    state: OpenState::Working,
                    ..run
                }),
            );
            (self.former, self.waited) = (Some(run), waited);
        }
    }

    /// Returns the time since when it waits, if only for earlier pauses.
    fn waits_since(&self, result: &RunResult) -> Option<u64> {
        let Outcome::Paused { pauses } = &result.outcome else {
            return None;
        };
        let is_old = pauses
            .iter()
            .all(|pause| self.waited.iter().any(|it| it.id == pause.id));
        self.former.filter(|_| is_old).map(|run| run.since_ms)
    }

    /// Reports the result of the run.
    pub(super) fn end(&mut self, ended: Result<Arc<RunResult>, Error>) {
        self.ended = Some(ended);
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        if let Some(former) = self.former.take().filter(|_| !self.has_begun) {
            self.note(|open, session| {
                if open.get(session).is_some_and(|run| !run.waits()) {
                    open.set(session, Some(former));
                }
            });
        }
        let (result, error) = match &self.ended {
            Some(Ok(result)) => (Some(&**result), None),
            Some(Err(error)) => (None, Some(error)),
            None => {
                // It is no longer needed: it is cancelled, and not resumed after a crash.
                if self.has_begun {
                    self.note(|open, session| open.set(session, None));
                }
                (None, None)
            }
        };
        self.table.tell(&Work::Ended {
            session: self.session.as_deref(),
            result,
            error,
        });
        if let Some(name) = &self.session {
            let mut sessions = self.table.sessions();
            if let Some(open) = sessions.open.get_mut(name) {
                (open.at_work, open.wishes) = (false, None);
            }
            SessionTable::tidy(&mut sessions);
        }
        self.table
            .runs
            .send_modify(|runs| *runs = runs.saturating_sub(1));
    }
}

impl RunStream {
    /// Runs up to the first event.
    ///
    /// # Errors
    /// The reason why it could not start.
    pub(super) async fn begin(
        run: LeadRun,
        slot: SessionSlot,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let (stopping, leaving) = (slot.table.stopping.clone(), slot.table.leaving.clone());
        let wishes = slot.listen();
        let mut stream = Self {
            wishes,
            run: Some(run),
            first: VecDeque::new(),
            slot,
            stopping: Some(Box::pin(stopping.cancelled_owned())),
            leaving: Box::pin(leaving.cancelled_owned()),
            deadline: timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout))),
        };
        let first = stream.next().await.transpose()?;
        // A run that cannot start ends immediately, and then returns the reason.
        let is_over = first.as_ref().is_some_and(is_end);
        let second = if is_over {
            stream.next().await.transpose()?
        } else {
            None
        };
        let Some(begun) = &first else {
            return Err(Error::new(
                ErrorKind::Agent,
                "the run ended without a result",
            ));
        };
        if !is_over {
            stream.slot.has_begun = true;
            stream
                .slot
                .note(|open, session| open.work(session, begun.at_ms));
        }
        stream.first.extend(first.into_iter().chain(second));
        Ok(stream)
    }

    /// Runs to the end, without a waiting client.
    pub(super) fn detach(self, place: OwnedSemaphorePermit) {
        tokio::spawn(async move {
            let _place = place;
            // Its log contains its end, and an observer is notified.
            let _ended = self.finish().await;
        });
    }

    /// Runs to the end.
    pub(super) async fn finish(mut self) -> Result<Arc<RunResult>, Error> {
        while let Some(item) = self.next().await {
            item?;
        }
        match self.slot.ended.clone() {
            Some(ended) => ended,
            None => Err(Error::new(
                ErrorKind::Agent,
                "the run ended without a result",
            )),
        }
    }

    /// Runs to the end in a separate task, whether or not its events are read.
    pub(super) fn on_its_own(
        mut self,
    ) -> impl Stream<Item = Result<Event, Error>> + Send + 'static {
        let (sender, mut heard) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(item) = self.next().await {
                // There may be no receiver.
                let _ = sender.send(item).await;
            }
        });
        stream::poll_fn(move |cx| heard.poll_recv(cx))
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(first) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(run) = &mut self.run else {
            return Poll::Ready(None);
        };
        if self.leaving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(self.leave())));
        }
        if self
            .stopping
            .as_mut()
            .is_some_and(|stopping| stopping.as_mut().poll(cx).is_ready())
        {
            self.stopping = None;
            run.stop(CancelBy::Shutdown);
        }
        if self
            .deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready())
        {
            self.deadline = None;
            run.stop(CancelBy::Deadline);
        }
        while let Poll::Ready(Some(wish)) = self.wishes.poll_recv(cx) {
            match wish {
                Wish::Stop => run.stop(CancelBy::User),
                Wish::StopCall(call) => run.stop_call(call),
            }
        }
        match run.poll_event(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => {
                if let (EventKind::RunPaused { result }, 0) = (&event.kind, event.who.depth) {
                    let since_ms = self.slot.waits_since(result).unwrap_or(event.at_ms);
                    self.slot.note(|open, session| open.wait(session, since_ms));
                }
                Poll::Ready(Some(Ok(event)))
            }
            Poll::Ready(None) => match run.ended() {
                Ok(result) => {
                    self.run = None;
                    if !matches!(result.outcome, Outcome::Paused { .. }) {
                        self.slot.note(|open, session| open.set(session, None));
                    }
                    self.slot.end(Ok(result));
                    Poll::Ready(None)
                }
                Err(error) => Poll::Ready(Some(Err(self.fail(error)))),
            },
        }
    }

    fn leave(&mut self) -> Error {
        if !self.slot.table.goes_on.load(Ordering::Acquire) {
            return self.fail(told::stopped());
        }
        // It counts as active, because it has started or its answer was processed.
        self.slot.former = None;
        self.run.take().into_iter().for_each(LeadRun::leave);
        self.fail(told::updated())
    }

    fn fail(&mut self, error: Error) -> Error {
        self.run = None;
        self.slot.end(Err(error.clone()));
        error
    }
}

impl Stream for RunStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(cx)
    }
}

fn is_end(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::RunFinished { .. } | EventKind::RunPaused { .. }
    )
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTable")
            .field("runs", &*self.runs.borrow())
            .finish_non_exhaustive()
    }
}
