//! A live run: a stream of events that drives the run while it is polled.

use std::{
    collections::VecDeque,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use adjutant_core::{CancelBy, Error, Event, RunResult};
use futures_core::Stream;
use tokio::{runtime::Handle, task::JoinHandle};

use crate::{
    inbox::{Inbox, Stopper},
    mailbox::Mailbox,
    session::{Claim, Session, Start, perform},
};

/// A live run: the stream of its events, which ends after `RunFinished`.
///
/// The run makes progress while the stream is polled; [`detach`](Running::detach) moves it to a task. Dropping the
/// stream cancels the run: its turn is closed in the background, and the session can be used again.
#[must_use = "a run does nothing until its events are read"]
pub struct Running {
    batch: VecDeque<Event>,
    mailbox: Arc<Mailbox>,
    stopper: Stopper,
    session: Arc<Session>,
    drive: Option<Drive>,
    /// True if events wait until the log holds their records.
    is_saved: bool,
    /// The pending request to save events.
    saving: Option<Saving>,
    result: Option<Result<RunResult, Error>>,
}

type Saving = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
type Drive = Pin<Box<dyn Future<Output = Result<RunResult, Error>> + Send>>;

impl Running {
    pub(crate) fn new(start: Start, claim: Claim) -> Self {
        let mailbox = Arc::new(Mailbox::with_listeners(Arc::clone(
            start.session.listeners(),
        )));
        let inbox = Arc::new(Inbox::default());
        let session = Arc::clone(&start.session);
        let stopper = Stopper {
            inbox: Arc::clone(&inbox),
        };
        let (live, events) = (session.go_live(stopper.clone()), Arc::clone(&mailbox));
        let drive = async move {
            let performed = perform(start, claim, events, inbox).await;
            live.end(&performed);
            performed
        };
        Self {
            batch: VecDeque::new(),
            mailbox,
            stopper,
            session,
            drive: Some(Box::pin(drive)),
            is_saved: false,
            saving: None,
            result: None,
        }
    }

    /// Gives no event before the log holds its record, so that a place that was seen is never another record's.
    ///
    /// Events that are ready together are saved together; if their records are already saved, nothing is. Events that
    /// could not be saved are not returned: the result contains the error.
    pub fn only_saved(mut self) -> Self {
        self.is_saved = true;
        self
    }

    /// The session that the run belongs to.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The next event; `None` after the last one.
    ///
    /// Cancel: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Stops the run from anywhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Cancels the run: the reply is interrupted, calls are cancelled, the turn is closed, and events report it.
    pub fn cancel(&self) {
        self.stopper.stop(CancelBy::User);
    }

    /// Drives the run to its end without looking at further events.
    ///
    /// Cancel: the run is cancelled.
    ///
    /// # Errors
    /// `Failed` if the run failed, and whatever kept it from being performed.
    // Not an async function: its future would hold the run twice, and thousands of agents may wait in one.
    pub fn finish(mut self) -> impl Future<Output = Result<RunResult, Error>> + Send {
        self.mailbox.close();
        std::future::poll_fn(move |cx| self.poll_end(cx))
    }

    /// Returns the run without a reader of its events.
    pub(crate) fn unheard(self) -> Self {
        self.mailbox.close();
        self
    }

    /// Drives the run and passes its events over.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<RunResult, Error>> {
        while ready!(self.poll_event(cx)).is_some() {}
        let result = self.result.take().unwrap_or_else(|| Err(Error::Stuck));
        Poll::Ready(result.and_then(Error::check_result))
    }

    /// Drives the run to its end and returns the text of its answer.
    ///
    /// Cancel: the run is cancelled.
    ///
    /// # Errors
    /// `Failed` if the run failed, `Unanswered` if it has no answer, and whatever kept it from being performed.
    pub async fn text(self) -> Result<String, Error> {
        Arc::new(self.finish().await?).answer()
    }

    /// Makes everything durable that was emitted so far, including the text of an incomplete reply; drives the run
    /// while it waits.
    ///
    /// After a crash or a cancel the session contains at least the acknowledged part. The agent's durability decides
    /// how durable it is; `OnExit` does not flush here. After the run it returns immediately.
    ///
    /// Cancel: emitted records may be durable or not.
    ///
    /// # Errors
    /// `Journal` if the log could not be written.
    pub async fn acknowledge(&mut self) -> Result<(), Error> {
        let session = Arc::clone(&self.session);
        let mut saving = pin!(session.acknowledge(&self.stopper.inbox));
        let (drive, result) = (&mut self.drive, &mut self.result);
        std::future::poll_fn(|cx| {
            loop {
                if let Poll::Ready(saved) = saving.as_mut().poll(cx) {
                    return Poll::Ready(saved);
                }
                let Some(driven) = drive.as_mut() else {
                    return Poll::Pending;
                };
                let Poll::Ready(performed) = driven.as_mut().poll(cx) else {
                    break;
                };
                *result = Some(performed);
                *drive = None;
            }
            saving.as_mut().poll(cx)
        })
        .await
    }

    /// Returns the result of the run, once its last event was read.
    pub fn result(&self) -> Option<Result<&RunResult, &Error>> {
        self.result.as_ref().map(Result::as_ref)
    }

    /// Moves the run to a task of the current tokio runtime; its events are dropped.
    ///
    /// The handle returns the result; dropping the handle does not stop the run.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn detach(mut self) -> JoinHandle<Result<RunResult, Error>> {
        self.mailbox.close();
        let (drive, result) = (self.drive.take(), self.result.take());
        tokio::spawn(async move {
            let result = match (drive, result) {
                (Some(drive), _) => drive.await,
                (None, Some(result)) => result,
                (None, None) => Err(Error::Stuck),
            };
            result.and_then(Error::check_result)
        })
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            let is_saving = self.poll_saving(cx).is_pending();
            if !is_saving {
                if let Some(event) = self.batch.pop_front() {
                    return Poll::Ready(Some(event));
                }
                self.mailbox.take(&mut self.batch);
                if !self.batch.is_empty() {
                    self.save();
                    continue;
                }
            }
            let Some(drive) = &mut self.drive else {
                return if is_saving {
                    Poll::Pending
                } else {
                    Poll::Ready(None)
                };
            };
            match drive.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    self.result = Some(result);
                    self.drive = None;
                }
                // The drive may have saved them just now.
                Poll::Pending if is_saving && self.poll_saving(cx).is_pending() => {
                    return Poll::Pending;
                }
                Poll::Pending if is_saving => {}
                Poll::Pending if self.mailbox.watch(cx) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Requests a save of the current events, if they need one.
    fn save(&mut self) {
        if !self.is_saved
            || self
                .batch
                .iter()
                .all(|event| self.mailbox.is_saved(event.seq))
        {
            return;
        }
        let (session, inbox) = (Arc::clone(&self.session), Arc::clone(&self.stopper.inbox));
        self.saving = Some(Box::pin(async move { session.acknowledge(&inbox).await }));
    }

    /// Waits until the current events are saved; events that cannot be saved are dropped.
    fn poll_saving(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(saving) = &mut self.saving else {
            return Poll::Ready(());
        };
        let saved = ready!(saving.as_mut().poll(cx));
        self.saving = None;
        if saved.is_err() {
            self.batch.retain(|event| self.mailbox.is_saved(event.seq));
        }
        Poll::Ready(())
    }
}

impl Stream for Running {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(drive) = self.drive.take() else {
            return;
        };
        self.mailbox.close();
        self.stopper.stop(CancelBy::User);
        self.session.leave();
        // Without a runtime nothing can be closed now; the next run of the session does it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(drive);
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("session", self.session.id())
            .field("ended", &self.drive.is_none())
            .finish()
    }
}
