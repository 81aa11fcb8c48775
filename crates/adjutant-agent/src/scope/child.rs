//! A child: an agent under a call, and one answer of it at a time.

mod task;

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use adjutant_core::{CancelBy, Event, Limits, RunResult};
use adjutant_llm::{Entry, ThreadId, Transcript};
use adjutant_tool::{Identity, ToolError, ToolErrorKind};
use futures_core::Stream;
use futures_util::FutureExt;
use tokio::{runtime::Handle, sync::oneshot};
use tracing::Instrument;

use super::{CallScope, ChildSession, call::over, threads::ChildHolder};
use crate::{
    inbox::{AtWork, Inbox, Stopper},
    mailbox::Mailbox,
    prompt::Prompt,
    setup::{ParentLink, Setup},
};
use task::ChildTask;

pub(crate) use task::child_failed;
pub(super) use task::{ChildEnd, notify_stopped};

/// An agent under a call; see [`Spawn`](crate::Spawn).
///
/// Prompts go to it one after the other and continue one conversation. Dropping it does not stop it.
pub struct Child {
    core: Arc<ChildCore>,
}

/// The parts that a child is made of.
pub(crate) struct ChildCore {
    scope: Arc<CallScope>,
    key: Arc<str>,
    setup: Arc<Setup>,
    limits: Limits,
    session: Arc<dyn ChildSession>,
    /// The entries that its conversation begins with.
    seed: Mutex<Option<Vec<Entry>>>,
    stopper: Mutex<Option<Stopper>>,
}

/// One running answer of a child: the stream of its own events, which ends after `RunFinished`.
///
/// The child runs independently, whether its events are read or not; unread ones are stored until this is dropped.
/// Dropping it does not stop the child.
#[must_use = "what the child comes to is heard from this"]
pub struct ChildRun {
    batch: VecDeque<Event>,
    mailbox: Arc<Mailbox>,
    stopper: Stopper,
    ended: oneshot::Receiver<ChildEnd>,
    result: Option<ChildEnd>,
}

/// Stops a child if nothing waits for it any more.
struct WaitGuard {
    run: ChildRun,
    done: bool,
}

impl Child {
    pub(super) fn new(core: Arc<ChildCore>) -> Self {
        Self { core }
    }

    /// Returns its identity.
    pub fn identity(&self) -> &Identity {
        &self.core.setup.who
    }

    /// Returns its complete conversation, as of its latest answer.
    pub fn transcript(&self) -> Transcript {
        self.core.session.history()
    }

    /// Prompts the child and waits for its answer.
    ///
    /// When the call is entered again, an answer in the log is returned from there, and an incomplete one continues.
    /// If the child waits for the outside, the call is suspended, and this never returns.
    ///
    /// Cancel: the child's run is cancelled.
    ///
    /// # Errors
    /// `Failed` if the child failed or is running, `Denied` if a hook or the limit of agents forbids it, `Cancelled`
    /// if the call has ended, `Unattended` if it waits for the outside and the tool is not resumable,
    /// `InvalidArguments` if the prompt is empty. Limits and cancels are outcomes, not errors.
    pub async fn run(&self, prompt: impl Into<Prompt> + Send) -> Result<RunResult, ToolError> {
        let run = self.stream(prompt)?;
        run.mailbox.close();
        let mut waiting = WaitGuard { run, done: false };
        let result = std::future::poll_fn(|cx| waiting.run.poll_end(cx)).await;
        waiting.done = true;
        result
    }

    /// Prompts the child; its events can be read, and its answer waited for.
    ///
    /// # Errors
    /// Like [`run`](Child::run), if they are known immediately.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> Result<ChildRun, ToolError> {
        let invalid = |error: adjutant_core::Error| {
            ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
        };
        let prompts = prompt.into().into_nonempty_entries().map_err(invalid)?;
        let core = &self.core;
        let runtime = Handle::try_current().map_err(|error| {
            ToolError::failed("agents under a call need a tokio runtime").with_source(error)
        })?;
        // An answer in the log needs no place among the running agents.
        let budget = core.scope.budget().filter(|_| !core.scope.is_known(core));
        let permit = budget
            .map(|budget| budget.take_permit(core.thread()))
            .transpose()
            .map_err(|limit| over(&limit))?;
        let claim = Arc::clone(&core.session).claim().map_err(|_| {
            ToolError::failed(format!("the child {:?} is already active", core.key))
        })?;
        let (mailbox, inbox) = (Arc::new(Mailbox::default()), Arc::new(Inbox::default()));
        let (heard, ended) = oneshot::channel();
        let stopper = Stopper {
            inbox: Arc::clone(&inbox),
        };
        core.scope.begin(core, |number, ordinal| {
            let (who, queues) = (Arc::clone(&core.setup.who), core.session.queue());
            core.scope.first().admit(AtWork {
                who,
                inbox: Arc::clone(&inbox),
                queues,
            });
            let mailbox = Arc::clone(&mailbox);
            let task = ChildTask {
                core: Arc::clone(core),
                number,
                ordinal,
                prompts,
                claim,
                mailbox,
                inbox,
                permit,
            };
            runtime.spawn(task.perform(heard).in_current_span())
        })?;
        *core.stopper.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper.clone());
        Ok(ChildRun {
            batch: VecDeque::new(),
            mailbox,
            stopper,
            ended,
            result: None,
        })
    }

    /// Cancels the current run of the child.
    pub fn cancel(&self) {
        let stopper = self
            .core
            .stopper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(stopper) = stopper {
            stopper.stop(CancelBy::Parent);
        }
    }
}

impl ChildCore {
    pub(super) fn new(
        scope: Arc<CallScope>,
        key: Arc<str>,
        setup: Arc<Setup>,
        limits: Limits,
        session: Arc<dyn ChildSession>,
        history: Option<Transcript>,
    ) -> Self {
        let seed =
            history.map(|history| history.iter().map(|stored| stored.entry.clone()).collect());
        Self {
            scope,
            key,
            setup,
            limits,
            session,
            seed: Mutex::new(seed),
            stopper: Mutex::default(),
        }
    }

    pub(super) fn scope(&self) -> &Arc<CallScope> {
        &self.scope
    }

    pub(super) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(super) fn thread(&self) -> &ThreadId {
        &self.setup.who.thread
    }

    pub(super) fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn session(&self) -> &Arc<dyn ChildSession> {
        &self.session
    }

    pub(super) fn take_seed(&self) -> Option<Vec<Entry>> {
        self.seed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(super) fn within(&self) -> &ParentLink {
        self.setup
            .within
            .as_deref()
            .expect("a child is furnished with its place")
    }
}

impl ChildHolder for ChildCore {
    fn is_open(&self) -> bool {
        !self.scope.is_closed()
    }
}

impl ChildRun {
    /// Waits for the answer without looking at further events.
    ///
    /// Cancel: the child continues.
    ///
    /// # Errors
    /// Like [`Child::run`].
    pub async fn finish(mut self) -> Result<RunResult, ToolError> {
        self.mailbox.close();
        std::future::poll_fn(|cx| self.poll_end(cx)).await
    }

    /// Cancels the child.
    pub fn cancel(&self) {
        self.stopper.stop(CancelBy::Parent);
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<ChildEnd> {
        if let Some(result) = self.result.take() {
            return Poll::Ready(result);
        }
        let ended = ready!(self.ended.poll_unpin(cx));
        Poll::Ready(ended.unwrap_or_else(|_| {
            Err(ToolError::failed(
                "the child was lost: it panicked or was given up",
            ))
        }))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.batch.pop_front() {
                return Poll::Ready(Some(event));
            }
            // Checked first: events before the end are read afterwards.
            let over = self.result.is_some();
            self.mailbox.take(&mut self.batch);
            if !self.batch.is_empty() {
                continue;
            }
            if over {
                return Poll::Ready(None);
            }
            match self.poll_end(cx) {
                Poll::Ready(result) => self.result = Some(result),
                Poll::Pending if self.mailbox.watch(cx) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Stream for ChildRun {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for ChildRun {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        if !self.done {
            self.run.cancel();
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("thread", self.core.thread())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChildRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildRun")
            .field("ended", &self.result.is_some())
            .finish_non_exhaustive()
    }
}
