//! Call: run a tool, contained: its panic, its time, its wish to stop, and the size of what it says.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjutant_llm::{Call, CallId, CallResult, Status, Usage, telemetry};
use adjutant_tool::{Bound, CallContextBuilder, CallPort, Cancel, Noted, Progress, Replay, ToolError, ToolErrorKind};
use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::Value;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
    task::JoinHandle,
};
use tracing::{Instrument, Span};

use super::{Feed, LocalPort, Performed, Place, bound, prepare};
use crate::{
    ActId, EventKind, Record, Run,
    inbox::{Inbox, Input},
    run::Step,
};

/// One call, ready to run.
struct Job {
    feed: Arc<Feed>,
    call: Call,
    tool: Option<Bound>,
    args: Result<Value, Arc<str>>,
    ran: Option<Arc<str>>,
    pure: bool,
    spawn: bool,
    door: Arc<Door>,
    stop: Cancel,
}

impl LocalPort {
    /// The arguments that this drive has admitted a call with, already read.
    fn take_args(&mut self, call: CallId) -> Option<Value> {
        let at = self.args.iter().position(|(admitted, _)| *admitted == call)?;
        Some(self.args.swap_remove(at).1)
    }

    pub(super) fn call(&mut self, run: &Run, id: CallId, replay: Replay) {
        let Some((call, text, changed)) = run.admitted(id) else { return };
        let door = Door {
            feed: Arc::clone(&self.feed),
            place: self.place,
            inbox: Arc::clone(&self.inbox),
            call: id,
            resumable: replay == Replay::Resumable,
            steps: Mutex::new(run.steps(id)),
            ended: Mutex::new(false),
        };
        let job = Job {
            feed: Arc::clone(&self.feed),
            call: call.clone(),
            tool: self.tools.as_ref().and_then(|tools| tools.get(call.name.as_str())).cloned(),
            args: self.take_args(id).ok_or_else(|| Arc::clone(text)),
            ran: changed.then(|| Arc::clone(text)),
            pure: replay == Replay::Pure,
            spawn: run.is_parallel(),
            door: Arc::new(door),
            stop: self.stop.clone(),
        };
        self.perform(ActId::Call(id), job.run());
    }
}

impl Job {
    async fn run(mut self) -> Performed {
        let (id, max, ran) = (self.call.id, self.feed.setup.max_result_bytes, self.ran.take());
        let (door, contents) = (Arc::clone(&self.door), self.feed.setup.contents);
        let span = telemetry::tool_span(&self.call, contents);
        let result = self.result().instrument(span.clone()).await;
        telemetry::record_result(&span, &result, contents);
        *door.ended() = true;
        let result = CallResult { args: ran, ..bound::cut(result, max) };
        Performed::new(ActId::Call(id), Record::returned(id, result))
    }

    async fn result(mut self) -> CallResult {
        if self.tool.is_none() {
            // The turn was admitted by an earlier drive.
            let resolved = tokio::select! {
                biased;
                resolved = prepare::resolve(&self.feed.setup, Default::default()) => resolved,
                () = self.stop.cancelled() => return CallResult::new(Status::Cancelled, "cancelled: the call was stopped"),
            };
            match resolved {
                Ok((_, tools)) => self.tool = tools.get(self.call.name.as_str()).cloned(),
                Err(message) => return CallResult::new(Status::Failed, message),
            }
        }
        let Some(tool) = self.tool.take() else {
            let message = format!("tool {:?} is gone since the call was admitted", self.call.name.as_str());
            return CallResult::new(Status::UnknownTool, message);
        };
        let args = match std::mem::replace(&mut self.args, Ok(Value::Null)) {
            Ok(args) => args,
            Err(text) => match serde_json::from_str(&text) {
                Ok(args) => args,
                Err(error) => {
                    let message = format!("the recorded arguments are no JSON: {error}");
                    return CallResult::new(Status::InvalidArguments, message);
                }
            },
        };
        let timeout = tool.spec().timeout.or(self.feed.setup.tool_timeout);
        let cancel = self.stop.child();
        let body = self.body(tool, args, &cancel);
        // Where there are other threads, a body that blocks must not keep this one from its limits.
        match Handle::try_current() {
            Ok(runtime) if self.spawn || runtime.runtime_flavor() != RuntimeFlavor::CurrentThread => {
                self.contain(Spawned(runtime.spawn(body)), timeout, cancel).await
            }
            _ => self.contain(body, timeout, cancel).await,
        }
    }

    fn body(
        &self,
        tool: Bound,
        args: Value,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<CallResult, ToolError>> + Send + 'static {
        let who = Arc::new(self.feed.setup.who.within(self.call.id));
        let port = Arc::clone(&self.door) as Arc<dyn CallPort>;
        let cx = CallContextBuilder::new(who, cancel.clone(), port).build();
        let contained = AssertUnwindSafe(async move { tool.call(args, cx).await }).catch_unwind();
        let contained = contained.instrument(Span::current());
        contained.map(|outcome| outcome.unwrap_or_else(|panic| Ok(panicked(&*panic))))
    }

    /// Waits for the body, but not longer than it may take, nor much longer than anyone wants its result.
    async fn contain(
        &self,
        body: impl Future<Output = Result<CallResult, ToolError>>,
        timeout: Option<Duration>,
        cancel: Cancel,
    ) -> CallResult {
        let mut body = pin!(body);
        let limit = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            ended = &mut body => Some(ended),
            () = self.stop.cancelled() => None,
            () = limit => {
                cancel.cancel();
                let within = timeout.unwrap_or_default();
                let message = format!("the tool did not end within {within:?} and was given up; it may have taken effect");
                return CallResult::new(Status::TimedOut, message);
            }
        };
        let ended = match ended {
            Some(ended) => Some(ended),
            None if self.pure => None,
            None => tokio::time::timeout(self.feed.setup.grace, &mut body).await.ok(),
        };
        cancel.cancel();
        match ended {
            Some(Ok(result)) => result,
            Some(Err(error)) => failed(&error),
            None => CallResult::new(Status::Cancelled, "cancelled: the call was stopped; it may have taken effect"),
        }
    }
}

fn failed(error: &ToolError) -> CallResult {
    let status = match error.kind() {
        ToolErrorKind::InvalidArguments => Status::InvalidArguments,
        ToolErrorKind::Denied => Status::Denied,
        ToolErrorKind::Cancelled => Status::Cancelled,
        ToolErrorKind::TimedOut => Status::TimedOut,
        ToolErrorKind::OutcomeUnknown => Status::OutcomeUnknown,
        _ => Status::Failed,
    };
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    CallResult::new(status, message)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> CallResult {
    CallResult::new(Status::Panicked, format!("the tool panicked: {}", bound::panic_text(panic)))
}

/// A body on a task of its own; dropping it aborts the task.
struct Spawned(JoinHandle<Result<CallResult, ToolError>>);

impl Future for Spawned {
    type Output = Result<CallResult, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        self.0.poll_unpin(cx).map(|joined| {
            joined.unwrap_or_else(|error| Err(ToolError::failed("the task of the tool was lost").with_source(error)))
        })
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The door from a call to this run.
struct Door {
    feed: Arc<Feed>,
    place: Place,
    inbox: Arc<Inbox>,
    call: CallId,
    resumable: bool,
    steps: Mutex<BTreeMap<Arc<str>, Step>>,
    ended: Mutex<bool>,
}

impl Door {
    /// Records something and waits until it is durable.
    async fn note(&self, record: Record) -> Result<(), ToolError> {
        let ended = || ToolError::new(ToolErrorKind::Cancelled, "the call has ended");
        if *self.ended() {
            return Err(ended());
        }
        let (done, durable) = oneshot::channel();
        self.inbox.push(Input::Note { call: self.call, record, done: Some(done) });
        durable.await.map_err(|_| ended())
    }

    fn ended(&self) -> MutexGuard<'_, bool> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), ToolError> {
        if self.resumable {
            return Ok(());
        }
        Err(ToolError::new(ToolErrorKind::NotResumable, "only a tool of class `Resumable` has steps"))
    }
}

#[async_trait]
impl CallPort for Door {
    fn emit(&self, progress: Progress) {
        // Held while the progress is shown, so that none is shown after the end.
        let ended = self.ended();
        if !*ended {
            let at_ms = self.feed.setup.world.now_ms();
            let progress = Box::new(progress);
            let kind = EventKind::ToolProgress { call: self.call, progress };
            self.feed.mailbox.push_progress(self.feed.event(self.place, at_ms, kind));
        }
    }

    fn charge(&self, usage: Usage) {
        let record = Record::Spent { call: self.call, usage };
        self.inbox.push(Input::Note { call: self.call, record, done: None });
    }

    async fn begin(&self, key: &str) -> Result<Noted, ToolError> {
        self.check()?;
        let known = {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            let known = steps.get(key).cloned();
            // Begun at once, so that a step that is entered twice at a time is done once.
            steps.entry(key.into()).or_insert(Step::Begun);
            known
        };
        match known {
            Some(Step::Noted(value)) => Ok(Noted::Done(value)),
            Some(Step::Begun) => Ok(Noted::Unknown),
            None => {
                self.note(Record::Begun { call: self.call, key: key.into() }).await?;
                Ok(Noted::Fresh)
            }
        }
    }

    async fn finish(&self, key: &str, value: Value) -> Result<(), ToolError> {
        self.check()?;
        self.note(Record::Noted { call: self.call, key: key.into(), value: value.clone() }).await?;
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), Step::Noted(value));
        Ok(())
    }
}
