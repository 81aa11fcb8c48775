//! One item of an answer while it streams, and the blocks that it becomes. Pure.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, Chunk, Error, Extra, Text, Thinking, surrogates};
use serde_json::{Map, Value, value::RawValue};

use super::{
    items::protocol,
    wire::{Done, Said},
};
use crate::{args, blocks::Blocks};

/// The largest number of pieces that an item may have.
const MAX_PIECES: usize = 4_096;
/// The text between two pieces of reasoning.
const BETWEEN: &str = "\n\n";

/// The kind of an item's text that an event belongs to, in addition to its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextKind {
    /// A part of a message: text or a refusal.
    Said,
    /// A part of the summary of reasoning.
    Summary,
    /// A part of the reasoning itself.
    Thought,
    /// The arguments of a call.
    Args,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    Opaque,
}

#[derive(Debug)]
pub(super) struct OutputItem {
    /// Its place in the answer.
    pub(super) order: u64,
    pub(super) id: Option<String>,
    pub(super) kind: Kind,
    pieces: Vec<Piece>,
    /// The block of an item that has one: all but messages.
    block: Option<u32>,
    /// True if the reasoning has content.
    spoke: bool,
    /// True if it has come whole.
    pub(super) done: bool,
    /// True if the item reports that it was cut off.
    pub(super) cut: bool,
    pub(super) closed: bool,
    name: Option<Arc<str>>,
    call_id: Option<Arc<str>>,
    signature: Option<Arc<str>>,
    /// The data that is returned with it. Shape: `{"id","phase","annotations"}` of text, `{"id","summary","content"}`
    /// of reasoning, `{"id","namespace","caller"}` of a call, each if it arrived.
    extra: Map<String, Value>,
    /// The whole of an item that is not understood.
    value: Value,
}

#[derive(Debug)]
pub(super) struct Piece {
    key: (TextKind, u64),
    pub(super) text: String,
    /// The number of bytes of the text that were given on.
    sent: usize,
    /// The block of a part of a message.
    block: Option<u32>,
    annotations: Vec<Value>,
}

impl OutputItem {
    /// An item of which only this is known.
    pub(super) fn new(order: u64, id: Option<&str>, kind: Kind) -> Self {
        Self {
            order,
            id: id.map(str::to_owned),
            kind,
            pieces: Vec::new(),
            block: None,
            spoke: false,
            done: false,
            cut: false,
            closed: false,
            name: None,
            call_id: None,
            signature: None,
            extra: Map::new(),
            value: Value::Null,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.block.is_some() || self.pieces.iter().any(|piece| piece.block.is_some())
    }

    /// True if it has all the blocks that it will have.
    pub(super) fn is_settled(&self) -> bool {
        match self.kind {
            Kind::Message => self.done,
            Kind::Reasoning | Kind::Call | Kind::Opaque => self.block.is_some(),
        }
    }

    /// True if it is a call whose arguments are not an object yet.
    pub(super) fn wants_args(&self) -> bool {
        let is_partial = |piece: &Piece| !args::is_object(&piece.text);
        self.kind == Kind::Call && !self.done && self.pieces.iter().all(is_partial)
    }

    /// Reads the fields that are known from the start of an item.
    pub(super) fn read_start_fields(&mut self, item: &Done<'_>) {
        let keep = |slot: &mut Option<Arc<str>>, said: &Option<Cow<'_, str>>| {
            if let Some(said) = said.as_deref().filter(|it| !it.is_empty()) {
                *slot = Some(said.into());
            }
        };
        keep(&mut self.name, &item.name.0);
        keep(&mut self.call_id, &item.call_id.0);
        if let Some(id) = item.id.0.as_deref().filter(|it| !it.is_empty()) {
            self.id = Some(id.to_owned());
            self.extra.insert("id".to_owned(), id.into());
        }
        if let (Kind::Message, Some(phase)) = (self.kind, &item.phase.0) {
            self.extra.insert("phase".to_owned(), phase.as_ref().into());
        }
        for (name, value) in [("namespace", &item.namespace), ("caller", &item.caller)] {
            if self.kind == Kind::Call && !value.is_null() {
                self.extra.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// Reads the final fields, which are authoritative; returns whether the item is a refusal.
    pub(super) fn finish(&mut self, item: Done<'_>, value: &str) -> Result<bool, Error> {
        self.read_start_fields(&item);
        self.done = true;
        self.cut = item.status.0.as_deref() == Some("incomplete");
        match self.kind {
            Kind::Message => return self.read_message(&item),
            Kind::Reasoning => self.read_reasoning(item)?,
            Kind::Call => {
                if let Some(args) = &item.arguments.0 {
                    self.piece((TextKind::Args, 0))?.set(args);
                }
            }
            Kind::Opaque => self.value = surrogates::read(value).unwrap_or_default(),
        }
        Ok(false)
    }

    /// Takes a message that has come whole; whether it is a refusal.
    fn read_message(&mut self, item: &Done<'_>) -> Result<bool, Error> {
        let mut refused = false;
        for (index, part) in (0..).zip(parts(item.content)?) {
            refused |= part.refusal.is_some();
            let piece = self.piece((TextKind::Said, index))?;
            piece.set(part.text.or(part.refusal).as_deref().unwrap_or_default());
            piece.annotations = part.annotations.unwrap_or_default();
        }
        Ok(refused)
    }

    /// Reads complete reasoning. Encrypted content before that may be incomplete.
    ///
    /// Source: `encrypted_content` of reasoning items in the API's own description, 2026-08.
    fn read_reasoning(&mut self, item: Done<'_>) -> Result<(), Error> {
        let summary = item.summary.unwrap_or_default();
        for (index, part) in (0..).zip(summary.as_array().into_iter().flatten()) {
            self.piece((TextKind::Summary, index))?
                .set(part["text"].as_str().unwrap_or_default());
        }
        for (index, part) in (0..).zip(parts(item.content)?) {
            self.piece((TextKind::Thought, index))?
                .set(part.text.as_deref().unwrap_or_default());
        }
        if summary.is_array() {
            self.extra.insert("summary".to_owned(), summary);
        }
        let content = item
            .content
            .and_then(|raw| surrogates::read::<Value>(raw.get()).ok());
        // Models that encrypt it refuse the list even if it is empty.
        if let Some(content) =
            content.filter(|it| it.as_array().is_some_and(|parts| !parts.is_empty()))
        {
            self.extra.insert("content".to_owned(), content);
        }
        self.signature = item
            .encrypted_content
            .0
            .filter(|it| !it.is_empty())
            .map(Into::into);
        Ok(())
    }

    pub(super) fn piece(&mut self, key: (TextKind, u64)) -> Result<&mut Piece, Error> {
        // Mostly the last one.
        let at = match self.pieces.iter().rposition(|piece| piece.key == key) {
            Some(at) => at,
            None if self.pieces.len() == MAX_PIECES => {
                return Err(protocol("an item of the answer has more than 4,096 parts"));
            }
            None => {
                let at = self.pieces.partition_point(|piece| piece.key < key);
                let piece = Piece {
                    key,
                    text: String::new(),
                    sent: 0,
                    block: None,
                    annotations: Vec::new(),
                };
                self.pieces.insert(at, piece);
                at
            }
        };
        Ok(&mut self.pieces[at])
    }

    /// Opens its blocks, and emits the new part of their texts.
    pub(super) fn open(
        &mut self,
        blocks: &mut Blocks,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        match self.kind {
            Kind::Message => {
                for piece in self
                    .pieces
                    .iter_mut()
                    .filter(|piece| piece.sent < piece.text.len())
                {
                    let block = match piece.block {
                        Some(block) => block,
                        None => blocks.open(|_| BlockKind::Text, out)?,
                    };
                    piece.block = Some(block);
                    piece.send(block, out);
                }
            }
            Kind::Reasoning => {
                let block = match self.block {
                    Some(block) => block,
                    None => blocks.open(|_| BlockKind::Thinking, out)?,
                };
                self.block = Some(block);
                for piece in self
                    .pieces
                    .iter_mut()
                    .filter(|piece| piece.sent < piece.text.len())
                {
                    if piece.sent == 0 && self.spoke {
                        out.push_back(Chunk::Delta {
                            block,
                            text: BETWEEN.to_owned(),
                        });
                    }
                    self.spoke = true;
                    piece.send(block, out);
                }
            }
            Kind::Call => {
                let block = match (self.block, &self.name) {
                    (Some(block), _) => block,
                    (None, Some(name)) => blocks.open(
                        |id| BlockKind::Call {
                            id,
                            name: name.to_string().into(),
                        },
                        out,
                    )?,
                    (None, None) => return Ok(()),
                };
                self.block = Some(block);
                for piece in self
                    .pieces
                    .iter_mut()
                    .filter(|piece| piece.sent < piece.text.len())
                {
                    piece.send(block, out);
                }
            }
            Kind::Opaque if self.done && self.block.is_none() => {
                self.block = Some(blocks.open(|_| BlockKind::Opaque, out)?);
            }
            Kind::Opaque => {}
        }
        Ok(())
    }

    pub(super) fn close(
        &mut self,
        blocks: &mut Blocks,
        issuer: &Arc<str>,
        out: &mut VecDeque<Chunk>,
    ) {
        self.closed = true;
        if self.kind == Kind::Message {
            for piece in std::mem::take(&mut self.pieces) {
                let Some(block) = piece.block else { continue };
                let mut extra = self.extra.clone();
                if !piece.annotations.is_empty() {
                    extra.insert("annotations".to_owned(), Value::Array(piece.annotations));
                }
                blocks.close(
                    block,
                    Block::Text(Text {
                        text: piece.text.into(),
                        extra: extra_of(extra),
                    }),
                    out,
                );
            }
            return;
        }
        let Some(block) = self.block else { return };
        let extra = extra_of(std::mem::take(&mut self.extra));
        let texts: Vec<_> = self
            .pieces
            .iter()
            .map(|it| it.text.as_str())
            .filter(|it| !it.is_empty())
            .collect();
        let content = match (self.kind, self.name.take()) {
            (Kind::Call, Some(name)) => Block::Call(Call {
                id: blocks.call_id(block),
                wire_id: self.call_id.take(),
                name: name.to_string().into(),
                args: texts.concat().into(),
                extra,
            }),
            (Kind::Reasoning, _) => {
                let (text, signature) = (texts.join(BETWEEN), self.signature.take());
                let redacted = text.is_empty() && signature.is_some();
                Block::Thinking(Thinking {
                    text: text.into(),
                    signature,
                    redacted,
                    extra,
                })
            }
            _ => Block::Opaque {
                issuer: Arc::clone(issuer),
                value: std::mem::take(&mut self.value),
            },
        };
        blocks.close(block, content, out);
    }
}

impl Piece {
    /// Sets the complete text. Wrong deltas that were already emitted stay in the stream only.
    pub(super) fn set(&mut self, whole: &str) {
        if whole.is_empty() {
            return;
        }
        match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => self.text.push_str(rest),
            None => {
                whole.clone_into(&mut self.text);
                self.sent = if self.sent == 0 { 0 } else { whole.len() };
            }
        }
    }

    fn send(&mut self, block: u32, out: &mut VecDeque<Chunk>) {
        out.push_back(Chunk::Delta {
            block,
            text: self.text[self.sent..].to_owned(),
        });
        self.sent = self.text.len();
    }
}

impl Kind {
    pub(super) fn from_name(kind: &str) -> Self {
        match kind {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Opaque,
        }
    }
}

impl TextKind {
    pub(super) fn kind(self) -> Kind {
        match self {
            TextKind::Said => Kind::Message,
            TextKind::Summary | TextKind::Thought => Kind::Reasoning,
            TextKind::Args => Kind::Call,
        }
    }
}

fn parts(content: Option<&RawValue>) -> Result<Vec<Said>, Error> {
    let Some(raw) = content else {
        return Ok(Vec::new());
    };
    surrogates::read(raw.get())
        .map_err(|_| protocol("an item of the answer has content that cannot be read"))
}

fn extra_of(members: Map<String, Value>) -> Extra {
    if members.is_empty() {
        Extra::default()
    } else {
        Extra::from(Value::Object(members))
    }
}
