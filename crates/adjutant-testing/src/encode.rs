//! The parts that the encoders of all wires have in common: server-sent events, JSON text, and the ids that a vendor
//! would mint.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{BlockKind, CallId, Chunk, RateLimits};
use serde_json::Value;

use crate::{
    body::Body,
    issued::{self, Issued},
    refusal::Refusal,
    wire::{Asked, Wire},
};

/// Turns the chunks of a model into the frames of a wire.
pub(crate) trait Encoder: Send {
    /// Encodes a chunk and appends the result.
    ///
    /// # Errors
    /// If the wire has no form for it, as for a retracted attempt.
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal>;

    /// The vendor's error within a stream.
    fn error(&self, refusal: &Refusal, at: ErrorAt) -> Vec<u8>;

    /// The headers of the answer.
    fn headers(&self, limits: &RateLimits) -> Vec<(&'static str, String)>;
}

/// The place of an error in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorAt {
    /// After the output so far: the model has failed.
    Here,
    /// After that many frames, counted from the beginning: a fault.
    Frame(u64),
}

/// The data that is unique to an answer.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    /// The number of the request at this server, from 0.
    pub(crate) number: usize,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) now_ms: u64,
    pub(crate) issued: Arc<Issued>,
}

/// The data that every encoder has about an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) asked: Asked,
    pub(crate) stamp: Stamp,
    pub(crate) blocks: BTreeMap<u32, OpenBlock>,
}

/// A block that has not ended.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) kind: BlockKind,
    /// True if the client has received the start of the block.
    pub(crate) announced: bool,
    /// True if a delta was sent.
    pub(crate) grown: bool,
}

impl Answer {
    pub(crate) fn new(asked: Asked, stamp: Stamp) -> Self {
        Self {
            asked,
            stamp,
            blocks: BTreeMap::new(),
        }
    }

    pub(crate) fn open(&mut self, block: u32, kind: &BlockKind, announced: bool) {
        self.blocks.insert(
            block,
            OpenBlock {
                kind: kind.clone(),
                announced,
                grown: false,
            },
        );
    }

    /// Keeps in mind that a signature was sent.
    pub(crate) fn issue(&self, wire: Wire, seal: &str) {
        self.stamp.issued.add(wire, &self.asked.model, seal);
        self.stamp.issued.bind(seal, &self.asked.prefix);
    }

    /// The signature that was given, or a new one; kept in mind as sent.
    pub(crate) fn seal(&self, wire: Wire, given: Option<&str>, block: u32) -> String {
        let given = given.filter(|given| !given.is_empty()).map(str::to_owned);
        let seal = given
            .unwrap_or_else(|| issued::mint(wire, &self.asked.model, self.stamp.number, block));
        self.issue(wire, &seal);
        seal
    }

    /// The id that the vendor gives a call: 24 digits after a prefix, never the same twice on one server.
    pub(crate) fn call_id(&self, prefix: &str, id: CallId) -> String {
        let (request, turn) = (self.stamp.number % 1_000_000, id.turn % 1_000_000);
        let (attempt, block) = (id.attempt % 10_000, id.block % 1_000_000);
        format!("{prefix}01{request:06}{turn:06}{attempt:04}{block:06}")
    }
}

/// Creates the refusal for output that a served model must not produce: the client gets it as the vendor's failure.
pub(crate) fn unspeakable(what: &str) -> Refusal {
    Refusal::new(
        500,
        format!("the served model did what this wire cannot say: {what}"),
    )
}

/// Adds a string as JSON text.
pub(crate) fn push_json(text: &str, to: &mut Vec<u8>) {
    // Writing into a vector does not fail, and a string is always JSON.
    let _ = serde_json::to_writer(to, text);
}

/// Adds `data:` and the value, with the blank line.
pub(crate) fn push_data(data: &Value, to: &mut Vec<u8>) {
    to.extend_from_slice(b"data: ");
    let _ = serde_json::to_writer(&mut *to, data);
    to.extend_from_slice(b"\n\n");
}
