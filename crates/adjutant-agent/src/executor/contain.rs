//! Contain: runs the body of a tool, with its panics, its timeout, its cancellation, and its suspension.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use adjutant_core::{chain, panic_text};
use adjutant_llm::{CallResult, Status};
use adjutant_tool::{Bound, CallBackend, CallContext, Identity, ToolError, ToolErrorKind};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

use super::call_handle::CallHandle;

/// The end of a body.
pub(super) type CallEnd = Result<CallResult, ToolError>;

/// A body, contained.
pub(super) struct Contained<'a> {
    pub(super) door: &'a CallHandle,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    /// True if the body may be dropped at any place.
    pub(super) pure: bool,
}

/// The way in which a body was left.
enum BodyExit {
    Ended(CallEnd),
    Stopped,
    Parked,
    Late(Duration),
}

/// Returns the future that runs for a call; it owns all it needs.
pub(super) fn body(
    tool: Bound,
    args: Value,
    who: Arc<Identity>,
    door: &Arc<CallHandle>,
) -> impl Future<Output = CallEnd> + Send + use<> {
    door.scope.enter(&door.stop);
    let cx = CallContext::new(
        who,
        door.stop.clone(),
        Arc::clone(door) as Arc<dyn CallBackend>,
    );
    let contained = AssertUnwindSafe(async move { tool.call(args, cx).await }).catch_unwind();
    let contained = contained.instrument(Span::current());
    contained.map(|outcome| outcome.unwrap_or_else(|panic| Ok(panic_result(&*panic))))
}

impl Contained<'_> {
    /// Waits for the body, within its timeout, and not much longer than its result is needed.
    ///
    /// The scope drops the body of a suspended call.
    pub(super) async fn wait(
        &self,
        mut body: Pin<&mut impl Future<Output = CallEnd>>,
    ) -> CallResult {
        let ended = match futures_util::poll!(body.as_mut()) {
            Poll::Ready(ended) => Some(ended),
            Poll::Pending => {
                let is_over = AtomicBool::new(false);
                // Boxed, so that a call which ends at once stays small.
                match go_on(
                    Box::pin(self.outlast(pin!(Polled::new(body, &is_over)))),
                    &is_over,
                )
                .await
                {
                    Ok(ended) => ended,
                    Err(limit) => {
                        self.door.stop.cancel();
                        let message = format!(
                            "the tool did not end within {limit:?} and was given up; it may have taken effect"
                        );
                        return CallResult::new(Status::TimedOut, message);
                    }
                }
            }
        };
        self.door.stop.cancel();
        let diverged = ended.as_ref().and_then(|_| self.door.divergence());
        match (ended, diverged) {
            (_, Some(error)) | (Some(Err(error)), None) => failure_result(&error),
            (Some(Ok(result)), None) => result,
            (None, None) => CallResult::new(
                Status::Cancelled,
                "cancelled: the call was stopped; it may have taken effect",
            ),
        }
    }

    /// Waits for a body that did not end immediately; `None` if it was abandoned because of a cancellation.
    ///
    /// # Errors
    /// The time limit that it exceeded.
    async fn outlast(
        &self,
        mut body: Pin<&mut impl Future<Output = CallEnd>>,
    ) -> Result<Option<CallEnd>, Duration> {
        let left = match self.leave(body.as_mut()).await {
            BodyExit::Parked => self.give_way(body.as_mut()).await,
            left => left,
        };
        match left {
            BodyExit::Ended(ended) => Ok(Some(ended)),
            BodyExit::Late(limit) => Err(limit),
            BodyExit::Stopped if self.pure => Ok(None),
            BodyExit::Stopped => Ok(tokio::time::timeout(self.grace, body).await.ok()),
            BodyExit::Parked => Ok(None),
        }
    }

    /// Lets the scope drop the body once its children are idle as well; a running step is not interrupted, because
    /// its effect would be unknown.
    async fn give_way(&self, mut body: Pin<&mut impl Future<Output = CallEnd>>) -> BodyExit {
        tokio::select! {
            biased;
            ended = body.as_mut() => return BodyExit::Ended(ended),
            () = self.door.at_rest() => {}
            () = tokio::time::sleep(self.grace) => {}
        }
        loop {
            self.door.scope.suspension.suspend(self.door.open_pauses());
            tokio::select! {
                biased;
                ended = body.as_mut() => return BodyExit::Ended(ended),
                () = self.door.stop.cancelled() => return BodyExit::Stopped,
                () = self.door.parked.notified() => {}
            }
        }
    }

    async fn leave(&self, body: Pin<&mut impl Future<Output = CallEnd>>) -> BodyExit {
        let limit = async {
            match self.timeout {
                Some(timeout) => {
                    self.door.scope.standstill().elapsed(timeout).await;
                    timeout
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = body => BodyExit::Ended(ended),
            () = self.door.stop.cancelled() => BodyExit::Stopped,
            () = self.door.parked.notified() => BodyExit::Parked,
            limit = limit => BodyExit::Late(limit),
        }
    }
}

/// A future that is pending in this very poll, among others that are polled now: it is not polled twice for one wake.
pub(super) struct Polled<'a, F> {
    body: Pin<&'a mut F>,
    is_over: &'a AtomicBool,
}

impl<F: Future> Future for Polled<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Independent of an earlier poll here: the holder may have had no time left for it in that poll.
        if self.is_over.load(Ordering::Relaxed) {
            self.body.as_mut().poll(cx)
        } else {
            Poll::Pending
        }
    }
}

impl<'a, F: Future> Polled<'a, F> {
    pub(super) fn new(body: Pin<&'a mut F>, is_over: &'a AtomicBool) -> Self {
        Self { body, is_over }
    }
}

/// Polls the holder of a polled future, and records that this poll is over.
pub(super) fn go_on<R: Future>(
    mut rest: Pin<Box<R>>,
    is_over: &AtomicBool,
) -> impl Future<Output = R::Output> {
    poll_fn(move |cx| {
        let polled = rest.as_mut().poll(cx);
        is_over.store(true, Ordering::Relaxed);
        polled
    })
}

/// The result of a call that failed with this error.
pub(super) fn failure_result(error: &ToolError) -> CallResult {
    let status = match error.kind {
        ToolErrorKind::InvalidArguments => Status::InvalidArguments,
        ToolErrorKind::Denied => Status::Denied,
        ToolErrorKind::Cancelled => Status::Cancelled,
        ToolErrorKind::TimedOut => Status::TimedOut,
        ToolErrorKind::OutcomeUnknown => Status::OutcomeUnknown,
        _ => Status::Failed,
    };
    CallResult::new(status, chain(error))
}

fn panic_result(panic: &(dyn std::any::Any + Send)) -> CallResult {
    CallResult::new(
        Status::Panicked,
        format!("the tool panicked: {}", panic_text(panic)),
    )
}

/// A body on a separate task; dropping it aborts the task.
#[derive(Debug)]
pub(super) struct Spawned(pub(super) JoinHandle<CallEnd>);

impl Future for Spawned {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_unpin(cx).map(|joined| {
            joined.unwrap_or_else(|error| {
                Err(ToolError::failed("the task of the tool was lost").with_source(error))
            })
        })
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
