//! Messages that wait to be placed: two lanes in the memory of a session, filled from any thread, emptied by an
//! executor.

mod lanes;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Context,
};

use adjutant_llm::{Entry, Origin, UserMessage};
use futures_util::task::AtomicWaker;

use lanes::Lanes;
pub(crate) use lanes::TakenMessage;

use adjutant_core::{Error, Lane, PostNo, Record, Run};

/// The largest number of messages that may wait in one lane.
const MAX_QUEUED: usize = 1_000;

/// The amount of a lane that is placed at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Drain {
    /// The oldest message.
    #[default]
    One,
    /// Everything that waits.
    All,
}

/// A message that waits to be placed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QueueItem {
    /// Its number in the thread; none before a run has heard of it.
    pub item: Option<u64>,
    /// The queue.
    pub lane: Lane,
    /// The message.
    pub content: Entry,
}

/// A handle on a message that was queued; cheap to clone, and of no consequence when it is dropped.
#[derive(Clone)]
pub struct Queued {
    queues: Arc<Queues>,
    lane: Lane,
    id: u64,
    number: Arc<AtomicU64>,
}

/// The amount of each lane that is placed at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Drains {
    pub(crate) steering: Drain,
    pub(crate) follow_up: Drain,
}

/// The manner of a message: it waits for the reply that is on its way, or ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Waits,
    Interrupts,
}

/// The fate of the last append of an executor that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Append {
    /// The log holds nothing of it, or there was none.
    Failed,
    /// Nobody knows.
    Dropped,
}

/// The queues of a session, shared with the executor that performs its run.
#[derive(Default)]
pub(crate) struct Queues {
    lanes: Mutex<Lanes>,
    /// False until the first message is queued: most sessions never look at their lanes.
    used: AtomicBool,
    /// True if there is something that no executor has heard of.
    news: AtomicBool,
    executor: AtomicWaker,
}

impl Drains {
    pub(crate) fn of(self, lane: Lane) -> Drain {
        match lane {
            Lane::Steering => self.steering,
            Lane::FollowUp => self.follow_up,
        }
    }
}

impl Queues {
    /// Puts a message at the end of a lane.
    ///
    /// # Errors
    /// `Prompt` if it says nothing or is no message, `Full` if the lane is.
    pub(crate) fn push(
        self: &Arc<Self>,
        lane: Lane,
        content: Entry,
        manner: Manner,
    ) -> Result<Queued, Error> {
        if let Some(why) = unfit(&content) {
            return Err(Error::Prompt(why));
        }
        let pushed =
            self.change(|lanes| lanes.push(lane, of_lane(content, lane), manner, MAX_QUEUED));
        let (id, number) = pushed.ok_or_else(|| Error::Full(MAX_QUEUED))?;
        Ok(Queued {
            queues: Arc::clone(self),
            lane,
            id,
            number,
        })
    }

    /// Puts a message of another process at the end of a lane, unless it was put there before.
    ///
    /// Says whether it could be: a lane that is full takes it only if it must.
    pub(crate) fn push_posted(
        &self,
        post: PostNo,
        lane: Lane,
        content: &Entry,
        must: bool,
    ) -> bool {
        let max = if must { usize::MAX } else { MAX_QUEUED };
        self.change(|lanes| lanes.push_posted(post, lane, posted(content.clone(), lane), max))
    }

    /// Puts a message that was posted to an agent above this one at the end of a lane, unless this thread has heard it.
    ///
    /// The thread notes which post it was: a program that dies before the one above has noted it passes it on again.
    pub(crate) fn push_passed(&self, post: PostNo, lane: Lane, content: &Entry) {
        self.change(|lanes| {
            lanes.pass(post);
            lanes.push_posted(post, lane, posted(content.clone(), lane), usize::MAX);
        });
    }

    /// Takes everything back that waits in a lane.
    pub(crate) fn clear(&self, lane: Lane) -> Vec<Entry> {
        self.change(|lanes| lanes.clear(lane))
    }

    /// Returns the waiting items, oldest first, steering before follow-ups.
    pub(crate) fn waiting(&self) -> Vec<QueueItem> {
        self.lanes().waiting().collect()
    }

    /// True if anything waits.
    pub(crate) fn is_filled(&self) -> bool {
        self.is_used() && self.lanes().waiting().next().is_some()
    }

    /// True if a message was ever queued.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// True if a message waits that should be placed before anything else is said.
    pub(crate) fn interrupts(&self) -> bool {
        self.is_used() && self.lanes().interrupts()
    }

    /// The executor is woken when there is news.
    pub(crate) fn watch(&self, cx: &Context<'_>) {
        self.executor.register(cx.waker());
    }

    /// Returns the changes of the queues since the last time, as records.
    pub(crate) fn hear(&self) -> Vec<Record> {
        if self.news.swap(false, Ordering::AcqRel) {
            self.lanes().hear()
        } else {
            Vec::new()
        }
    }

    /// Takes from a lane what is to be placed now.
    pub(crate) fn take(&self, lane: Lane, drain: Drain) -> Vec<TakenMessage> {
        let taken = if self.is_used() {
            self.lanes().take(lane, drain)
        } else {
            Vec::new()
        };
        // A message that was numbered just now is news.
        if !taken.is_empty() {
            self.news.store(true, Ordering::Release);
        }
        taken
    }

    /// These records are about to be committed: what was taken and is not in them waits again.
    pub(crate) fn hand_over(&self, records: &[Record]) {
        if self.is_used() {
            self.lanes().hand_over(records);
        }
    }

    /// The record is in the log.
    pub(crate) fn confirm(&self, record: &Record) {
        self.lanes().confirm(record);
    }

    /// Puts taken messages that are not in the log back at their old places; those that may be there are in doubt.
    pub(crate) fn put_back(&self, append: Append) {
        self.lanes().put_back(append);
        self.news.store(true, Ordering::Release);
    }

    /// The log was read: what it holds counts.
    pub(crate) fn restore(&self, run: &Run) {
        let logged = run
            .waiting()
            .pending_messages()
            .map(|(item, lane, content)| (item, (lane, content.clone())))
            .collect();
        self.used.fetch_or(
            run.waiting().pending_messages().next().is_some(),
            Ordering::AcqRel,
        );
        self.lanes()
            .restore(logged, run.waiting().next_item - 1, run.last_consumed());
        self.news.store(true, Ordering::Release);
    }

    fn change<T>(&self, change: impl FnOnce(&mut Lanes) -> T) -> T {
        self.used.store(true, Ordering::Release);
        let changed = change(&mut self.lanes());
        self.news.store(true, Ordering::Release);
        self.executor.wake();
        changed
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queued {
    /// Takes the message back; false if it does not wait any more.
    ///
    /// The log tells so with the next run of this session: a program that opens the log before that may still place it.
    ///
    /// False too while nobody knows: a run that is dropped in the middle of an append may have placed it, or not, which
    /// the next run finds out.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        self.queues
            .change(|lanes| lanes.withdraw(self.lane, self.id))
    }

    /// True if the message waits.
    pub fn is_queued(&self) -> bool {
        self.queues.lanes().waits(self.lane, self.id)
    }

    /// The message's number in the thread, as events tell it; none before a run has heard of it.
    pub fn item(&self) -> Option<u64> {
        Some(self.number.load(Ordering::Acquire)).filter(|number| *number > 0)
    }
}

/// Returns the reason why an entry cannot wait in a queue, if there is one.
pub(crate) fn unfit(content: &Entry) -> Option<&'static str> {
    match content {
        Entry::User(message) if message.is_empty() => Some("it is empty"),
        Entry::User(_) | Entry::Custom(_) => None,
        _ => Some("only messages and custom entries can be queued"),
    }
}

/// A message of another process: it changes no tools, and does not appear as one of the framework.
fn posted(content: Entry, lane: Lane) -> Entry {
    let content = match content {
        Entry::User(mut message) => {
            message.tools = None;
            if matches!(message.origin, Origin::Reminder { .. }) {
                message.origin = Origin::Person;
            }
            Entry::User(message)
        }
        other => other,
    };
    of_lane(content, lane)
}

/// The message with its lane as its origin, unless it says where it comes from.
fn of_lane(content: Entry, lane: Lane) -> Entry {
    match content {
        Entry::User(message) if message.origin == Origin::Person => Entry::User(UserMessage {
            origin: match lane {
                Lane::Steering => Origin::Steering,
                Lane::FollowUp => Origin::FollowUp,
            },
            ..message
        }),
        other => other,
    }
}

impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued")
            .field("lane", &self.lane)
            .field("item", &self.item())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues")
            .field("waiting", &self.waiting().len())
            .finish_non_exhaustive()
    }
}
