//! The scope of one call: opens its children, and ends them before the call has its result.

mod kept;
mod sample;
mod suspend;

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use adjutant_core::{
    Answered, CancelBy, Failure, Limit, Limits, LogId, Outcome, Pause, Record, Run,
};
use adjutant_llm::{CallId, ModelId, ThreadId, Transcript};
use adjutant_tool::{Cancel, Conversation, Identity, Sampler, ToolError, ToolErrorKind, Toolset};
use async_trait::async_trait;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{
    AgentConfig, Child, Parent, RunLine, SessionWriter, Spawn,
    child::{self, ChildCore, ChildEnd},
    line::HasLine,
    threads::{ChildHolder, KEPT},
};
use crate::{
    budget::Budget,
    event_sink::EventSink,
    hooks::{HookContext, Hooks},
    inbox::{Inbox, Input},
    setup::{ParentLink, Setup, Standstill},
    turn_position::TurnPosition,
};

pub(crate) use kept::{RunScopes, opener};
use suspend::Suspension;

/// The largest number of bytes that a child's key may have.
const MAX_KEY: usize = 200;

/// The scope of one call.
pub(crate) struct CallScope {
    me: Weak<CallScope>,
    pub(crate) feed: Arc<EventSink>,
    kept: Arc<RunScopes>,
    pub(super) writer: SessionWriter,
    pub(crate) inbox: Arc<Inbox>,
    pub(super) call: CallId,
    pub(crate) place: TurnPosition,
    pub(super) resumable: bool,
    limits: Limits,
    history: Transcript,
    /// The model of the turn, if it is not the agent's first one.
    model: Option<Box<ModelId>>,
    /// The answers that agents under this one were given.
    pub(super) answers: Vec<Answered>,
    budget: Option<Budget>,
    standstill: OnceLock<Arc<Standstill>>,
    tools: OnceLock<Toolset>,
    cancel: OnceLock<Cancel>,
    /// The lifetime of its children.
    lasts: Lasts,
    /// True once the call was admitted; `None` if it was admitted before its body started.
    admitted: Option<watch::Receiver<bool>>,
    state: Mutex<State>,
    /// The point at which the call is suspended for its pauses.
    pub(crate) suspension: Suspension,
}

/// The parts that a scope is made of.
pub(crate) struct CallParts<'a> {
    pub(crate) run: &'a Run,
    pub(crate) feed: &'a Arc<EventSink>,
    pub(crate) kept: &'a Arc<RunScopes>,
    pub(crate) writer: &'a SessionWriter,
    pub(crate) inbox: &'a Arc<Inbox>,
    pub(crate) place: TurnPosition,
    pub(crate) call: CallId,
    pub(crate) resumable: bool,
    pub(crate) budget: Option<Budget>,
    pub(crate) tools: Option<Toolset>,
    pub(crate) admitted: Option<watch::Receiver<bool>>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The number of times that each child was prompted since the body was entered.
    prompted: BTreeMap<Arc<str>, usize>,
    at_work: BTreeMap<u64, (Arc<ChildCore>, JoinHandle<()>)>,
    tasks: u64,
    /// The scope of the children that this call opened and the run keeps.
    kept: Option<Arc<CallScope>>,
    /// Children that wait for the outside, and their waiters.
    parked: Vec<(Arc<ChildCore>, oneshot::Sender<ChildEnd>)>,
}

/// The lifetime of the children of a scope.
enum Lasts {
    /// As long as the call.
    Call,
    /// As long as the run, which is notified when one of them ends.
    Run(Arc<Notify>),
}

impl State {
    /// Permits no new work; true if there ever was any.
    fn close(&mut self) -> bool {
        self.closed = true;
        self.tasks > 0
    }
}

/// Ends the running work if the call is dropped.
struct Dropped<'a>(&'a CallScope);

impl CallScope {
    pub(crate) fn new(parts: CallParts<'_>) -> Arc<Self> {
        let CallParts {
            run,
            feed,
            kept,
            writer,
            inbox,
            place,
            call,
            resumable,
            budget,
            tools,
            admitted,
        } = parts;
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            feed: Arc::clone(feed),
            kept: Arc::clone(kept),
            writer: writer.clone(),
            inbox: Arc::clone(inbox),
            call,
            place,
            resumable,
            limits: run.limits().cloned().unwrap_or_default(),
            history: run.history().clone(),
            model: run.request().chosen_model().cloned().map(Box::new),
            answers: run.calls().answers_of_others(),
            budget,
            standstill: OnceLock::new(),
            tools: tools.map_or_else(OnceLock::new, OnceLock::from),
            cancel: OnceLock::new(),
            admitted,
            lasts: Lasts::Call,
            state: Mutex::default(),
            suspension: Suspension::default(),
        })
    }

    /// The scope of the children that a call opens, or has opened, and the run keeps.
    fn new_run_scope(&self, call: CallId, rested: Arc<Notify>) -> Arc<Self> {
        let cancel = OnceLock::from(self.feed.stop.child());
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            feed: Arc::clone(&self.feed),
            kept: Arc::clone(&self.kept),
            writer: self.writer.clone(),
            inbox: Arc::clone(&self.inbox),
            call,
            place: self.place,
            resumable: false,
            limits: Limits {
                unattended: true,
                ..self.limits.clone()
            },
            history: self.history.clone(),
            model: None,
            answers: Vec::new(),
            budget: self.budget.clone(),
            standstill: OnceLock::from(Arc::default()),
            tools: OnceLock::new(),
            cancel,
            admitted: None,
            lasts: Lasts::Run(rested),
            state: Mutex::default(),
            suspension: Suspension::default(),
        })
    }

    /// The tools of the turn, once they are known.
    pub(crate) fn set_tools(&self, tools: Toolset) {
        // The first caller set the same tools.
        let _ = self.tools.set(tools);
    }

    /// Active while a question is open. Most bodies end before it is needed.
    pub(crate) fn standstill(&self) -> &Arc<Standstill> {
        let above = || {
            self.feed
                .setup
                .within
                .as_ref()
                .map(|within| within.standstill())
        };
        self.standstill
            .get_or_init(|| Arc::new(Standstill::under(above())))
    }

    /// A body begins, which stops with this; it is entered once.
    pub(crate) fn enter(&self, cancel: &Cancel) {
        let _ = self.cancel.set(cancel.clone());
    }

    /// Returns a handle that a body requests, by the id of its type.
    pub(crate) fn handle(self: &Arc<Self>, of: TypeId) -> Option<Box<dyn Any + Send + Sync>> {
        if of == TypeId::of::<dyn Spawn>() {
            return Some(Box::new(Arc::clone(self) as Arc<dyn Spawn>));
        }
        if of == TypeId::of::<dyn Sampler>() {
            return Some(Box::new(Arc::clone(self) as Arc<dyn Sampler>));
        }
        if of == TypeId::of::<dyn HasLine>() {
            return Some(Box::new(Arc::clone(self) as Arc<dyn HasLine>));
        }
        if of == TypeId::of::<Conversation>() {
            let conversation = self
                .feed
                .conversation(self.history.clone(), self.place.turn);
            return Some(Box::new(Arc::new(conversation)));
        }
        if of == TypeId::of::<LogId>() {
            return Some(Box::new(Arc::new(self.writer.name().clone())));
        }
        if of == TypeId::of::<Toolset>() {
            return Some(Box::new(Arc::new(self.tools.get()?.clone())));
        }
        None
    }

    /// The result of a body that ended at once; its children end before it is given.
    pub(crate) async fn closed<T, E>(&self, result: T) -> Result<T, E> {
        self.close().await;
        Ok(result)
    }

    /// Polls a body. Its children end before it does; or all of them wait, and their pauses are returned.
    ///
    /// The body is not dropped before it is at `rest`, unless that takes longer than the grace period.
    pub(crate) async fn surround<T, Rest: Future<Output = ()>>(
        &self,
        body: Pin<&mut impl Future<Output = T>>,
        rest: impl Fn() -> Rest,
    ) -> Result<T, Vec<Arc<Pause>>> {
        let dropped = Dropped(self);
        let ended = tokio::select! {
            biased;
            result = body => Ok(result),
            pauses = self.gives_way(rest) => Err(pauses),
        };
        match &ended {
            Ok(_) => self.close().await,
            Err(_) => self.state().closed = true,
        }
        drop(dropped);
        ended
    }

    /// Waits until the call may be suspended; returns its pauses. A cancelled call no longer waits.
    async fn gives_way<Rest: Future<Output = ()>>(
        &self,
        rest: impl Fn() -> Rest,
    ) -> Vec<Arc<Pause>> {
        loop {
            self.suspension.ready().await;
            // Past the grace period nothing better comes of waiting: the step may itself wait for a child.
            let _ = timeout(self.feed.setup.calls.grace, rest()).await;
            if self.cancel().is_cancelled() {
                self.dismiss();
                return std::future::pending().await;
            }
            if let Some(pauses) = self.suspension.take() {
                return pauses;
            }
        }
    }

    /// Ends what the body began: at once if that was nothing.
    pub(super) async fn close(&self) {
        if self.state().close() {
            Box::pin(self.close_children()).await;
        }
    }

    /// Cancels the children, waits for them for the grace period, and abandons the rest.
    async fn close_children(&self) {
        let at_work = mem::take(&mut self.state().at_work);
        self.cancel().cancel();
        let until = Instant::now().checked_add(self.feed.setup.calls.grace);
        for (core, mut handle) in at_work.into_values() {
            let ended = match until {
                Some(until) => timeout_at(until, &mut handle).await.is_ok(),
                None => {
                    let _ = (&mut handle).await;
                    true
                }
            };
            if !ended {
                core.within().fence();
                handle.abort();
                self.abandon(&core).await;
            }
        }
        self.dismiss();
    }

    /// Abandons the children that wait for the outside, and notifies their waiters.
    fn dismiss(&self) {
        let parked = mem::take(&mut self.state().parked);
        for (core, waits) in parked {
            self.record_child_end(
                &core,
                Outcome::Cancelled {
                    by: CancelBy::Parent,
                },
            );
            let message = "cancelled: the call was stopped while the agent waited";
            // The waiter may be gone.
            let _ = waits.send(Err(ToolError::new(ToolErrorKind::Cancelled, message)));
        }
    }

    /// Reports a child that did not end.
    async fn abandon(&self, core: &Arc<ChildCore>) {
        let message = "the agent was abandoned: it did not end when its call did".into();
        let failure = Failure::Activity {
            act: adjutant_core::ActivityId::Call(self.call),
            message,
        };
        let outcome = Outcome::Failed { failure };
        self.record_child_end(core, outcome.clone());
        let stopped = child::notify_stopped(self, core, Err(outcome));
        let _ = tokio::time::timeout(self.feed.setup.calls.grace, stopped).await;
    }

    fn record_child_end(&self, core: &ChildCore, outcome: Outcome) {
        self.writer.threads().tell(core.thread());
        let tally = core.within().tally();
        self.tell(Record::ChildEnded {
            call: self.call,
            thread: core.thread().clone(),
            outcome,
            usage: tally.usage,
            cost: tally.cost,
            requests: tally.requests,
            tool_calls: tally.tool_calls,
        });
    }

    /// Records something on the thread of the call.
    pub(super) fn tell(&self, record: Record) {
        self.push(record, None);
    }

    /// Records something on the thread of the call, and waits until it is durable.
    pub(super) async fn note(&self, record: Record) -> Result<(), ToolError> {
        let (done, durable) = oneshot::channel();
        self.push(record, Some(done));
        durable.await.map_err(|_| too_late())
    }

    fn push(&self, record: Record, done: Option<oneshot::Sender<()>>) {
        let record = Box::new(record);
        self.inbox.push(match self.lasts {
            Lasts::Call => Input::Note {
                call: self.call,
                record,
                done,
            },
            Lasts::Run(_) => Input::Kept { record, done },
        });
    }

    /// The token that cancels the call and its children.
    pub(super) fn cancel(&self) -> &Cancel {
        self.cancel.get_or_init(Cancel::new)
    }

    pub(super) fn first(&self) -> &Arc<Inbox> {
        self.feed
            .setup
            .within
            .as_ref()
            .map_or(&self.inbox, |within| within.first())
    }

    pub(super) fn hooks(&self) -> (&Hooks, HookContext) {
        let setup = &self.feed.setup;
        let cx = HookContext {
            who: Arc::new(setup.who.within(self.call)),
            run: self.place.run,
            turn: self.place.turn,
            at_ms: setup.world.now_ms(),
            cancel: self.cancel().clone(),
        };
        (&setup.hooks, cx)
    }

    pub(super) fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// True if the answer to the next prompt of a child is in the log.
    pub(super) fn is_known(&self, core: &ChildCore) -> bool {
        let prompted = self
            .state()
            .prompted
            .get(core.key())
            .copied()
            .unwrap_or_default();
        self.writer.threads().answers(core.thread()) > prompted
    }

    /// Begins to work for a child; fails once the body has returned.
    pub(super) fn begin(
        &self,
        core: &Arc<ChildCore>,
        spawn: impl FnOnce(u64, usize) -> JoinHandle<()>,
    ) -> Result<(), ToolError> {
        let mut state = self.state();
        if state.closed {
            return Err(too_late());
        }
        let prompted = state.prompted.entry(Arc::clone(core.key())).or_default();
        *prompted += 1;
        let prompted = *prompted;
        state.tasks += 1;
        let task = state.tasks;
        self.suspension.enter();
        // The task cannot leave before it is listed: it needs this lock for that.
        let handle = spawn(task, prompted);
        state.at_work.insert(task, (Arc::clone(core), handle));
        Ok(())
    }

    /// A task for a child has ended.
    pub(super) fn leave(&self, task: u64) {
        let gone = self.state().at_work.remove(&task);
        drop(gone);
        self.suspension.leave();
        if let Lasts::Run(rested) = &self.lasts {
            rested.notify_one();
        }
    }

    /// True if a child is running.
    pub(super) fn is_at_work(&self) -> bool {
        !self.state().at_work.is_empty()
    }

    /// Drops running work immediately: its records no longer count.
    pub(super) fn drop_children(&self) {
        let mut state = self.state();
        state.closed = true;
        let (at_work, parked) = (mem::take(&mut state.at_work), mem::take(&mut state.parked));
        drop(state);
        drop(parked);
        for (core, handle) in at_work.into_values() {
            core.within().fence();
            handle.abort();
        }
    }

    /// A child waits for the outside: its waiter keeps waiting.
    pub(super) fn park(
        &self,
        core: Arc<ChildCore>,
        waits: oneshot::Sender<ChildEnd>,
        pauses: Vec<Arc<Pause>>,
    ) {
        self.state().parked.push((core, waits));
        self.suspension.suspend(pauses);
    }

    /// Opens an agent once the call is admitted.
    async fn open(
        &self,
        key: &str,
        agent: AgentConfig,
        history: Option<Transcript>,
    ) -> Result<Child, ToolError> {
        self.is_heard().await?;
        self.open_now(key, agent, history)
    }

    /// Waits until the call is admitted.
    async fn is_heard(&self) -> Result<(), ToolError> {
        if let Some(mut admitted) = self.admitted.clone() {
            admitted
                .wait_for(|admitted| *admitted)
                .await
                .map_err(|_| too_late())?;
        }
        Ok(())
    }

    fn open_now(
        &self,
        key: &str,
        agent: AgentConfig,
        history: Option<Transcript>,
    ) -> Result<Child, ToolError> {
        let Some(me) = self.me.upgrade().filter(|me| !me.is_closed()) else {
            return Err(too_late());
        };
        if key.is_empty() || key.len() > MAX_KEY || key.contains('/') {
            let message = format!("a child's key has 1 to {MAX_KEY} bytes and no slash: {key:?}");
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
        }
        if let Some(budget) = &self.budget {
            budget.may_nest().map_err(|limit| over(&limit))?;
        }
        let parent = &self.feed.setup.who;
        let kept = match self.lasts {
            Lasts::Call => "",
            Lasts::Run(_) => KEPT,
        };
        let thread = ThreadId::from(format!("{}/{kept}{}/{key}", parent.thread, self.call));
        let AgentConfig { setup, limits } = agent;
        let mut threads = self.writer.threads();
        let known = threads.entry(&thread);
        if known.is_held() {
            return Err(ToolError::failed(format!(
                "the child {key:?} of this call is open already"
            )));
        }
        let who = known
            .who
            .get_or_insert_with(|| Arc::new(self.identity(&thread, &setup)));
        let setup = self.furnish(Arc::unwrap_or_clone(setup), Arc::clone(who));
        let session = known
            .session
            .get_or_insert_with(|| self.writer.open(known.run.take().unwrap_or_default()));
        let limits = Limits {
            unattended: limits.unattended || self.limits.unattended,
            ..limits
        };
        let core = Arc::new(ChildCore::new(
            me,
            key.into(),
            Arc::new(setup),
            limits,
            Arc::clone(session),
            history,
        ));
        known.holder = Some(Arc::downgrade(&core) as Weak<dyn ChildHolder>);
        Ok(Child::new(core))
    }

    /// Makes the identity of the child.
    fn identity(&self, thread: &ThreadId, setup: &Setup) -> Identity {
        let parent = &self.feed.setup;
        let id = format!("{:032x}", parent.world.id());
        let mut who = Identity::root(thread.clone(), id, Arc::clone(&setup.who.name));
        who.config_name = Arc::clone(&setup.who.config_name);
        who.path = format!("{}/{}", parent.who.path, setup.who.name).into();
        who.parent = Some(parent.who.thread.clone());
        who.depth = parent.who.depth.saturating_add(1);
        who.task.clone_from(&setup.who.task);
        who.call = Some(self.call);
        who.prefix = if setup.who.prefix.is_empty() {
            Arc::clone(&who.name)
        } else {
            Arc::clone(&setup.who.prefix)
        };
        who
    }

    /// Completes the setup of a child: its own parts, and the parts from the opening agent.
    fn furnish(&self, mut setup: Setup, who: Arc<Identity>) -> Setup {
        let parent = &self.feed.setup;
        setup.who = who;
        setup.world = Arc::clone(&parent.world);
        setup.anew = parent.anew;
        if mem::take(&mut setup.inherits) {
            setup.model = Arc::clone(&parent.model);
            setup.models = setup
                .models
                .iter()
                .chain(&*parent.models)
                .cloned()
                .collect();
        }
        setup.hooks = setup.hooks.within(&parent.hooks);
        setup.responder = setup.responder.or_else(|| parent.responder.clone());
        let within = ParentLink::new(
            self.feed.boxes(),
            Arc::clone(self.first()),
            self.budget.clone(),
            Arc::clone(self.standstill()),
        );
        setup.within = Some(Arc::new(within));
        setup
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HasLine for CallScope {
    fn line(&self) -> RunLine {
        let line = RunLine::new(
            Arc::clone(&self.feed),
            Arc::clone(&self.inbox),
            self.call,
            self.place,
        );
        line.with_limits(self.budget.clone(), self.limits.deadline_ms)
    }
}

#[async_trait]
impl Spawn for CallScope {
    async fn open(&self, key: &str, agent: AgentConfig) -> Result<Child, ToolError> {
        CallScope::open(self, key, agent, None).await
    }

    async fn open_with(
        &self,
        key: &str,
        agent: AgentConfig,
        history: Transcript,
    ) -> Result<Child, ToolError> {
        CallScope::open(self, key, agent, Some(history)).await
    }

    async fn keep(&self, key: &str, agent: AgentConfig) -> Result<Child, ToolError> {
        self.is_heard().await?;
        if self.is_closed() {
            return Err(too_late());
        }
        let known = self.state().kept.clone();
        let scope = match known {
            Some(scope) => scope,
            None => {
                let kept = self
                    .kept
                    .keep(|rested| self.new_run_scope(self.call, rested))
                    .ok_or_else(too_late)?;
                self.state().kept.get_or_insert(kept).clone()
            }
        };
        scope.open_now(key, agent, None)
    }

    async fn reopen(
        &self,
        thread: &ThreadId,
        agent: AgentConfig,
        heard: usize,
    ) -> Result<Child, ToolError> {
        self.is_heard().await?;
        let parent = &self.feed.setup.who.thread;
        let Some((call, key)) = kept::opener(thread, parent) else {
            let message = format!("no call of {parent} has an agent in the thread {thread}");
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
        };
        if self.is_closed() {
            return Err(too_late());
        }
        let unread = |error| {
            ToolError::failed(format!("the agent of {thread} cannot be found")).with_source(error)
        };
        let heard = if self.writer.learn(thread, parent).await.map_err(unread)? {
            heard
        } else {
            0
        };
        let scope = self
            .kept
            .keep(|rested| self.new_run_scope(call, rested))
            .ok_or_else(too_late)?;
        scope.state().prompted.insert(key.into(), heard);
        scope.open_now(key, agent, None)
    }

    fn parent(&self) -> Parent {
        let setup = Setup {
            hooks: Hooks::default(),
            within: None,
            ..Setup::clone(&self.feed.setup)
        };
        let limits = Limits {
            deadline_ms: None,
            ..self.limits.clone()
        };
        Parent {
            who: Arc::new(self.feed.setup.who.within(self.call)),
            agent: AgentConfig {
                setup: Arc::new(setup),
                limits,
            },
            history: self.history.clone(),
            tools: self.tools.get().cloned().unwrap_or_default(),
        }
    }
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.drop_children();
    }
}

pub(super) fn too_late() -> ToolError {
    ToolError::new(
        ToolErrorKind::Cancelled,
        "too late: the call that opens agents has ended",
    )
}

pub(super) fn over(limit: &Limit) -> ToolError {
    ToolError::new(
        ToolErrorKind::Denied,
        format!("no agent can be opened: the limit of {limit} is reached"),
    )
}
