//! The parts of its conversation that a call may read.

use std::sync::Arc;

use adjutant_llm::{CallId, CallResult, Entry, Transcript};

/// The conversation of a call up to its own turn; a call finds it with `cx.get::<Conversation>()`.
#[derive(Debug, Clone)]
pub struct Conversation {
    history: Transcript,
}

impl Conversation {
    /// A conversation of these entries.
    pub fn new(history: Transcript) -> Self {
        Self { history }
    }

    /// Everything that was said before the turn of the call, oldest first.
    pub fn history(&self) -> &Transcript {
        &self.history
    }

    /// The whole result of a call of an earlier turn, whatever the model was shown of it.
    pub fn result(&self, call: &CallId) -> Option<Arc<CallResult>> {
        self.history.iter().rev().find_map(|stored| match &stored.entry {
            Entry::Turn(turn) => {
                turn.pairs().find(|(known, _)| known.id == *call).map(|(_, result)| Arc::clone(result))
            }
            _ => None,
        })
    }
}
