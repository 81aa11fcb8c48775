//! The conversation of a request, put together again: calls and results are paired as they come.

use std::sync::Arc;

use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, ModelId, OpenTurn, Reply, Transcript,
    Turn, UserMessage,
};

/// A conversation that is being put together.
#[derive(Debug)]
pub struct History {
    model: ModelId,
    entries: Transcript,
    open: Option<OpenTurn>,
}

/// The reason why a result is in the wrong place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misplaced {
    /// No call before it has its id.
    NoCall,
    /// Its call has a result already.
    Twice,
}

impl History {
    /// Nothing yet, of a model by this name.
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            entries: Transcript::new(),
            open: None,
        }
    }

    /// Adds a message of the user.
    pub fn user(&mut self, message: UserMessage) {
        self.entries.push(Entry::User(message));
    }

    /// True if it has no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.open.is_none()
    }

    /// The id that a call in this block of the next reply gets.
    pub fn call_id(&self, block: usize) -> CallId {
        CallId {
            turn: self.entries.next_id().0,
            attempt: 0,
            block: u32::try_from(block).unwrap_or(u32::MAX),
        }
    }

    /// Adds a reply; its results are expected next.
    pub fn reply(&mut self, blocks: Vec<Block>) {
        let mut reply = Reply::new(self.model.clone(), FinishReason::End);
        reply.blocks = blocks.into_iter().map(Arc::new).collect();
        if reply.calls().next().is_some() {
            reply.stop = FinishReason::Calls;
        }
        self.settle(Turn::open(Arc::new(reply)));
    }

    /// Adds the result of a call, by its wire id.
    ///
    /// # Errors
    /// If there is no such call in the reply before, or it has a result.
    pub fn result(&mut self, wire_id: &str, result: CallResult) -> Result<(), Misplaced> {
        let Some(mut open) = self.open.take() else {
            return Err(Misplaced::NoCall);
        };
        let call = open
            .reply()
            .calls()
            .find(|call| call.wire_id.as_deref() == Some(wire_id));
        let outcome = match call.map(|call| call.id) {
            None => Err(Misplaced::NoCall),
            Some(id) => open.put(id, Arc::new(result)).map_err(|_| Misplaced::Twice),
        };
        self.open = Some(open);
        outcome
    }

    /// Ends the results of the last reply; gives the wire ids of calls that have none.
    ///
    /// # Errors
    /// Those wire ids.
    pub fn close(&mut self) -> Result<(), Vec<String>> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        match open.close() {
            Ok(turn) => {
                self.entries.push(Entry::Turn(turn));
                Ok(())
            }
            Err(open) => Err(open
                .missing()
                .filter_map(|call| call.wire_id.as_deref())
                .map(str::to_owned)
                .collect()),
        }
    }

    /// The whole conversation; the results of the last reply must have been closed.
    pub fn finish(self) -> Transcript {
        self.entries
    }

    fn settle(&mut self, open: OpenTurn) {
        match open.close() {
            Ok(turn) => {
                self.entries.push(Entry::Turn(turn));
            }
            Err(open) => self.open = Some(open),
        }
    }
}

/// A call as a history holds it.
pub fn call(id: CallId, wire_id: &str, name: &str, args: impl Into<Arc<str>>) -> Block {
    Block::Call(Call {
        id,
        wire_id: Some(wire_id.into()),
        name: name.into(),
        args: args.into(),
        extra: Default::default(),
    })
}
