//! Call: runs a tool, and returns its result, after hooks and bounds, or that it waits.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, LazyLock, Mutex, atomic::AtomicBool},
    task::Poll,
    time::Duration,
};

use adjutant_core::{ActivityId, OpenCall, Record, Run};
use adjutant_llm::{Call, CallId, CallResult, Status, WarningKind, telemetry};
use adjutant_tool::{Answer, Bound, CallAdmission, Replay, Toolset};
use futures_util::future::Either;
use serde_json::Value;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    time::{Instant, sleep},
};
use tracing::Instrument;

use super::{
    LocalExecutor, Performed, Records, after, bound,
    call_handle::CallHandle,
    contain::{self, CallEnd, Contained, Polled, Spawned, go_on},
    early::Begun,
    prepare::Restore,
    steps::Steps,
};

/// The time for which a call of an earlier drive waits for a toolbox that is away, and the first wait between two looks; it doubles.
const AWAY: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(1));
/// The name of the tool that returns the omitted part of a result.
const RECALL: &str = "recall";

/// One call, ready to run.
struct CallJob {
    call: Call,
    tools: Option<Toolset>,
    /// The tool, once it was found among them.
    tool: Option<Bound>,
    restore: Option<Box<Restore>>,
    args: Result<Value, Arc<str>>,
    /// The arguments that it runs with.
    text: Arc<str>,
    changed: bool,
    pure: bool,
    spawn: bool,
    door: Arc<CallHandle>,
    /// The body, if it runs already.
    body: Option<Spawned>,
    /// True if it was cancelled before its start.
    stopped: bool,
}

impl LocalExecutor {
    /// The arguments that this drive has admitted a call with, already read.
    fn take_args(&mut self, call: CallId) -> Option<Value> {
        let at = self
            .args
            .iter()
            .position(|(admitted, _)| *admitted == call)?;
        Some(self.args.remove(at)?.1)
    }

    pub(super) fn call(&mut self, run: &Run, id: CallId, replay: Replay) {
        let Some(OpenCall {
            call,
            args: Some((text, changed)),
            ..
        }) = run.calls().call(id)
        else {
            return;
        };
        let begun = if self.setup.calls.early {
            self.background.early.take(call, text)
        } else {
            None
        };
        let (door, body) = match begun {
            Some(Begun {
                door,
                body,
                admitted,
            }) => {
                // The body may have ended already.
                let _ = admitted.send(true);
                (door, Some(body))
            }
            None => (self.door(run, call, text, replay), None),
        };
        self.running.push((id, door.stop.clone()));
        let mut job = CallJob {
            call: call.clone(),
            tools: self.tools.clone(),
            tool: None,
            restore: self.restore(run),
            args: self.take_args(id).ok_or_else(|| Arc::clone(text)),
            text: Arc::clone(text),
            changed,
            pure: replay == Replay::Pure,
            spawn: run.calls().is_parallel(),
            door,
            body,
            stopped: self.stopped.contains(&id),
        };
        self.perform(ActivityId::Call(id), async move { job.run().await });
    }

    fn door(&self, run: &Run, call: &Call, text: &Arc<str>, replay: Replay) -> Arc<CallHandle> {
        let call = Call {
            args: Arc::clone(text),
            ..call.clone()
        };
        let known = run.calls().steps(call.id);
        let scope = self.scope(run, call.id, replay);
        let mut door = CallHandle::new(scope, Arc::clone(&self.waiters), call, self.stop.child());
        door.resumable = replay == Replay::Resumable;
        door.admission = admission(run, &door.call);
        let is_unattended = run.limits().is_some_and(|limits| limits.unattended);
        door.attended = !is_unattended && (door.resumable || self.setup.responder.is_some());
        door.steps = Mutex::new(Steps::new(known, door.resumable));
        Arc::new(door)
    }
}

/// The admission of every call that needed no approval: they share one, so that a call allocates none.
static UNASKED: LazyLock<Arc<CallAdmission>> = LazyLock::new(Arc::default);

/// The admission of a call; `None` if an answer changed its arguments, so that no question was about these.
fn admission(run: &Run, call: &Call) -> Option<Arc<CallAdmission>> {
    let asked = match run.calls().call(call.id)?.answer {
        Some((_, Answer::Approve { args: Some(_), .. })) => return None,
        Some((pause, _)) => Some(pause),
        None => run.calls().approval_for_run(&call.name, &call.args),
    };
    Some(match asked {
        None => Arc::clone(&UNASKED),
        Some(pause) => Arc::new(CallAdmission {
            asked: Some(pause.ask.clone()),
        }),
    })
}

impl CallJob {
    async fn run(&mut self) -> Performed {
        let door = Arc::clone(&self.door);
        let (id, scope, feed) = (self.call.id, &door.scope, &door.scope.feed);
        let contents = feed.setup.calls.contents;
        door.open();
        let span = telemetry::tool_span(&self.call, contents);
        let began_ms = feed.setup.world.now_ms();
        let result = {
            let mut body = pin!(self.result());
            let first = poll_fn(|cx| Poll::Ready(span.in_scope(|| body.as_mut().poll(cx)))).await;
            match first {
                Poll::Ready(result) => scope.closed(result).await,
                Poll::Pending => {
                    let is_over = AtomicBool::new(false);
                    let body = pin!(Polled::new(body, &is_over));
                    // Boxed, so that a call which ends at once stays small.
                    let rest = Box::pin(
                        scope
                            .surround(body, || door.at_rest())
                            .instrument(span.clone()),
                    );
                    go_on(rest, &is_over).await
                }
            }
        };
        self.door.shut();
        let result = match result {
            Ok(Ok(result)) => result,
            Err(pauses) => {
                return Performed::new(
                    ActivityId::Call(id),
                    Record::Suspended { call: id, pauses },
                );
            }
            Ok(Err(never)) => {
                telemetry::record_result(&span, &never, contents);
                return Performed::new(ActivityId::Call(id), self.result_record(never));
            }
        };
        let after = after::Ran {
            feed,
            place: scope.place,
            call: &self.call,
            args: &self.text,
            began_ms,
        };
        // Boxed, so that a call without hooks stays small.
        let (result, mut records) = match feed.setup.hooks.is_empty() {
            true => (result, Records::new()),
            false => Box::pin(after.pass(result)).await,
        };
        telemetry::record_result(&span, &result, contents);
        records.push(self.result_record(result));
        Performed {
            records,
            ..Performed::nothing(ActivityId::Call(id))
        }
    }

    fn result_record(&self, result: CallResult) -> Record {
        let result = CallResult {
            args: self.changed.then(|| Arc::clone(&self.text)),
            ..result
        };
        let max = self.tool.as_ref().and_then(|tool| tool.spec().max_output);
        let max = max.unwrap_or(self.door.scope.feed.setup.calls.max_result_bytes);
        let (result, shown) = bound::limit_result(result, max, || self.recall());
        Record::Returned {
            call: self.call.id,
            result,
            shown,
        }
    }

    /// Returns the hint that explains to the model how to get the omitted part.
    fn recall(&self) -> String {
        let recalls = self
            .tools
            .as_ref()
            .is_some_and(|tools| tools.get(RECALL).is_some());
        if recalls && self.call.name.as_str() != RECALL {
            return format!("; {RECALL:?} gives the rest, call {}", self.call.id);
        }
        String::new()
    }

    /// Returns the result of the body; never returns if the body is suspended for its pauses.
    ///
    /// # Errors
    /// The result of a call that never ran.
    async fn result(&mut self) -> Result<CallResult, CallResult> {
        if self.stopped {
            self.door.stop.cancel();
            return Err(CallResult::new(
                Status::Cancelled,
                "cancelled: the call was stopped before it began",
            ));
        }
        if let Some(restore) = self.restore.take() {
            Box::pin(self.find(restore)).await?;
        }
        self.tool = self
            .tools
            .as_ref()
            .and_then(|tools| tools.get(self.call.name.as_str()))
            .cloned();
        let Some(tool) = self.tool.clone() else {
            let away: String = self
                .tools
                .iter()
                .flat_map(away)
                .map(|why| format!("; {why}"))
                .collect();
            let message = format!(
                "tool {:?} is gone since the call was admitted{away}",
                self.call.name.as_str()
            );
            if self.door.steps().is_torn() {
                let message = format!(
                    "{message}, and so is what came of a step of it: whether it took effect is not known"
                );
                return Err(CallResult::new(Status::OutcomeUnknown, message));
            }
            return Err(CallResult::new(Status::UnknownTool, message));
        };
        let calls = &self.door.scope.feed.setup.calls;
        let (timeout, grace) = (tool.spec().timeout.or(calls.timeout), calls.grace);
        let body = pin!(match self.body.take() {
            Some(body) => Either::Left(body),
            None => self.begin(tool)?,
        });
        let contained = Contained {
            door: &self.door,
            timeout,
            grace,
            pure: self.pure,
        };
        Ok(contained.wait(body).await)
    }

    /// The body, about to begin.
    fn begin(
        &mut self,
        tool: Bound,
    ) -> Result<Either<Spawned, impl Future<Output = CallEnd> + Send + use<>>, CallResult> {
        let args = match std::mem::replace(&mut self.args, Ok(Value::Null)) {
            Ok(args) => args,
            Err(text) => serde_json::from_str(&text).map_err(|error| {
                let message = format!("the recorded arguments are no JSON: {error}");
                CallResult::new(Status::InvalidArguments, message)
            })?,
        };
        let who = Arc::new(self.door.scope.feed.setup.who.within(self.call.id));
        let body = contain::body(tool, args, who, &self.door);
        // If there are other threads, the body runs on its own task: a body that blocks must not keep this one from its
        // limits.
        Ok(match Handle::try_current() {
            Ok(runtime)
                if self.spawn || runtime.runtime_flavor() != RuntimeFlavor::CurrentThread =>
            {
                Either::Left(Spawned(runtime.spawn(body)))
            }
            _ => Either::Right(body),
        })
    }

    /// Resolves the tools, if the turn was admitted by an earlier drive.
    async fn find(&mut self, restore: Box<Restore>) -> Result<(), CallResult> {
        let resolved = tokio::select! {
            biased;
            resolved = self.await_tool(&restore) => resolved,
            () = self.door.stop.cancelled() => {
                return Err(CallResult::new(Status::Cancelled, "cancelled: the call was stopped"));
            }
        };
        match resolved {
            Ok(tools) => {
                self.door.scope.set_tools(tools.clone());
                self.tools = Some(tools);
                Ok(())
            }
            Err(message) => Err(CallResult::new(Status::Failed, message)),
        }
    }

    /// Returns the tools, once they contain the called one; unchanged, if nothing is missing or it stays missing for
    /// too long.
    async fn await_tool(&self, restore: &Restore) -> Result<Toolset, String> {
        let (over, mut wait) = (Instant::now() + AWAY.0, AWAY.1);
        loop {
            let (_, tools) = restore.tools(&self.door.scope.feed.setup).await?;
            let left = over.saturating_duration_since(Instant::now());
            if tools.get(self.call.name.as_str()).is_some()
                || away(&tools).next().is_none()
                || left.is_zero()
            {
                return Ok(tools);
            }
            sleep(wait.min(left)).await;
            wait *= 2;
        }
    }
}

/// Returns the messages of toolboxes that do not provide all of their tools now.
fn away(tools: &Toolset) -> impl Iterator<Item = &str> {
    let told = tools
        .warnings()
        .iter()
        .filter(|warning| warning.kind == WarningKind::Degraded);
    told.map(|warning| &*warning.message)
}
