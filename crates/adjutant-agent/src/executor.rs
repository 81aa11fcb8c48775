//! The executor of this process: futures and tokio tasks, an inbox, and a box of events.

mod admit;
mod after;
mod alone;
mod announce;
mod answer;
mod ask;
mod bound;
mod call;
mod call_handle;
mod contain;
mod drive;
mod early;
pub(crate) mod engine;
pub(crate) mod fingerprint;
mod fit;
pub(crate) mod fund;
mod heard;
mod media;
pub(crate) mod posts;
pub(crate) mod prepare;
mod queue;
mod run_budget;
mod scoped;
mod settle;
mod steps;
mod waiters;

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use adjutant_llm::{CallId, CallResult, Status};
use adjutant_tool::{Cancel, Replay, Toolset};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;

use alone::Alone;
use early::Background;
use queue::Listening;
use waiters::Waiters;

pub(crate) use drive::tool_names;

use crate::turn_position::TurnPosition;
use crate::{
    event_sink::EventSink,
    inbox::{Inbox, Input},
    mailbox::Mailbox,
    scope::SessionWriter,
    setup::Setup,
    snapshot::SessionView,
    writer::{Author, Batch},
};
use adjutant_core::{
    Activity, ActivityId, Admission, CancelBy, Error, EventKind, Executor, Failure, Flush, Log,
    Record, Run, Stamped, panic_text,
};

/// Performs the activities of one conversation in this process.
///
/// Acts run within the task that drives; several calls of one batch run on tasks of their own.
pub struct LocalExecutor {
    setup: Arc<Setup>,
    writer: SessionWriter,
    feed: Arc<EventSink>,
    inbox: Arc<Inbox>,
    stop: Cancel,
    stopping: bool,
    outer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    queue: Listening,
    /// The posts of other processes, if the journal takes posts.
    posts: Option<Box<posts::Posts>>,
    /// Observers of the queue that have not ended.
    asides: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Ends the newest request, and nothing else.
    generating: Option<Cancel>,
    busy: BTreeSet<ActivityId>,
    alone: Alone,
    acts: FuturesUnordered<Performing>,
    /// The activities that have ended and were not processed.
    done: Vec<Performed>,
    tools: Option<Toolset>,
    sources: Vec<Toolset>,
    shown: Option<prepare::ShownTools>,
    known: fingerprint::KnownRequests,
    args: VecDeque<(CallId, Value)>,
    notes: Vec<oneshot::Sender<()>>,
    /// The records that were committed last.
    batch: Vec<Arc<Stamped>>,
    /// The save requests: the last one received, and the last one completed.
    wishes: (u64, u64),
    waiters: Arc<Waiters>,
    /// The line of calls that pass through hooks.
    line: Arc<tokio::sync::Mutex<()>>,
    /// The running calls, and the questions asked on behalf of calls, with their cancellation.
    running: Vec<(CallId, Cancel)>,
    asking: Vec<answer::PendingQuestion>,
    /// The calls of the open turn that should not begin.
    stopped: BTreeSet<CallId>,
    /// The read-only calls of the open turn that this drive admitted.
    pure: Vec<CallId>,
    background: Background,
    place: TurnPosition,
    run_budget: run_budget::RunBudget,
}

/// An activity in flight. A panic of it ends in a record like everything else.
struct Performing {
    act: ActivityId,
    work: Pin<Box<dyn Future<Output = Performed> + Send>>,
}

/// The records of an activity: mostly one.
type Records = SmallVec<[Record; 1]>;

/// The result of an activity.
struct Performed {
    act: ActivityId,
    records: Records,
    tools: Option<(Vec<Toolset>, Toolset)>,
    args: Option<(CallId, Value)>,
}

impl LocalExecutor {
    /// Admits the media of records, and puts the ends of kept children before the end of the run.
    #[cold]
    async fn complete(&mut self, records: &mut Vec<Record>) {
        media::admit(records).await;
        let ends = |record: &Record| matches!(record, Record::Ended { .. });
        if let Some(at) = records.iter().position(ends) {
            records.splice(at..at, self.end_children().await);
        }
    }
}

impl LocalExecutor {
    pub(crate) fn with_mailbox(
        setup: Arc<Setup>,
        writer: SessionWriter,
        mailbox: Arc<Mailbox>,
        inbox: Arc<Inbox>,
    ) -> Self {
        Self::with_view(setup, writer, mailbox, inbox, Arc::default())
    }

    pub(crate) fn with_view(
        setup: Arc<Setup>,
        writer: SessionWriter,
        mailbox: Arc<Mailbox>,
        inbox: Arc<Inbox>,
        seen: Arc<SessionView>,
    ) -> Self {
        let feed = Arc::new(EventSink::new(
            Arc::clone(&setup),
            mailbox,
            Arc::clone(writer.newest()),
            seen,
        ));
        Self {
            stop: feed.stop.clone(),
            background: Background::default(),
            feed,
            setup,
            writer,
            inbox,
            stopping: false,
            outer: None,
            queue: Listening::default(),
            posts: None,
            asides: Vec::new(),
            generating: None,
            busy: BTreeSet::new(),
            alone: Alone::default(),
            acts: FuturesUnordered::new(),
            done: Vec::new(),
            tools: None,
            sources: Vec::new(),
            shown: None,
            known: fingerprint::KnownRequests::default(),
            args: VecDeque::new(),
            notes: Vec::new(),
            batch: Vec::new(),
            wishes: (0, 0),
            waiters: Arc::default(),
            line: Arc::default(),
            running: Vec::new(),
            asking: Vec::new(),
            stopped: BTreeSet::new(),
            pure: Vec::new(),
            place: TurnPosition::default(),
            run_budget: run_budget::RunBudget::default(),
        }
    }

    /// Cancels the run when this token is cancelled.
    pub(crate) fn hear(&mut self, cancel: Cancel) {
        self.outer = Some(Box::pin(async move { cancel.cancelled().await }));
    }

    /// Saves the pending records, and returns the log.
    ///
    /// # Errors
    /// `Journal` if the log could not be written.
    pub async fn into_log(mut self) -> Result<Box<dyn Log>, Error> {
        self.flush_writer().await?.take_log().await
    }

    /// Saves the pending records, and returns their writer.
    pub(crate) async fn flush_writer(&mut self) -> Result<SessionWriter, Error> {
        self.save_all().await?;
        Ok(self.writer.clone())
    }

    /// Appends the pending records as one group.
    async fn save(&mut self, flush: Flush) -> Result<(), Error> {
        self.queue.appending = true;
        let saved = self.writer.save(flush).await;
        self.queue.appending = false;
        self.feed.mark_saved(saved?);
        self.queue.confirm();
        for done in self.notes.drain(..) {
            // The caller may have been cancelled since; its note is in the log all the same.
            let _ = done.send(());
        }
        Ok(())
    }

    /// Returns how to save records that were not emitted: events of an activity must follow the records before it.
    fn behind(&self) -> Option<Flush> {
        self.writer.is_behind().then_some(Flush::Lazy)
    }

    fn perform(&mut self, act: ActivityId, work: impl Future<Output = Performed> + Send + 'static) {
        self.busy.insert(act);
        let performing = Performing {
            act,
            work: Box::pin(work),
        };
        if self.alone.is_empty() && self.acts.is_empty() {
            return self.alone.put(performing);
        }
        // Several are processed in the order in which they are woken.
        self.acts.extend(self.alone.take());
        self.acts.push(performing);
    }

    /// Performs an activity that leaves no trace if the run is cancelled first.
    #[cold]
    fn perform_unless_stopped(
        &mut self,
        act: ActivityId,
        work: impl Future<Output = Performed> + Send + 'static,
    ) {
        let stop = self.stop.clone();
        self.perform(act, async move {
            tokio::select! {
                biased;
                performed = work => performed,
                () = stop.cancelled() => Performed::nothing(act),
            }
        });
    }

    /// Adds everything that has happened, as records; returns whether anything has. An activity may end without a
    /// record.
    fn hear_all(&mut self, cx: &mut Context<'_>, records: &mut Vec<Record>) -> bool {
        let before = records.len();
        let mut done = std::mem::take(&mut self.done);
        let alone = self.alone.poll(cx);
        if !self.acts.is_empty() {
            while let Poll::Ready(Some(performed)) = self.acts.poll_next_unpin(cx) {
                done.push(performed);
            }
        }
        self.hear_queue(cx, records);
        // After the activities, so that the last notes of a call are processed before it counts as ended.
        let inputs = self.inbox.take(cx);
        if !inputs.is_empty() {
            self.hear_inputs(inputs, records);
        }
        if self
            .outer
            .as_mut()
            .is_some_and(|outer| outer.poll_unpin(cx).is_ready())
        {
            self.outer = None;
            records.extend(self.wish(CancelBy::User));
        }
        records.extend(self.run_budget.late(cx));
        let is_wished = self.inbox.last_save_request() > self.wishes.0;
        if is_wished {
            records.extend(self.acknowledge());
        }
        let heard = is_wished || records.len() > before || alone.is_some() || !done.is_empty();
        for performed in alone.into_iter().chain(done) {
            self.end(performed, records);
        }
        heard
    }

    #[cold]
    fn hear_inputs(&mut self, inputs: Vec<Input>, records: &mut Vec<Record>) {
        for input in inputs {
            match input {
                Input::Cancel(by) => records.extend(self.wish(by)),
                Input::StopCall(call) => self.stop_call(call),
                Input::Note { call, record, done }
                    if self.busy.contains(&ActivityId::Call(call)) =>
                {
                    records.push(*record);
                    self.notes.extend(done);
                }
                Input::Kept { record, done } => {
                    records.push(*record);
                    self.notes.extend(done);
                }
                // The call has ended: its late notes are fenced, and waiters learn that the sender is gone.
                Input::Note { .. } => {}
            }
        }
    }

    /// Performs an activity that needs no answer and no waiting; returns whether it was one.
    fn at_once(&mut self, run: &Run, act: Activity, ended: &mut Vec<Record>) -> bool {
        let record = match act {
            Activity::Prepare { turn } => self.try_prepare(run, turn),
            Activity::Admit { call } => self.try_admit(run, call).map(|(record, args)| {
                self.args.extend(args.map(|args| (call, args)));
                record
            }),
            Activity::Settle { turn } => self.try_settle(turn),
            Activity::Ask { .. } | Activity::Call { .. } | Activity::Answer { .. } => None,
        };
        let Some(record) = record else { return false };
        ended.extend(self.config_record(&record));
        ended.push(record);
        true
    }

    /// True if nothing has arrived that must be processed before an activity that ends immediately.
    fn is_undisturbed(&self, run: &Run) -> bool {
        let has_deadline = run
            .limits()
            .is_some_and(|limits| limits.deadline_ms.is_some());
        self.outer.is_none() && !has_deadline && !self.run_budget.is_open() && self.inbox.is_empty()
    }

    /// An activity has ended.
    fn end(&mut self, mut performed: Performed, records: &mut Vec<Record>) {
        self.busy.remove(&performed.act);
        if let ActivityId::Call(ended) = performed.act {
            self.running.retain(|(call, _)| *call != ended);
        }
        self.queue
            .end(performed.act, &mut performed.records, self.stopping);
        if let Some(posts) = &mut self.posts {
            posts.end(performed.act, &mut performed.records);
        }
        if let Some((sources, tools)) = performed.tools {
            self.feed.seen.offer(&tools);
            (self.sources, self.tools) = (sources, Some(tools));
        }
        self.configure(&mut performed.records);
        self.args.extend(performed.args);
        records.extend(performed.records);
    }

    /// A request to cancel; only the first one is recorded.
    #[cold]
    fn wish(&mut self, by: CancelBy) -> Option<Record> {
        (!std::mem::replace(&mut self.stopping, true)).then_some(Record::CancelAsked { by })
    }

    /// A request to cancel one call of the open turn: it is cancelled, or does not start.
    #[cold]
    fn stop_call(&mut self, call: CallId) {
        match self.running.iter().find(|(running, _)| *running == call) {
            Some((_, stop)) => stop.cancel(),
            None if call.turn == self.place.turn.0 => {
                self.stopped.insert(call);
            }
            None => {}
        }
    }

    /// True if the events have a reader.
    pub(crate) fn is_watched(&self) -> bool {
        self.feed.is_open()
    }

    /// Emits an event that is not a record.
    pub(crate) fn tell(&self, kind: EventKind) {
        self.feed.show(self.place, self.setup.world.now_ms(), kind);
    }

    /// True if a record must be durable before anything else happens.
    fn must_last(&self, record: &Record) -> bool {
        match record {
            // Calls that only look may run again as if they never had.
            Record::Launched { calls } => !calls.iter().all(|call| self.pure.contains(call)),
            Record::Begun { .. }
            | Record::Noted { .. }
            | Record::Paused { .. }
            | Record::Suspended { .. }
            | Record::Answered { .. }
            | Record::Resumed { .. }
            | Record::ChildOpened { .. }
            | Record::ChildEnded { .. }
            | Record::Exhausted { .. }
            | Record::CancelAsked { .. }
            | Record::Ended { .. }
            | Record::Overruled { .. } => true,
            _ => false,
        }
    }

    /// Adds the agent that requests to continue beyond a limit: the run itself does not know it.
    #[cold]
    fn sign(&self, records: &mut [Record]) {
        for record in records {
            if let Record::Paused { pause } = record
                && pause.path.is_empty()
            {
                let pause = Arc::make_mut(pause);
                (pause.agent, pause.path) = (
                    Arc::clone(&self.setup.who.name),
                    Arc::clone(&self.setup.who.path),
                );
            }
        }
    }

    /// Follows the records that this executor has committed.
    fn follow(&mut self, stamped: &Stamped) {
        match &stamped.record {
            Record::Began { run, .. } => self.place.run = *run,
            Record::Opened { turn, .. } => {
                self.place.turn = *turn;
                self.args.clear();
                self.stopped.clear();
                self.pure.clear();
            }
            Record::Admitted {
                call,
                admission:
                    Admission::Allow {
                        replay: Replay::Pure,
                        ..
                    },
            } => self.pure.push(*call),
            Record::Returned { call, .. } => {
                self.writer.threads().forget(&self.setup.who.thread, *call);
                self.give_up_places(&format_args!("{call}/"));
            }
            Record::Ended { .. } => self.writer.threads().forget_kept(&self.setup.who.thread),
            _ => {}
        }
        self.stop_asking(&stamped.record);
        if let Some(posts) = &mut self.posts {
            posts.follow(&self.setup.who.thread, &stamped.record);
        }
        self.waiters.tell(&stamped.record);
        if self.setup.calls.early {
            self.background.early.tell(&stamped.record);
        }
        self.run_budget.follow(&stamped.record);
        if let Some(within) = &self.setup.within {
            within.count(&stamped.record);
        }
    }
}

impl Executor for LocalExecutor {
    fn busy(&self) -> &BTreeSet<ActivityId> {
        &self.busy
    }

    fn start(&mut self, run: &Run, act: Activity, ended: &mut Vec<Record>) {
        let id = act.id();
        // From the run, because an earlier drive may have opened the turn.
        self.place = TurnPosition {
            run: run.run(),
            turn: run.turn(),
        };
        self.enter(run);
        if self.is_undisturbed(run) && self.at_once(run, act, ended) {
            return;
        }
        let performed = match act {
            Activity::Prepare { turn } => self.prepare(run, turn),
            Activity::Ask { .. } if self.queue.interrupts() => self.place_first(id),
            Activity::Ask { turn, attempt } => {
                self.begin_early(run);
                self.ask(run, turn, attempt);
                None
            }
            Activity::Admit { call } => self.admit(run, call),
            Activity::Call { call, replay, .. } => {
                self.call(run, call, replay);
                None
            }
            Activity::Answer { pause } => self.answer(run, pause),
            Activity::Settle { turn } => self.settle(run, turn),
        };
        let Some(performed) = performed else { return };
        // Processed after the input that has arrived in the meantime.
        self.busy.insert(id);
        self.done.push(performed);
    }

    fn stop(&mut self, acts: &[ActivityId]) {
        if !acts.is_empty() {
            self.stop.cancel();
        }
    }

    async fn next(&mut self, until_ms: Option<u64>, heard: &mut Vec<Record>) -> Result<(), Error> {
        // A run whose activities all end immediately yields to its reader, and to other tasks of its thread.
        tokio::task::coop::consume_budget().await;
        if self.wishes.1 < self.wishes.0 {
            self.grant().await?;
        } else if self.done.is_empty()
            && let Some(flush) = self
                .setup
                .durability
                .flush_for(Flush::Lazy)
                .or(self.behind())
        {
            self.save(flush).await?;
        }
        let left = until_ms
            .map(|until| Duration::from_millis(until.saturating_sub(self.setup.world.now_ms())));
        let mut alarm = left.map(|left| Box::pin(tokio::time::sleep(left)));
        std::future::poll_fn(|cx| {
            // Posts of other processes are read when nothing else happens.
            let is_heard = self.hear_all(cx, heard) || self.hear_posts(cx, heard);
            // The deadline counts also when something is ready every time.
            if alarm
                .as_mut()
                .is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready())
            {
                heard.extend(self.wish(CancelBy::Deadline));
                return Poll::Ready(Ok(()));
            }
            match is_heard {
                true => Poll::Ready(Ok(())),
                false if self.alone.is_empty() && self.acts.is_empty() => {
                    Poll::Ready(Err(Error::Stuck))
                }
                false => Poll::Pending,
            }
        })
        .await
    }

    async fn commit(&mut self, records: &mut Vec<Record>) -> Result<&[Arc<Stamped>], Error> {
        self.add_orphans(records);
        let is_special =
            |record: &Record| matches!(record, Record::Ended { .. }) || media::may_hold(record);
        if records.iter().any(is_special) {
            Box::pin(self.complete(records)).await;
        }
        let lasting = records.iter().any(|record| self.must_last(record));
        if lasting {
            self.sign(records);
        }
        let notes = std::mem::take(&mut self.notes);
        let flush = match (lasting, notes.is_empty()) {
            (true, _) => Some(Flush::Now),
            (false, false) => Some(Flush::Lazy),
            (false, true) => None,
        };
        let author: Arc<dyn Author> = Arc::clone(&self.feed) as _;
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        self.queue.appending = true;
        let committed = self
            .writer
            .commit(
                Batch {
                    records,
                    flush,
                    notes,
                    author,
                },
                &mut batch,
            )
            .await;
        self.queue.appending = false;
        committed?;
        self.queue.note(&batch);
        if flush.is_some() {
            self.queue.confirm();
        }
        batch.iter().for_each(|stamped| self.follow(stamped));
        self.batch = batch;
        Ok(&self.batch)
    }
}

impl Future for Performing {
    type Output = Performed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Performed> {
        let act = self.act;
        catch_unwind(AssertUnwindSafe(|| self.work.as_mut().poll(cx))).unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            if let ActivityId::Call(call) = act {
                // Its body panicked where only its drop runs; that is the tool's doing all the same.
                let result =
                    CallResult::new(Status::Panicked, format!("the tool panicked: {text}"));
                return Poll::Ready(Performed::new(act, Record::call_returned(call, result)));
            }
            let failure = Failure::Activity {
                act,
                message: format!("{act:?} panicked: {text}").into(),
            };
            Poll::Ready(Performed::new(act, Record::Broke { act, failure }))
        })
    }
}

impl Performed {
    fn new(act: ActivityId, record: Record) -> Self {
        Self {
            records: smallvec![record],
            ..Self::nothing(act)
        }
    }

    /// The activity ended, and leaves no trace.
    fn nothing(act: ActivityId) -> Self {
        Self {
            act,
            records: Records::new(),
            tools: None,
            args: None,
        }
    }
}

impl fmt::Debug for LocalExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPort")
            .field("writer", &self.writer)
            .field("busy", &self.busy)
            .finish_non_exhaustive()
    }
}
