//! Early: read-only calls start while the reply still streams. Their results count once they are admitted.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_core::{Record, Run};
use adjutant_llm::{Block, Call, CallId, Chunk, Reply, ToolName};
use adjutant_tool::{Cancel, Replay, Toolset};
use tokio::{runtime::Handle, sync::watch};

use super::{
    LocalExecutor,
    call_handle::{CallHandle, Phase},
    contain::{self, Spawned},
    waiters::Waiters,
};
use crate::{
    budget::Budget,
    event_sink::EventSink,
    inbox::Inbox,
    points::BeforeTool,
    scope::{CallParts, CallScope, RunScopes, SessionWriter},
    turn_position::TurnPosition,
};

/// Calls that were started before their admission.
#[derive(Default)]
pub(super) struct Early {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The rules that decide whether a call may begin; none may without them.
    rules: Option<Box<CallRules>>,
    begun: Vec<Begun>,
}

/// A started call; dropping its body ends it.
pub(super) struct Begun {
    pub(super) door: Arc<CallHandle>,
    pub(super) body: Spawned,
    /// Notified when the call is admitted: its sub-agents wait for that.
    pub(super) admitted: watch::Sender<bool>,
}

/// The rules that decide whether a call may begin, and the parts that it begins with.
struct CallRules {
    tools: Toolset,
    hidden: Vec<ToolName>,
    chosen: Option<Vec<ToolName>>,
    most: usize,
    attended: bool,
    place: TurnPosition,
    inbox: Arc<Inbox>,
    waiters: Arc<Waiters>,
    stop: Cancel,
    run: Run,
    writer: SessionWriter,
    kept: Arc<RunScopes>,
    budget: Option<Budget>,
}

/// Work besides the activities: early calls, and the children of the run. It ends with the executor.
#[derive(Default)]
pub(super) struct Background {
    pub(super) early: Arc<Early>,
    pub(super) kept: Arc<RunScopes>,
}

impl Early {
    /// Inspects a chunk of the model.
    pub(super) fn see(&self, chunk: &Chunk, feed: &Arc<EventSink>) {
        match chunk {
            Chunk::Close { content, .. } => {
                if let Block::Call(call) = &**content {
                    self.state().see(call, feed);
                }
            }
            Chunk::Retracted { .. } => self.state().end(|_| false),
            _ => {}
        }
    }

    /// Inspects a record: an early call continues only as a call of the reply, until its turn is over.
    pub(super) fn tell(&self, record: &Record) {
        match record {
            Record::Replied { reply, .. } => self.keep(reply),
            Record::Opened { .. }
            | Record::Settled { .. }
            | Record::Broke { .. }
            | Record::Ended { .. } => self.end(),
            _ => {}
        }
    }

    /// The call that was started with exactly these arguments.
    pub(super) fn take(&self, call: &Call, args: &Arc<str>) -> Option<Begun> {
        let mut state = self.state();
        let is_it =
            |known: &Call| known.id == call.id && known.name == call.name && known.args == *args;
        let at = state
            .begun
            .iter()
            .position(|begun| is_it(&begun.door.call))?;
        Some(state.begun.swap_remove(at))
    }

    fn keep(&self, reply: &Reply) {
        let may_run = reply.may_run_calls();
        let mut state = self.state();
        state.rules = None;
        state.end(|call| may_run && reply.calls().any(|known| known.id == call.id));
    }

    fn end(&self) {
        let mut state = self.state();
        state.rules = None;
        state.end(|_| false);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn see(&mut self, call: &Call, feed: &Arc<EventSink>) {
        let Some(rules) = &self.rules else { return };
        if rules
            .tools
            .get(call.name.as_str())
            .is_some_and(|tool| tool.spec().sequential)
        {
            // The whole batch runs one call after the other.
            self.rules = None;
            return;
        }
        if self.begun.len() < rules.most {
            self.begun.extend(rules.begin(call, feed));
        }
    }

    /// Ends all that is not to be kept.
    fn end(&mut self, keep: impl Fn(&Call) -> bool) {
        for begun in self.begun.extract_if(.., |begun| !keep(&begun.door.call)) {
            begun.door.shut();
            begun.door.stop.cancel();
        }
    }
}

impl CallRules {
    fn begin(&self, call: &Call, feed: &Arc<EventSink>) -> Option<Begun> {
        let runtime = Handle::try_current().ok()?;
        let is_left_out = |chosen: &Vec<ToolName>| !chosen.contains(&call.name);
        if self.hidden.contains(&call.name) || self.chosen.as_ref().is_some_and(is_left_out) {
            return None;
        }
        let tool = self.tools.get(call.name.as_str())?;
        let setup = &feed.setup;
        if tool.spec().replay != Replay::Pure || setup.calls.is_external(tool) {
            return None;
        }
        let admitted = catch_unwind(AssertUnwindSafe(|| tool.admit(Arc::clone(&call.args))))
            .ok()?
            .ok()?;
        if !matches!(setup.policy.ask(tool, &admitted.value), Ok(None)) {
            return None;
        }
        let call = Call {
            args: admitted.text,
            ..call.clone()
        };
        let who = Arc::new(feed.setup.who.within(call.id));
        let (admit, is_admitted) = watch::channel(false);
        let scope = self.scope(feed, call.id, is_admitted);
        let mut door = CallHandle::new(scope, Arc::clone(&self.waiters), call, self.stop.child());
        door.attended = self.attended;
        door.phase = Mutex::new(Phase::Early(Vec::new()));
        let door = Arc::new(door);
        let body = contain::body(tool.clone(), admitted.value, who, &door);
        Some(Begun {
            door,
            body: Spawned(runtime.spawn(body)),
            admitted: admit,
        })
    }

    fn scope(
        &self,
        feed: &Arc<EventSink>,
        call: CallId,
        admitted: watch::Receiver<bool>,
    ) -> Arc<CallScope> {
        CallScope::new(CallParts {
            run: &self.run,
            feed,
            kept: &self.kept,
            writer: &self.writer,
            inbox: &self.inbox,
            place: self.place,
            call,
            resumable: false,
            budget: self.budget.clone(),
            tools: Some(self.tools.clone()),
            admitted: Some(admitted),
        })
    }
}

impl LocalExecutor {
    /// Lets calls of the current turn start while its reply streams, if the agent enables that.
    pub(super) fn begin_early(&self, run: &Run) {
        let (Some(tools), Some(limits), true) = (&self.tools, run.limits(), self.setup.calls.early)
        else {
            return;
        };
        let is_counted = limits.sequential || limits.caps.tool_calls.is_some();
        if run.request().is_last() || is_counted || self.setup.hooks.hears::<BeforeTool>() {
            return;
        }
        let rules = Box::new(CallRules {
            tools: tools.clone(),
            hidden: run.request().hidden().to_vec(),
            chosen: run.request().chosen_tools().map(<[_]>::to_vec),
            most: limits.max_parallel_tools.max(1) as usize,
            attended: !limits.unattended && self.setup.responder.is_some(),
            place: self.place,
            inbox: Arc::clone(&self.inbox),
            waiters: Arc::clone(&self.waiters),
            stop: self.stop.clone(),
            run: run.clone(),
            writer: self.writer.clone(),
            kept: Arc::clone(&self.background.kept),
            budget: self.budget().cloned(),
        });
        self.background.early.state().rules = Some(rules);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.early.end();
        self.kept.end();
    }
}
