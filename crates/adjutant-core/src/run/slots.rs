//! The calls of a turn's reply with the facts that are known about each, found by their ids, and counts of them: a
//! reply may have thousands, and each is looked for many times.

use adjutant_llm::CallId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CallSlot;

/// One slot for each call of a reply, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Slots {
    list: Vec<CallSlot>,
    /// True if the ids do not ascend, as they do in an unchanged reply.
    is_mixed: bool,
    /// All slots before this one are done.
    done: usize,
    counts: Counts,
}

/// The numbers of slots by kind; except for `sequential`, only of unfinished slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Calls that are neither admitted nor waiting for an approval.
    pub(super) undecided: usize,
    /// Calls whose admission waits for a pause, or can.
    pub(super) asked: usize,
    /// Calls that were launched.
    pub(super) launched: usize,
    /// Calls that run alone, in the order of the reply.
    pub(super) sequential: usize,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CallSlot> {
        self.list.iter()
    }

    /// The slots of calls without a result, in order.
    pub(super) fn missing(&self) -> impl Iterator<Item = &CallSlot> {
        self.list.iter().skip(self.done).filter(|slot| !slot.done)
    }

    pub(super) fn get(&self, call: CallId) -> Option<&CallSlot> {
        self.list.get(self.place(call)?)
    }

    /// Changes the state of a call; returns `None` if the call does not exist.
    pub(super) fn change<T>(
        &mut self,
        call: CallId,
        change: impl FnOnce(&mut CallSlot) -> T,
    ) -> Option<T> {
        let at = self.place(call)?;
        let slot = self.list.get_mut(at)?;
        self.counts.add(slot, usize::wrapping_sub);
        let changed = change(slot);
        self.counts.add(slot, usize::wrapping_add);
        while self.list.get(self.done).is_some_and(|slot| slot.done) {
            self.done += 1;
        }
        Some(changed)
    }

    /// True if two calls have one id.
    pub(super) fn has_doubles(&self) -> bool {
        if !self.is_mixed {
            return false;
        }
        let mut ids: Vec<CallId> = self.list.iter().map(|slot| slot.call).collect();
        ids.sort_unstable();
        ids.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn place(&self, call: CallId) -> Option<usize> {
        if !self.is_mixed {
            return self.list.binary_search_by_key(&call, |slot| slot.call).ok();
        }
        self.list.iter().position(|slot| slot.call == call)
    }
}

impl Counts {
    fn add(&mut self, slot: &CallSlot, add: fn(usize, usize) -> usize) {
        let is_decided = slot.admitted.is_some();
        for (count, counts) in [
            (
                &mut self.undecided,
                !slot.done && !is_decided && slot.asked.is_none(),
            ),
            (
                &mut self.asked,
                !slot.done && !is_decided && slot.asked.is_some(),
            ),
            (&mut self.launched, !slot.done && slot.launched_ms.is_some()),
            (&mut self.sequential, slot.sequential),
        ] {
            *count = add(*count, usize::from(counts));
        }
    }
}

impl From<Vec<CallSlot>> for Slots {
    fn from(list: Vec<CallSlot>) -> Self {
        let mut counts = Counts::default();
        list.iter()
            .for_each(|slot| counts.add(slot, usize::wrapping_add));
        let done = list.iter().take_while(|slot| slot.done).count();
        let is_mixed = !list.is_sorted_by(|one, other| one.call < other.call);
        Self {
            list,
            is_mixed,
            done,
            counts,
        }
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|list: Vec<CallSlot>| list.into())
    }
}
