//! The parts of its conversation that a call may read.

use std::sync::Arc;

use adjutant_llm::{CallId, CallResult, Entry, Transcript};

/// The conversation of a call up to its own turn; a call finds it with `cx.get::<Conversation>()`.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// The messages before the turn of the call, oldest first.
    pub history: Transcript,
    /// The results of the call's own turn that existed when this process resumed it, in the order of their calls.
    pub so_far: Arc<[Arc<CallResult>]>,
}

impl Conversation {
    /// Returns the complete result of a call of an earlier turn, also if the model received only a part of it.
    pub fn result(&self, call: &CallId) -> Option<Arc<CallResult>> {
        self.history
            .iter()
            .rev()
            .find_map(|stored| match &stored.entry {
                Entry::Turn(turn) => turn
                    .pairs()
                    .find(|(known, _)| known.id == *call)
                    .map(|(_, result)| Arc::clone(result)),
                _ => None,
            })
    }
}
