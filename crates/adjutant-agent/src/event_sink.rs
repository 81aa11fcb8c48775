//! The sink of an executor's events: its own reader first, then the readers of every agent above.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use adjutant_core::{Event, EventKind, Events, Seq, Stamped, TurnNo};
use adjutant_llm::{CallResult, Transcript, Warning};
use adjutant_tool::{Cancel, Conversation};

use crate::{
    hooks::{HookContext, Point, Verdict},
    listener::Listeners,
    mailbox::Mailbox,
    queue::Queues,
    setup::Setup,
    snapshot::SessionView,
    turn_position::TurnPosition,
    writer::{Author, BatchStamp},
};

/// The maximum number of different warnings that a run remembers having emitted.
const MAX_WARNINGS: usize = 256;

/// Warnings that are kept back, if they are.
type HeldWarnings = Option<Vec<(TurnPosition, u64, Warning)>>;

/// The results of calls of a turn, in the order of the calls.
type EarlierResults = (TurnNo, Arc<[Arc<CallResult>]>);

/// The sink of the events of activities, with the parts that activities need.
#[derive(Debug)]
pub(crate) struct EventSink {
    pub(crate) setup: Arc<Setup>,
    mailbox: Arc<Mailbox>,
    /// The boxes of the agents above, the nearest first.
    above: Arc<[Arc<Mailbox>]>,
    /// The ticket of this feed in the queue for room in the first agent's mailbox.
    ticket: u64,
    shown: Mutex<HashSet<Warning>>,
    held: Mutex<HeldWarnings>,
    events: Mutex<Events>,
    newest: Arc<AtomicU64>,
    /// Cancels the activities of the executor.
    pub(crate) stop: Cancel,
    queues: OnceLock<Arc<Queues>>,
    /// The live view of the conversation.
    pub(crate) seen: Arc<SessionView>,
    /// The results of a turn that an earlier drive left open.
    pub(crate) so_far: OnceLock<Box<EarlierResults>>,
}

impl EventSink {
    /// The conversation of a call of this turn.
    pub(crate) fn conversation(&self, history: Transcript, turn: TurnNo) -> Conversation {
        let left = self.so_far.get().filter(|left| left.0 == turn);
        let so_far = left.map_or_else(Arc::default, |left| Arc::clone(&left.1));
        Conversation { history, so_far }
    }

    pub(crate) fn new(
        setup: Arc<Setup>,
        mailbox: Arc<Mailbox>,
        newest: Arc<AtomicU64>,
        seen: Arc<SessionView>,
    ) -> Self {
        let above = setup
            .within
            .as_ref()
            .map_or_else(|| Arc::from([]), |within| Arc::clone(within.above()));
        let ticket = above.last().map_or(0, |first| first.ticket());
        let events = Mutex::new(Events::new(Arc::clone(&setup.who)));
        Self {
            setup,
            mailbox,
            above,
            ticket,
            shown: Mutex::default(),
            held: Mutex::default(),
            events,
            newest,
            stop: Cancel::new(),
            queues: OnceLock::new(),
            seen,
            so_far: OnceLock::new(),
        }
    }

    /// The queues of the conversation.
    pub(crate) fn queues(&self) -> Arc<Queues> {
        Arc::clone(self.queues.get_or_init(Arc::default))
    }

    /// These are the queues of the conversation.
    pub(crate) fn listen(&self, queues: &Arc<Queues>) {
        // An executor listens once.
        let _ = self.queues.set(Arc::clone(queues));
    }

    /// True if the feed has a reader or a listener.
    pub(crate) fn is_open(&self) -> bool {
        self.mailbox.is_open() || self.above.iter().any(|above| above.is_open())
    }

    /// The log holds the records up to this one.
    pub(crate) fn mark_saved(&self, upto: Seq) {
        std::iter::once(&self.mailbox)
            .chain(&*self.above)
            .for_each(|mailbox| mailbox.mark_saved(upto));
    }

    /// The boxes that an agent under this one shows to as well, the nearest first.
    pub(crate) fn boxes(&self) -> Arc<[Arc<Mailbox>]> {
        std::iter::once(&self.mailbox)
            .chain(&*self.above)
            .cloned()
            .collect()
    }

    /// Shows the events of a record; called in the order of the log.
    fn show_record(&self, stamped: &Stamped) {
        let mut events = self.events();
        if self.is_open() {
            events.fold(stamped, |event| {
                self.push(event);
            });
        } else {
            events.learn(stamped);
        }
        drop(events);
        // Afterwards: a reader continues from the last record it has received.
        self.newest.store(stamped.seq.0, Ordering::Release);
        self.listeners().mark_emitted(stamped.seq);
    }

    /// Returns the listeners of the first agent, which receive everything.
    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        self.first().listeners()
    }

    /// The box of the first agent.
    fn first(&self) -> &Arc<Mailbox> {
        self.above.last().unwrap_or(&self.mailbox)
    }

    /// Returns the facts that the events of later records need.
    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last emitted record.
    pub(crate) fn newest(&self) -> Seq {
        Seq(self.newest.load(Ordering::Acquire))
    }

    /// Emits an event; returns whether the counting reader has fallen behind.
    #[inline]
    pub(crate) fn show(&self, place: TurnPosition, at_ms: u64, kind: EventKind) -> bool {
        self.push(self.event(place, at_ms, kind))
    }

    /// Shows progress of a call, from whatever task.
    pub(crate) fn show_progress(&self, place: TurnPosition, at_ms: u64, kind: EventKind) {
        let event = self.event(place, at_ms, kind);
        let Some((first, between)) = self.above.split_last() else {
            return self.mailbox.push_progress(event);
        };
        for nearer in std::iter::once(&self.mailbox)
            .chain(between)
            .filter(|nearer| nearer.is_open())
        {
            nearer.push_progress(event.clone());
        }
        first.push_progress(event);
    }

    /// Shows a warning, once.
    #[cold]
    pub(crate) fn warn(&self, place: TurnPosition, at_ms: u64, warning: &Warning) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() < MAX_WARNINGS && shown.insert(warning.clone()) {
            drop(shown);
            let warning = warning.clone();
            match &mut *self.lock_warnings() {
                Some(held) => held.push((place, at_ms, warning)),
                None => {
                    self.show(place, at_ms, EventKind::Warning { warning });
                }
            }
        }
    }

    /// Holds warnings back until the drive has started: its start is emitted first.
    pub(crate) fn hold(&self) {
        self.lock_warnings().get_or_insert_default();
    }

    /// Shows the warnings that were kept back.
    pub(crate) fn release(&self) {
        let held = self.lock_warnings().take();
        for (place, at_ms, warning) in held.into_iter().flatten() {
            self.show(place, at_ms, EventKind::Warning { warning });
        }
    }

    fn lock_warnings(&self) -> MutexGuard<'_, HeldWarnings> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another delta in the mailbox of the first agent.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        self.first().poll_room(self.ticket, cx)
    }

    fn event(&self, place: TurnPosition, at_ms: u64, kind: EventKind) -> Event {
        let who = Arc::clone(&self.setup.who);
        // Not the last record at the start of the activity: a reader continues from the last one it has received.
        let seq = self.newest();
        Event {
            seq,
            at_ms,
            run: place.run,
            turn: place.turn,
            who,
            kind,
        }
    }

    #[inline]
    fn push(&self, event: Event) -> bool {
        match self.above.is_empty() {
            true => self.mailbox.push(event),
            false => self.push_above(event),
        }
    }

    #[cold]
    fn push_above(&self, event: Event) -> bool {
        let Some((first, between)) = self.above.split_last() else {
            return false;
        };
        for nearer in std::iter::once(&self.mailbox)
            .chain(between)
            .filter(|nearer| nearer.is_open())
        {
            nearer.push_from_afar(event.clone());
        }
        first.push_from_afar(event)
    }

    /// Returns the context of a hook at this place.
    pub(crate) fn hook_context(&self, place: TurnPosition) -> HookContext {
        let (who, at_ms) = (Arc::clone(&self.setup.who), self.setup.world.now_ms());
        HookContext {
            who,
            run: place.run,
            turn: place.turn,
            at_ms,
            cancel: self.stop.clone(),
        }
    }

    /// Passes a point through its hooks; a failure that was ignored is reported once.
    pub(crate) async fn pass<P: Point>(&self, cx: &HookContext, point: P) -> Verdict<P> {
        let place = TurnPosition {
            run: cx.run,
            turn: cx.turn,
        };
        let warn = |warning: Warning| self.warn(place, self.setup.world.now_ms(), &warning);
        self.setup.hooks.pass_with(cx, point, warn).await
    }
}

impl Author for EventSink {
    fn stamp(&self) -> Option<BatchStamp<'_>> {
        let Setup {
            world,
            who,
            durability,
            within,
            ..
        } = &*self.setup;
        let late = within.as_ref().is_some_and(|within| within.is_fenced());
        (!late).then(|| BatchStamp {
            at_ms: world.now_ms(),
            thread: &who.thread,
            durability: *durability,
        })
    }

    fn on_append(&self, stamped: &[Arc<Stamped>], saved: Option<Seq>) {
        if let Some(upto) = saved {
            self.mark_saved(upto);
        }
        // The snapshot is updated first: the receiver of an event finds its record there.
        self.seen.note(stamped);
        stamped.iter().for_each(|stamped| self.show_record(stamped));
    }
}
