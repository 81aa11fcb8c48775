//! The numbered blocks of a reply while it streams: opened, grown and closed in the grammar of `Chunk`.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, CallId, Chunk, Error, ErrorKind, Request, surrogates};

/// The largest number of blocks that a reply may have.
const MAX_BLOCKS: usize = 4_096;

/// The numbers that the call ids of a reply are made of: they are ours, whatever the server calls its calls.
#[derive(Debug, Clone, Copy)]
pub struct CallIdSeed {
    pub(crate) turn: u64,
    pub(crate) attempt: u32,
}

/// The blocks of a reply so far: they are numbered, and opened and closed in the grammar of [`Chunk`].
#[derive(Debug)]
pub struct Blocks {
    place: CallIdSeed,
    done: Vec<Option<Arc<Block>>>,
}

impl CallIdSeed {
    /// The place of the reply to a request.
    pub(crate) fn from_request(request: &Request) -> Self {
        Self {
            turn: request.turn(),
            attempt: request.attempt,
        }
    }
}

impl Blocks {
    /// No block.
    pub fn new(place: CallIdSeed) -> Self {
        Self {
            place,
            done: Vec::new(),
        }
    }

    /// Opens the next block; the id is for a call.
    ///
    /// # Errors
    /// `Protocol` if there are too many.
    pub fn open(
        &mut self,
        kind: impl FnOnce(CallId) -> BlockKind,
        out: &mut VecDeque<Chunk>,
    ) -> Result<u32, Error> {
        if self.done.len() == MAX_BLOCKS {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the reply has more than 4,096 blocks",
            ));
        }
        let block = self.done.len() as u32;
        self.done.push(None);
        out.push_back(Chunk::Open {
            block,
            kind: kind(self.call_id(block)),
        });
        Ok(block)
    }

    /// The id of a call in this block.
    pub fn call_id(&self, block: u32) -> CallId {
        CallId {
            turn: self.place.turn,
            attempt: self.place.attempt,
            block,
        }
    }

    /// Closes a block that was opened.
    pub fn close(&mut self, block: u32, mut content: Block, out: &mut VecDeque<Chunk>) {
        // Arguments are JSON in a text of their own, with halves of their own.
        if let Block::Call(call) = &mut content
            && call.args.as_bytes().contains(&b'\\')
            && call.args.contains("\\u")
            && let Some(args) = surrogates::mend(&call.args)
        {
            call.args = args.into();
        }
        let content = Arc::new(content);
        if let Some(slot) = self.done.get_mut(block as usize) {
            *slot = Some(Arc::clone(&content));
        }
        out.push_back(Chunk::Close { block, content });
    }

    /// The calls that were closed.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        let blocks = self.done.iter().flatten();
        blocks.filter_map(|block| match &**block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    /// True if nothing was ever opened.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// The closed blocks, in order.
    pub fn take(&mut self) -> Vec<Arc<Block>> {
        // In the place of the list itself; flattened, it would be collected into another.
        std::mem::take(&mut self.done)
            .into_iter()
            .filter_map(|mut block| block.take())
            .collect()
    }
}
