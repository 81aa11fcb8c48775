//! For tests of resumable tools: enters a body again and again, as a run does after crashes and pauses.

mod door;
mod log;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use crate::{Answer, Ask, CallContext, Cancel, ToolError};
use door::CallHandle;
use log::Log;

/// The log of one call of a resumable tool, in memory; clones share it.
///
/// Every entry must request the steps and pauses of the entries before it, in the same order. The first one that
/// deviates fails with `Diverged`, even if the body ignores the error. A key may be requested again within an entry.
/// Progress and usage are discarded.
///
/// # Example
/// ```
/// use adjutant_tool::{Answer, Ask, CallContext, Cut, Entered, Reentry, ToolError};
///
/// async fn order(cx: CallContext) -> Result<String, ToolError> {
///     let number: u32 = cx.once("reserve", || async { Ok(7) }).await?;
///     cx.confirm("sure", format!("order number {number}?")).await?;
///     cx.once("ship", || async move { Ok(format!("shipped {number}")) }).await
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let call = Reentry::default();
/// assert_eq!(call.enter_until(Cut::After(1), order).await, Entered::Dropped);
/// let asked = vec![("sure".into(), Ask::approval("order number 7?"))];
/// assert_eq!(call.enter(order).await, Entered::Waiting(asked));
/// call.answer("sure", Answer::approve())?;
/// assert_eq!(call.enter(order).await, Entered::Ended("shipped 7".to_owned()));
/// assert_eq!((call.request_count("reserve"), call.ran("reserve")), (3, 1));
/// # Ok::<(), ToolError>(())
/// # }).expect("the answer fits");
/// ```
#[derive(Clone)]
pub struct Reentry {
    template: CallContext,
    log: Arc<Mutex<Log>>,
}

/// The place where an entry is dropped: the number of a step among the steps that the entry requests, from 1.
///
/// A step with a result in the log drops the entry when it is requested, and so does a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// Before the log knows of the step.
    Before(usize),
    /// After the work of the step, before its result is in the log.
    Within(usize),
    /// As soon as the log knows the result of the step.
    After(usize),
}

/// The end of an entry.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub enum Entered<T> {
    /// The body came to its end.
    Ended(T),
    /// The body failed, or diverged from the entries before it.
    Failed(ToolError),
    /// The body was dropped at the cut.
    Dropped,
    /// The body was dropped because it waits for answers: the keys, in order, with their questions.
    Waiting(Vec<(Arc<str>, Ask)>),
}

impl Reentry {
    /// Creates a call with the identity, the cancellation token and the handles of this context.
    pub fn within(template: CallContext) -> Self {
        Self {
            template,
            log: Arc::default(),
        }
    }

    /// Enters a body from the top, until it ends or waits for an answer.
    pub async fn enter<T, F>(&self, body: impl FnOnce(CallContext) -> F) -> Entered<T>
    where
        F: Future<Output = Result<T, ToolError>>,
    {
        self.run(None, body).await
    }

    /// Enters a body from the top, until it ends, waits for an answer, or is dropped at the cut.
    pub async fn enter_until<T, F>(
        &self,
        cut: Cut,
        body: impl FnOnce(CallContext) -> F,
    ) -> Entered<T>
    where
        F: Future<Output = Result<T, ToolError>>,
    {
        self.run(Some(cut), body).await
    }

    /// Answers a pause that waits; the next entry sees it.
    ///
    /// # Errors
    /// `InvalidArguments` if no question with this key is pending, or the answer does not fit it.
    pub fn answer(&self, key: &str, answer: Answer) -> Result<(), ToolError> {
        lock(&self.log).answer(key, answer)
    }

    /// The steps and pauses that the log knows of, in order.
    pub fn keys(&self) -> Vec<Arc<str>> {
        lock(&self.log).keys()
    }

    /// Returns the number of requests for a key, over all entries.
    pub fn request_count(&self, key: &str) -> usize {
        lock(&self.log).request_count(key)
    }

    /// Returns how often the work of a step was started, over all entries.
    pub fn ran(&self, key: &str) -> usize {
        lock(&self.log).ran(key)
    }

    async fn run<T, F>(&self, cut: Option<Cut>, body: impl FnOnce(CallContext) -> F) -> Entered<T>
    where
        F: Future<Output = Result<T, ToolError>>,
    {
        let entry = lock(&self.log).enter(cut);
        let dropped = Cancel::new();
        let door = CallHandle {
            log: Arc::clone(&self.log),
            entry,
            dropped: dropped.clone(),
            template: Arc::clone(&self.template.backend),
        };
        let outcome = {
            let mut body = pin!(body(self.template.through(Arc::new(door))));
            let mut dropped = pin!(dropped.cancelled());
            // The body first: an entry with several concurrent questions waits for all of them.
            std::future::poll_fn(|cx| match body.as_mut().poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => dropped.as_mut().poll(cx).map(|()| None),
            })
            .await
        };
        lock(&self.log).leave(outcome)
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Failures are equal if their kind and message are.
impl<T: PartialEq> PartialEq for Entered<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ended(one), Self::Ended(other)) => one == other,
            (Self::Failed(one), Self::Failed(other)) => {
                (one.kind, &one.message) == (other.kind, &other.message)
            }
            (Self::Dropped, Self::Dropped) => true,
            (Self::Waiting(one), Self::Waiting(other)) => one == other,
            _ => false,
        }
    }
}

impl Default for Reentry {
    /// A call outside any run.
    fn default() -> Self {
        Self::within(CallContext::detached())
    }
}

impl fmt::Debug for Reentry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reentry")
            .field("keys", &self.keys())
            .finish_non_exhaustive()
    }
}
