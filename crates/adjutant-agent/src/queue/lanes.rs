//! The lanes themselves: plain data, no lock. A taken message stays in its place until the log contains it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use adjutant_core::{Lane, PostNo, Record};
use adjutant_llm::Entry;

use super::{Append, Drain, Manner, QueueItem};

const LANES: [Lane; 2] = [Lane::Steering, Lane::FollowUp];

/// Both lanes of a session.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    steering: VecDeque<QueuedMessage>,
    follow_up: VecDeque<QueuedMessage>,
    /// The newest number that was given in the thread.
    numbered: u64,
    last_id: u64,
    /// The newest post that is here, or was.
    posted: PostNo,
    /// True if that post was passed on from another thread, and this one has no record of it.
    passed: bool,
    /// The records that no executor has received, except items without a number.
    news: Vec<Record>,
    /// The messages that were taken back and may still wait in the log.
    withdrawn: BTreeSet<u64>,
}

/// A message in its lane.
#[derive(Debug)]
struct QueuedMessage {
    /// In the order of arrival, over both lanes.
    id: u64,
    /// 0 before an executor has received it.
    number: Arc<AtomicU64>,
    content: Entry,
    manner: Manner,
    /// True if it was posted: a post that the log does not contain is still in the journal.
    posted: bool,
    stage: MessageState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Waits,
    /// An executor has taken it and has no record of that yet.
    Held,
    /// A record of its end is on its way into the log.
    Ending,
    /// Until the log is read again, it is unknown whether it contains the end of the message.
    InDoubt,
}

/// A message that an executor has taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TakenMessage {
    pub(crate) item: u64,
    pub(crate) content: Entry,
}

impl QueuedMessage {
    fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }
}

impl Lanes {
    fn lane(&self, lane: Lane) -> &VecDeque<QueuedMessage> {
        match lane {
            Lane::Steering => &self.steering,
            Lane::FollowUp => &self.follow_up,
        }
    }

    fn lane_mut(&mut self, lane: Lane) -> &mut VecDeque<QueuedMessage> {
        match lane {
            Lane::Steering => &mut self.steering,
            Lane::FollowUp => &mut self.follow_up,
        }
    }

    fn items_mut(&mut self) -> impl Iterator<Item = &mut QueuedMessage> {
        self.steering.iter_mut().chain(&mut self.follow_up)
    }

    /// Puts a message at the end of a lane; `None` if the lane is full.
    pub(super) fn push(
        &mut self,
        lane: Lane,
        content: Entry,
        manner: Manner,
        max: usize,
    ) -> Option<(u64, Arc<AtomicU64>)> {
        if self.lane(lane).len() >= max {
            return None;
        }
        Some(self.put(lane, 0, content, manner))
    }

    fn put(
        &mut self,
        lane: Lane,
        number: u64,
        content: Entry,
        manner: Manner,
    ) -> (u64, Arc<AtomicU64>) {
        self.last_id += 1;
        let (id, number) = (self.last_id, Arc::new(AtomicU64::new(number)));
        let item = QueuedMessage {
            id,
            number: Arc::clone(&number),
            content,
            manner,
            posted: false,
            stage: MessageState::Waits,
        };
        self.lane_mut(lane).push_back(item);
        (id, number)
    }

    /// Adds a posted message to a lane, once; returns whether there was room.
    pub(super) fn push_posted(
        &mut self,
        post: PostNo,
        lane: Lane,
        content: Entry,
        max: usize,
    ) -> bool {
        if post <= self.posted {
            return true;
        }
        if self.push(lane, content, Manner::Waits, max).is_none() {
            return false;
        }
        self.posted = post;
        self.lane_mut(lane)
            .back_mut()
            .into_iter()
            .for_each(|item| item.posted = true);
        true
    }

    pub(super) fn waits(&self, lane: Lane, id: u64) -> bool {
        self.lane(lane)
            .iter()
            .any(|item| item.id == id && item.stage == MessageState::Waits)
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = QueueItem> {
        let of = |lane: Lane| {
            let waiting = self
                .lane(lane)
                .iter()
                .filter(|item| item.stage == MessageState::Waits);
            waiting.map(move |item| QueueItem {
                item: Some(item.number()).filter(|number| *number > 0),
                lane,
                content: item.content.clone(),
            })
        };
        LANES.into_iter().flat_map(of)
    }

    pub(super) fn interrupts(&self) -> bool {
        self.steering.iter().any(QueuedMessage::interrupts)
    }

    /// Notes with the next message that a post was passed on to this thread, so that it comes once.
    pub(super) fn pass(&mut self, post: PostNo) {
        self.passed |= self.posted < post;
    }

    pub(super) fn withdraw(&mut self, lane: Lane, id: u64) -> bool {
        let at = self
            .lane(lane)
            .iter()
            .position(|item| item.id == id && item.stage == MessageState::Waits);
        let Some(item) = at.and_then(|at| self.lane_mut(lane).remove(at)) else {
            return false;
        };
        let number = item.number();
        if number > 0 {
            self.withdrawn.insert(number);
            self.news.push(Record::Withdrawn { item: number });
        }
        true
    }

    pub(super) fn clear(&mut self, lane: Lane) -> Vec<Entry> {
        let waiting: Vec<_> = self
            .lane(lane)
            .iter()
            .filter(|it| it.stage == MessageState::Waits)
            .map(|it| (it.id, it.content.clone()))
            .collect();
        waiting
            .into_iter()
            .filter_map(|(id, content)| self.withdraw(lane, id).then_some(content))
            .collect()
    }

    /// Numbers new messages, in order of arrival, and returns everything that is not recorded yet.
    pub(super) fn hear(&mut self) -> Vec<Record> {
        self.number();
        std::mem::take(&mut self.news)
    }

    fn number(&mut self) {
        let mut fresh: Vec<(u64, Lane, Arc<AtomicU64>, Entry)> = Vec::new();
        for lane in LANES {
            let items = self.lane(lane).iter().filter(|item| item.number() == 0);
            fresh.extend(items.map(|item| {
                (
                    item.id,
                    lane,
                    Arc::clone(&item.number),
                    item.content.clone(),
                )
            }));
        }
        fresh.sort_unstable_by_key(|(id, ..)| *id);
        for (_, lane, number, content) in fresh {
            self.numbered += 1;
            number.store(self.numbered, Ordering::Release);
            self.news.push(Record::Queued {
                item: self.numbered,
                lane,
                content,
            });
        }
        if std::mem::take(&mut self.passed) {
            self.news.push(Record::Heeded { post: self.posted });
        }
    }

    /// Takes the oldest message or all, but never stops before the last interrupting one.
    pub(super) fn take(&mut self, lane: Lane, drain: Drain) -> Vec<TakenMessage> {
        self.number();
        let waiting = || {
            self.lane(lane)
                .iter()
                .filter(|item| item.stage == MessageState::Waits)
        };
        let interrupting = waiting()
            .zip(1..)
            .filter(|(item, _)| item.interrupts())
            .map(|(_, nth)| nth)
            .max();
        let many = match drain {
            Drain::One => interrupting.unwrap_or(1),
            Drain::All => usize::MAX,
        };
        let taken = self
            .lane_mut(lane)
            .iter_mut()
            .filter(|item| item.stage == MessageState::Waits)
            .take(many);
        let hold = |item: &mut QueuedMessage| {
            item.stage = MessageState::Held;
            TakenMessage {
                item: item.number(),
                content: item.content.clone(),
            }
        };
        taken.map(hold).collect()
    }

    pub(super) fn hand_over(&mut self, records: &[Record]) {
        let ending: BTreeSet<u64> = records.iter().flat_map(items_closed_by).copied().collect();
        for item in self
            .items_mut()
            .filter(|item| item.stage == MessageState::Held)
        {
            item.stage = if ending.contains(&item.number()) {
                MessageState::Ending
            } else {
                MessageState::Waits
            };
        }
    }

    pub(super) fn confirm(&mut self, record: &Record) {
        for number in items_closed_by(record) {
            self.withdrawn.remove(number);
            for lane in LANES {
                self.lane_mut(lane).retain(|item| item.number() != *number);
            }
        }
    }

    pub(super) fn put_back(&mut self, append: Append) {
        for item in self.items_mut() {
            item.stage = match (item.stage, append) {
                (MessageState::Ending, Append::Dropped) | (MessageState::InDoubt, _) => {
                    MessageState::InDoubt
                }
                (MessageState::Waits | MessageState::Held | MessageState::Ending, _) => {
                    MessageState::Waits
                }
            };
        }
    }

    /// Sets the lanes to the state of the log, and keeps messages that the log does not contain.
    pub(super) fn restore(
        &mut self,
        mut logged: BTreeMap<u64, (Lane, Entry)>,
        numbered: u64,
        heeded: PostNo,
    ) {
        (self.posted, self.passed) = (heeded, false);
        let mut known = BTreeMap::new();
        for lane in LANES {
            for mut item in std::mem::take(self.lane_mut(lane)) {
                let number = item.number();
                item.stage = MessageState::Waits;
                if (number == 0 || number > numbered) && item.posted {
                    // It is still in the journal, or was consumed and is gone.
                } else if number == 0 || number > numbered {
                    // It never reached the log: it is recorded again.
                    item.number.store(0, Ordering::Release);
                    self.lane_mut(lane).push_back(item);
                } else {
                    known.insert(number, item);
                }
            }
        }
        (self.news, self.numbered) = (Vec::new(), numbered);
        let withdrawn = std::mem::take(&mut self.withdrawn);
        for item in withdrawn
            .into_iter()
            .filter(|item| logged.remove(item).is_some())
        {
            self.withdrawn.insert(item);
            self.news.push(Record::Withdrawn { item });
        }
        self.put_logged(logged, known);
    }

    /// Puts the messages in the log before the other ones.
    fn put_logged(
        &mut self,
        logged: BTreeMap<u64, (Lane, Entry)>,
        mut known: BTreeMap<u64, QueuedMessage>,
    ) {
        for lane in LANES {
            let mut fresh = std::mem::take(self.lane_mut(lane));
            for (number, (_, content)) in logged.iter().filter(|(_, (of, _))| *of == lane) {
                match known.remove(number) {
                    Some(item) if item.content == *content => self.lane_mut(lane).push_back(item),
                    other => {
                        // Another program used the number for one of its messages.
                        let other = other.filter(|item| !item.posted);
                        fresh.extend(other.inspect(|item| item.number.store(0, Ordering::Release)));
                        self.put(lane, *number, content.clone(), Manner::Waits);
                    }
                }
            }
            self.lane_mut(lane).extend(fresh);
        }
    }
}

impl QueuedMessage {
    fn interrupts(&self) -> bool {
        self.manner == Manner::Interrupts && self.stage == MessageState::Waits
    }
}

/// The messages that a record puts an end to.
fn items_closed_by(record: &Record) -> &[u64] {
    match record {
        Record::Placed { items, .. } => items,
        Record::Withdrawn { item } => std::slice::from_ref(item),
        _ => &[],
    }
}
