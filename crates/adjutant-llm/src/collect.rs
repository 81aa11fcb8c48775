//! The fold of a stream: checks the grammar, and always holds the reply so far.

use std::sync::Arc;

use crate::{
    Block, BlockKind, Chunk, Error, ErrorKind, Extra, FinishReason, ModelId, Reply, Thinking, Usage,
};

/// The largest number of blocks in a reply.
const MAX_BLOCKS: usize = 4_096;
/// The largest number of bytes that the deltas of a reply may have together.
const MAX_BYTES: usize = 64 * 1_024 * 1_024;

/// Folds the chunks of a stream into a reply.
#[derive(Debug, Default)]
pub struct Collector {
    model: Option<ModelId>,
    blocks: Vec<BlockSlot>,
    usage: Usage,
    raw_usage: Extra,
    bytes: usize,
    done: bool,
}

#[derive(Debug, Clone)]
enum BlockSlot {
    Vacant,
    Open(BlockKind, String),
    Closed(BlockKind, Arc<Block>),
}

/// The content of a block so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockSoFar<'a> {
    /// The deltas of an open block, joined.
    Open(&'a str),
    /// A finished block.
    Closed(&'a Arc<Block>),
}

impl Collector {
    /// Processes the next chunk; returns the reply when it is finished.
    ///
    /// # Errors
    /// `Protocol` if the chunk breaks the grammar of [`Chunk`].
    pub fn push(&mut self, chunk: &Chunk) -> Result<Option<Arc<Reply>>, Error> {
        if self.done {
            return Err(broken("a chunk after the end"));
        }
        match chunk {
            Chunk::Start { model, .. } => self.start(model)?,
            Chunk::Open { block, kind } => self.open(*block, kind)?,
            Chunk::Delta { block, text } => self.delta(*block, text)?,
            Chunk::Close { block, content } => self.close(*block, content)?,
            Chunk::Usage { usage, raw } => {
                self.check_started()?;
                self.usage = *usage;
                self.raw_usage = raw.clone();
            }
            Chunk::Warned { .. } => self.check_started()?,
            Chunk::Pending { .. } => {}
            Chunk::Retracted { .. } => {
                self.check_started()?;
                *self = Self::default();
            }
            Chunk::Done(reply) => {
                self.check_started()?;
                if self
                    .blocks
                    .iter()
                    .any(|slot| matches!(slot, BlockSlot::Open(..)))
                {
                    return Err(broken("the end of a reply with an open block"));
                }
                self.done = true;
                return Ok(Some(Arc::clone(reply)));
            }
        }
        Ok(None)
    }

    /// Returns the reply so far as an interrupted one: finished blocks, and the text of open ones.
    ///
    /// Calls with unfinished arguments are omitted. `None` if no attempt is running.
    pub fn into_interrupted(self) -> Option<Reply> {
        let mut reply = Reply::new(self.model?, FinishReason::Interrupted);
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage;
        reply.blocks = self
            .blocks
            .into_iter()
            .filter_map(BlockSlot::so_far)
            .collect();
        Some(reply)
    }

    /// Returns the reply so far, like [`into_interrupted`](Collector::into_interrupted), while the attempt is running.
    pub fn so_far(&self) -> Option<Reply> {
        let mut reply = Reply::new(self.model.clone()?, FinishReason::Interrupted);
        reply.usage = self.usage;
        reply.raw_usage = self.raw_usage.clone();
        reply.blocks = self
            .blocks
            .iter()
            .cloned()
            .filter_map(BlockSlot::so_far)
            .collect();
        Some(reply)
    }

    /// Returns the model that is answering; `None` if no attempt is running.
    pub fn model(&self) -> Option<&ModelId> {
        self.model.as_ref()
    }

    /// Returns the content of each started block, by its index in the reply.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, &BlockKind, BlockSoFar<'_>)> {
        (0..)
            .zip(&self.blocks)
            .filter_map(|(block, slot)| match slot {
                BlockSlot::Vacant => None,
                BlockSlot::Open(kind, text) => Some((block, kind, BlockSoFar::Open(text))),
                BlockSlot::Closed(kind, content) => {
                    Some((block, kind, BlockSoFar::Closed(content)))
                }
            })
    }

    /// Returns the usage of the attempt so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    fn start(&mut self, model: &ModelId) -> Result<(), Error> {
        if self.model.is_some() {
            return Err(broken("a second start of an attempt"));
        }
        self.model = Some(model.clone());
        Ok(())
    }

    fn check_started(&self) -> Result<(), Error> {
        self.model
            .as_ref()
            .map(|_| ())
            .ok_or_else(|| broken("a chunk before the start"))
    }

    fn open(&mut self, block: u32, kind: &BlockKind) -> Result<(), Error> {
        self.check_started()?;
        let at = block as usize;
        if at >= MAX_BLOCKS {
            return Err(broken("more than 4,096 blocks"));
        }
        while self.blocks.len() <= at {
            self.blocks.push(BlockSlot::Vacant);
        }
        match &mut self.blocks[at] {
            slot @ BlockSlot::Vacant => {
                *slot = BlockSlot::Open(kind.clone(), String::new());
                Ok(())
            }
            BlockSlot::Open(..) | BlockSlot::Closed(..) => Err(broken("a block that opens twice")),
        }
    }

    fn delta(&mut self, block: u32, text: &str) -> Result<(), Error> {
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(broken("a reply of more than 64 MiB"));
        }
        match self.slot(block) {
            Some(BlockSlot::Open(_, so_far)) => {
                so_far.push_str(text);
                Ok(())
            }
            _ => Err(broken("a delta of a block that is not open")),
        }
    }

    fn close(&mut self, block: u32, content: &Arc<Block>) -> Result<(), Error> {
        let slot = self
            .slot(block)
            .filter(|slot| matches!(slot, BlockSlot::Open(..)));
        let slot = slot.ok_or_else(|| broken("the end of a block that is not open"))?;
        if let BlockSlot::Open(kind, _) = std::mem::replace(slot, BlockSlot::Vacant) {
            *slot = BlockSlot::Closed(kind, Arc::clone(content));
        }
        Ok(())
    }

    fn slot(&mut self, block: u32) -> Option<&mut BlockSlot> {
        self.blocks.get_mut(block as usize)
    }
}

impl BlockSlot {
    fn so_far(self) -> Option<Arc<Block>> {
        match self {
            BlockSlot::Closed(_, block) => Some(block),
            BlockSlot::Open(BlockKind::Text, text) if !text.is_empty() => {
                Some(Arc::new(Block::text(text)))
            }
            BlockSlot::Open(BlockKind::Thinking, text) if !text.is_empty() => {
                Some(Arc::new(Block::Thinking(Thinking::new(text))))
            }
            BlockSlot::Open(..) | BlockSlot::Vacant => None,
        }
    }
}

#[cold]
fn broken(what: &str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the stream of the model broke its grammar: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Chunk {
        Chunk::Start {
            attempt: 0,
            model: "x/y".into(),
            limits: Box::default(),
            warnings: Vec::new(),
        }
    }

    #[track_caller]
    fn check(chunks: &[Chunk], expect: &str) {
        let mut collector = Collector::default();
        let result = chunks
            .iter()
            .try_for_each(|chunk| collector.push(chunk).map(|_| ()));
        assert_eq!(
            result.expect_err("the grammar is broken").message(),
            format!("the stream of the model broke its grammar: {expect}")
        );
    }

    #[test]
    fn push_refuses_when_the_grammar_is_broken() {
        let open = || Chunk::Open {
            block: 0,
            kind: BlockKind::Text,
        };
        let done = || Chunk::Done(Arc::new(Reply::new("x/y".into(), FinishReason::End)));
        check(&[open()], "a chunk before the start");
        check(&[start(), start()], "a second start of an attempt");
        check(&[start(), open(), open()], "a block that opens twice");
        check(
            &[
                start(),
                Chunk::Delta {
                    block: 0,
                    text: "a".into(),
                },
            ],
            "a delta of a block that is not open",
        );
        check(
            &[start(), open(), done()],
            "the end of a reply with an open block",
        );
        check(&[start(), done(), done()], "a chunk after the end");
        check(
            &[
                start(),
                Chunk::Open {
                    block: 4_096,
                    kind: BlockKind::Text,
                },
            ],
            "more than 4,096 blocks",
        );
    }

    #[test]
    fn interrupted_keeps_text_when_a_block_is_open() {
        let mut collector = Collector::default();
        let kind = BlockKind::Call {
            id: crate::CallId {
                turn: 1,
                attempt: 0,
                block: 1,
            },
            name: "t".into(),
        };
        for chunk in [
            start(),
            Chunk::Open {
                block: 0,
                kind: BlockKind::Text,
            },
            Chunk::Delta {
                block: 0,
                text: "half an ans".into(),
            },
            Chunk::Open { block: 1, kind },
            Chunk::Delta {
                block: 1,
                text: "{\"a\":".into(),
            },
        ] {
            collector.push(&chunk).expect("the grammar holds");
        }
        let said: Vec<_> = collector
            .blocks()
            .map(|(block, _, said)| (block, said))
            .collect();
        assert_eq!(
            said,
            [
                (0, BlockSoFar::Open("half an ans")),
                (1, BlockSoFar::Open("{\"a\":"))
            ]
        );
        let reply = collector
            .into_interrupted()
            .expect("an attempt was going on");
        assert_eq!(
            (reply.text().as_str(), reply.calls().count(), reply.stop),
            ("half an ans", 0, FinishReason::Interrupted)
        );
    }
}
