//! Parts of a reply that were acknowledged while it was on its way.

use std::{collections::BTreeSet, iter, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, Chunk, Collector, ModelId, Reply, Thinking};
use serde::{Deserialize, Serialize};

/// The new text of one block since the last time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcknowledgedPart {
    /// The block, counted from 0 in its reply.
    pub block: u32,
    /// The kind of the block.
    pub kind: BlockKind,
    /// Its text: text, thinking, or arguments as JSON text.
    pub text: String,
    /// True if the block was finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The finished block, if it holds more than its texts do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Arc<Block>>,
}

impl AcknowledgedPart {
    /// Joins later parts with the known ones; one part for each block.
    pub(crate) fn join(known: &mut Vec<AcknowledgedPart>, later: &[AcknowledgedPart]) {
        for part in later {
            match known.iter_mut().find(|it| it.block == part.block) {
                Some(it) => {
                    it.text.push_str(&part.text);
                    it.closed |= part.closed;
                    it.content = part.content.clone().or(it.content.take());
                }
                None => known.push(part.clone()),
            }
        }
    }

    /// Returns the acknowledged parts as an interrupted reply, by the rules for a cut-off reply; `None` if nothing
    /// remains.
    pub(crate) fn reply(model: &ModelId, heard: &[AcknowledgedPart]) -> Option<Reply> {
        let start = Chunk::Start {
            attempt: 0,
            model: model.clone(),
            limits: Box::default(),
            warnings: Vec::new(),
        };
        let mut collector = Collector::default();
        for chunk in iter::once(start).chain(heard.iter().flat_map(AcknowledgedPart::chunks)) {
            // A chunk that breaks the grammar is ignored.
            let _ = collector.push(&chunk);
        }
        let mut reply = collector.into_interrupted()?;
        let mut calls = BTreeSet::new();
        reply.blocks.retain(|block| match &**block {
            Block::Call(call) => calls.insert(call.id),
            _ => true,
        });
        (!reply.blocks.is_empty()).then_some(reply)
    }

    /// The finished block; `None` while it is open.
    pub(crate) fn to_block(&self) -> Option<Arc<Block>> {
        let made = || match &self.kind {
            BlockKind::Text => Some(Block::text(self.text.as_str())),
            BlockKind::Thinking => Some(Block::Thinking(Thinking::new(self.text.as_str()))),
            BlockKind::Call { id, name } => Some(Block::Call(Call::new(
                *id,
                name.clone(),
                self.text.as_str(),
            ))),
            _ => None,
        };
        let content = || self.content.clone().or_else(|| made().map(Arc::new));
        self.closed.then(content).flatten()
    }

    fn chunks(&self) -> impl Iterator<Item = Chunk> {
        let block = self.block;
        let text = Some(self.text.clone()).filter(|text| !text.is_empty());
        iter::once(Chunk::Open {
            block,
            kind: self.kind.clone(),
        })
        .chain(text.map(|text| Chunk::Delta { block, text }))
        .chain(
            self.to_block()
                .map(|content| Chunk::Close { block, content }),
        )
    }

    /// The text of a block, if it has one.
    pub fn text_of(content: &Block) -> Option<&str> {
        match content {
            Block::Text(it) => Some(&it.text),
            Block::Thinking(it) => Some(&it.text),
            Block::Call(it) => Some(&it.args),
            _ => None,
        }
    }

    /// The text of a finished block that holds nothing else.
    pub fn only_text<'a>(kind: &BlockKind, content: &'a Block) -> Option<&'a str> {
        match (kind, content) {
            (BlockKind::Text, Block::Text(text)) if text.extra.is_null() => Some(&text.text),
            (BlockKind::Thinking, Block::Thinking(it))
                if it.signature.is_none() && !it.redacted && it.extra.is_null() =>
            {
                Some(&it.text)
            }
            (BlockKind::Call { id, name }, Block::Call(call))
                if call.id == *id
                    && call.name == *name
                    && call.wire_id.is_none()
                    && call.extra.is_null() =>
            {
                Some(&call.args)
            }
            _ => None,
        }
    }
}
