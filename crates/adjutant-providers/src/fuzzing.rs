//! Entry points for fuzz targets and benchmarks: answers as bytes, played through splitter and decoder without a network.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Chunk, Collector, Error, ModelInfo, Request};
use bytes::Bytes;
use http_body::Body;

use crate::{
    Anthropic, Chat, Gemini, Key, OpenAi,
    blocks::CallIdSeed,
    body::Segmented,
    driver::Joined,
    driver::{self, Decode, Flow},
    sse::Splitter,
};

/// The number of bytes per piece when an answer is measured: the usual size of a read from a connection.
const PIECE: usize = 16 * 1024;
/// The number of chunks that wait for the reader when an answer is measured, as in the driver.
const BATCH: usize = 32;

/// A wire whose decoder is fuzzed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Google Gemini.
    Gemini,
}

/// Plays an answer whole, and in pieces of the size in its first byte.
///
/// # Panics
/// If the stream breaks the grammar of chunks, does not end in exactly one terminal, or depends on how it is cut.
pub fn decode(wire: Wire, bytes: &[u8]) {
    let Some((first, answer)) = bytes.split_first() else {
        return;
    };
    let info = ModelInfo::new("fuzz/model");
    match wire {
        Wire::Messages => both(Anthropic::new(info, Key::none()).wire(), *first, answer),
        Wire::Responses => both(OpenAi::new(info, Key::none()).wire(), *first, answer),
        Wire::Chat => both(Chat::new(info, Key::none()).wire(), *first, answer),
        Wire::Gemini => both(Gemini::new(info, Key::none()).wire(), *first, answer),
    }
}

/// Decodes an answer once, like a reader of the stream; returns the number of chunks.
///
/// # Errors
/// The error in the answer, or `Protocol` if it cannot be read or is incomplete.
pub fn decode_once(wire: Wire, answer: &[u8]) -> Result<usize, Error> {
    let info = ModelInfo::new("bench/model");
    match wire {
        Wire::Messages => drain(Anthropic::new(info, Key::none()).wire(), answer),
        Wire::Responses => drain(OpenAi::new(info, Key::none()).wire(), answer),
        Wire::Chat => drain(Chat::new(info, Key::none()).wire(), answer),
        Wire::Gemini => drain(Gemini::new(info, Key::none()).wire(), answer),
    }
}

/// A model that only writes requests. Its cached encodings are reused from call to call.
pub fn encoder(wire: Wire) -> Box<dyn Fn(&Request) -> Encoded> {
    let info = ModelInfo::new("bench/model");
    match wire {
        Wire::Messages => {
            let model = Anthropic::new(info, Key::none());
            Box::new(move |request| Encoded::from_request(model.wire(), request))
        }
        Wire::Responses => {
            let model = OpenAi::new(info, Key::none());
            Box::new(move |request| Encoded::from_request(model.wire(), request))
        }
        Wire::Chat => {
            let model = Chat::new(info, Key::none());
            Box::new(move |request| Encoded::from_request(model.wire(), request))
        }
        Wire::Gemini => {
            let model = Gemini::new(info, Key::none());
            Box::new(move |request| Encoded::from_request(model.wire(), request))
        }
    }
}

/// The body of a request, as it would be sent.
#[derive(Debug)]
pub struct Encoded(Segmented);

impl Encoded {
    fn from_request(wire: &impl driver::Driven, request: &Request) -> Self {
        Self(wire.encode(request).body)
    }

    /// Returns its size in bytes, without reading or copying anything.
    pub fn bytes(&self) -> u64 {
        Body::size_hint(&self.0).lower()
    }

    /// The pieces of the body. Earlier pieces are shared with the previous bodies.
    pub fn pieces(&self) -> impl Iterator<Item = Bytes> {
        self.0.clone()
    }
}

fn drain(wire: &impl driver::Driven, answer: &[u8]) -> Result<usize, Error> {
    let mut decoder = wire.decoder(CallIdSeed {
        turn: 1,
        attempt: 0,
    });
    let (mut splitter, mut out) = (Splitter::default(), VecDeque::new());
    let mut chunks = 0;
    let mut flow = Flow::More;
    for piece in answer.chunks(PIECE) {
        splitter.push(piece);
        while let (Flow::More, Some(frame)) = (flow, splitter.next()?) {
            flow = decoder.frame(frame, &mut out)?;
            if out.len() >= BATCH {
                chunks += out.drain(..).map(std::hint::black_box).count();
            }
        }
    }
    if flow == Flow::More
        && let Some(frame) = splitter.last()?
    {
        decoder.frame(frame, &mut out)?;
    }
    let reply = decoder.end(&mut out)?;
    std::hint::black_box(reply);
    Ok(chunks + out.len())
}

fn both(wire: &impl driver::Driven, size: u8, answer: &[u8]) {
    let whole = play(wire, answer.len().max(1), answer);
    let cut = play(wire, usize::from(size).max(1), answer);
    assert_eq!(whole, cut, "how an answer is cut makes no difference");
}

fn play(wire: &impl driver::Driven, size: usize, answer: &[u8]) -> Vec<Result<Chunk, Error>> {
    let mut decoder = Joined::new(
        wire.decoder(CallIdSeed {
            turn: 1,
            attempt: 0,
        }),
        Default::default(),
    );
    let (mut splitter, mut out) = (Splitter::default(), VecDeque::new());
    let end = read(&mut decoder, &mut splitter, size, answer, &mut out);
    let mut collector = Collector::default();
    let start = Chunk::Start {
        attempt: 0,
        model: wire.info().id.clone(),
        limits: Box::default(),
        warnings: Vec::new(),
    };
    let mut items: Vec<Result<Chunk, Error>> = std::iter::once(start).chain(out).map(Ok).collect();
    for chunk in items.iter().flatten() {
        let pushed = collector.push(chunk);
        assert!(
            matches!(pushed, Ok(None)),
            "the grammar holds: {pushed:?} at {chunk:?}"
        );
    }
    items.push(end);
    items
}

/// Reads an answer to its end; returns the terminal item.
fn read<D: Decode>(
    decoder: &mut D,
    splitter: &mut Splitter,
    size: usize,
    answer: &[u8],
    out: &mut VecDeque<Chunk>,
) -> Result<Chunk, Error> {
    for piece in answer.chunks(size) {
        splitter.push(piece);
        while let Some(frame) = splitter.next()? {
            if decoder.frame(frame, out)? == Flow::Finished {
                return decoder.end(out).map(|reply| Chunk::Done(Arc::new(reply)));
            }
        }
    }
    if let Ok(Some(frame)) = splitter.last() {
        decoder.frame(frame, out)?;
    }
    decoder.end(out).map(|reply| Chunk::Done(Arc::new(reply)))
}
