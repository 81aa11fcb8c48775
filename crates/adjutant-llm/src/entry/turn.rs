//! A reply with the results of its calls: paired by construction, also through serde.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, Call, CallId, CallResult, Reply};

/// A reply and one result for each of its calls, in the order of the calls.
///
/// Invariant: `pairs` yields every call of the reply exactly once. A stored turn that breaks this does not load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Turn {
    reply: Arc<Reply>,
    results: Arc<[Arc<CallResult>]>,
}

/// A turn whose calls have not all ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawOpen")]
#[must_use]
pub struct OpenTurn {
    reply: Arc<Reply>,
    slots: Vec<Option<Arc<CallResult>>>,
}

/// A stored turn whose calls and results do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unpaired turn: {calls} calls, {results} results")]
pub struct Unpaired {
    /// The number of calls in the reply.
    pub calls: usize,
    /// The number of results that were given.
    pub results: usize,
}

#[derive(Deserialize)]
struct Raw {
    reply: Arc<Reply>,
    results: Vec<Arc<CallResult>>,
}

#[derive(Deserialize)]
struct RawOpen {
    reply: Arc<Reply>,
    slots: Vec<Option<Arc<CallResult>>>,
}

impl Turn {
    /// Begins to collect the results of a reply's calls.
    pub fn open(reply: Arc<Reply>) -> OpenTurn {
        let slots = reply.calls().map(|_| None).collect();
        OpenTurn { reply, slots }
    }

    /// Returns the reply of the model.
    pub fn reply(&self) -> &Arc<Reply> {
        &self.reply
    }

    /// The results, in the order of the calls.
    pub fn results(&self) -> &[Arc<CallResult>] {
        &self.results
    }

    /// Each call with its result, in the order of the calls.
    pub fn pairs(&self) -> impl Iterator<Item = (&Call, &Arc<CallResult>)> {
        self.reply.calls().zip(&*self.results)
    }
}

impl OpenTurn {
    /// Returns the reply of the model.
    pub fn reply(&self) -> &Arc<Reply> {
        &self.reply
    }

    /// Stores the result of a call.
    ///
    /// # Errors
    /// Returns the result if the reply has no such call, or if the call already has a result.
    pub fn put(&mut self, id: CallId, result: Arc<CallResult>) -> Result<(), Arc<CallResult>> {
        let slot = self.place(id).and_then(|at| self.slots.get_mut(at));
        match slot {
            Some(slot @ None) => {
                *slot = Some(result);
                Ok(())
            }
            Some(Some(_)) | None => Err(result),
        }
    }

    /// The place of a call among the calls. Its id names its block, and the blocks that are no calls come first as a rule.
    fn place(&self, id: CallId) -> Option<usize> {
        let (block, blocks) = (id.block as usize, &self.reply.blocks);
        let others = blocks.len().saturating_sub(self.slots.len());
        let is_call = |block: &Arc<Block>| matches!(**block, Block::Call(_));
        let is_it =
            matches!(blocks.get(block).map(Arc::as_ref), Some(Block::Call(call)) if call.id == id);
        match block.checked_sub(others) {
            Some(at) if is_it && !blocks.iter().take(others).any(is_call) => Some(at),
            _ => self.reply.calls().position(|call| call.id == id),
        }
    }

    /// The calls that have no result yet, in order.
    pub fn missing(&self) -> impl Iterator<Item = &Call> {
        self.reply
            .calls()
            .zip(&self.slots)
            .filter(|(_, slot)| slot.is_none())
            .map(|(call, _)| call)
    }

    /// Each call with its result so far, in order.
    pub fn slots(&self) -> impl Iterator<Item = (&Call, Option<&Arc<CallResult>>)> {
        self.reply
            .calls()
            .zip(self.slots.iter().map(Option::as_ref))
    }

    /// Closes the turn.
    ///
    /// # Errors
    /// Returns the turn if a call has no result yet.
    pub fn close(self) -> Result<Turn, OpenTurn> {
        if self.slots.iter().any(Option::is_none) {
            return Err(self);
        }
        // All are there; in this form the list is made in the place of the slots.
        let results: Vec<_> = self.slots.into_iter().map_while(|slot| slot).collect();
        Ok(Turn {
            reply: self.reply,
            results: results.into(),
        })
    }

    /// Closes the turn; a call without a result gets the result that this function creates for it.
    pub fn close_with(self, result: impl Fn(&Call) -> CallResult) -> Turn {
        let slots = self.reply.calls().zip(self.slots);
        let results = slots
            .map(|(call, slot)| slot.unwrap_or_else(|| Arc::new(result(call))))
            .collect();
        Turn {
            reply: self.reply,
            results,
        }
    }
}

impl TryFrom<Raw> for Turn {
    type Error = Unpaired;

    fn try_from(raw: Raw) -> Result<Self, Unpaired> {
        let calls = raw.reply.calls().count();
        if calls != raw.results.len() {
            return Err(Unpaired {
                calls,
                results: raw.results.len(),
            });
        }
        Ok(Turn {
            reply: raw.reply,
            results: raw.results.into(),
        })
    }
}

impl TryFrom<RawOpen> for OpenTurn {
    type Error = Unpaired;

    fn try_from(raw: RawOpen) -> Result<Self, Unpaired> {
        let calls = raw.reply.calls().count();
        if calls != raw.slots.len() {
            return Err(Unpaired {
                calls,
                results: raw.slots.len(),
            });
        }
        Ok(OpenTurn {
            reply: raw.reply,
            slots: raw.slots,
        })
    }
}
