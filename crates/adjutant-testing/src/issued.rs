//! The record of everything that a server has signed or encrypted for a model: a strict server refuses anything else
//! that comes back.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{prefix::Prefix, wire::Wire};

/// The record of everything that a server has signed, by wire and model, and of the items of its replies that belong
/// together.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    strict: bool,
    /// True if thinking is bound to the conversation before it.
    binds: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    seals: HashSet<(Wire, String, String)>,
    /// All seals in the order in which they were first sent.
    order: Vec<String>,
    /// The id of the reasoning that precedes an item, by the item's own id.
    reasoning: HashMap<String, String>,
    /// The prefix and the thinking before, by the seal of a thinking block.
    bound: HashMap<String, (u64, Option<String>)>,
    /// The number of thinking blocks that came back, valid and dropped.
    thinking: (usize, usize),
}

impl Issued {
    /// In strict mode it refuses ids that it did not issue.
    pub(crate) fn new(strict: bool, binds: bool) -> Self {
        Self {
            strict,
            binds,
            known: Mutex::default(),
        }
    }

    /// Keeps in mind that this was sent; nothing is not kept.
    pub(crate) fn add(&self, wire: Wire, model: &str, seal: &str) {
        if seal.is_empty() {
            return;
        }
        let mut known = self.lock_known();
        if known
            .seals
            .insert((wire, model.to_owned(), seal.to_owned()))
        {
            known.order.push(seal.to_owned());
        }
    }

    /// True if this may come back on this wire for this model.
    pub(crate) fn accepts(&self, wire: Wire, model: &str, seal: &str) -> bool {
        !self.strict
            || self
                .lock_known()
                .seals
                .contains(&(wire, model.to_owned(), seal.to_owned()))
    }

    pub(crate) fn binds(&self) -> bool {
        self.binds
    }

    /// Binds a thinking block to the conversation that it answers.
    pub(crate) fn bind(&self, seal: &str, prefix: &Prefix) {
        if self.binds {
            let mut previous = prefix
                .previous
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let before = previous.replace(seal.to_owned());
            let bound = (prefix.digest, before);
            self.lock_known().bound.insert(seal.to_owned(), bound);
        }
    }

    /// True if a thinking block was made behind this prefix and, unless it is the first one, after that other block.
    pub(crate) fn is_bound(&self, seal: &str, digest: u64, previous: Option<&str>) -> bool {
        self.lock_known()
            .bound
            .get(seal)
            .is_some_and(|(prefix, before)| {
                *prefix == digest && (previous.is_none() || before.as_deref() == previous)
            })
    }

    /// Counts a thinking block that came back.
    pub(crate) fn count_thinking(&self, is_dropped: bool) {
        let mut known = self.lock_known();
        known.thinking.0 += usize::from(!is_dropped);
        known.thinking.1 += usize::from(is_dropped);
    }

    /// The number of thinking blocks that came back, valid and dropped.
    pub(crate) fn thinking(&self) -> (usize, usize) {
        self.lock_known().thinking
    }

    /// Everything that was sent, in order.
    pub(crate) fn seals(&self) -> Vec<String> {
        self.lock_known().order.clone()
    }

    /// Records that an item follows this reasoning.
    pub(crate) fn follow(&self, item: &str, reasoning: &str) {
        self.lock_known()
            .reasoning
            .insert(item.to_owned(), reasoning.to_owned());
    }

    /// The reasoning that precedes an item.
    pub(crate) fn reasoning_of(&self, item: &str) -> Option<String> {
        self.lock_known().reasoning.get(item).cloned()
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A signature for a block without one: base64 of the wire, the model and the position.
pub(crate) fn mint(wire: Wire, model: &str, request: usize, block: u32) -> String {
    STANDARD.encode(format!(
        "\u{1}adjutant {} {model} {request} {block}",
        wire.name()
    ))
}

/// True if this is standard base64.
pub(crate) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}
