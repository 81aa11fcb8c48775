//! Entry points for fuzz targets: answers as bytes, played through splitter and decoder without a network.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Chunk, Collector, Error, ModelInfo};

use crate::{
    Anthropic, Chat, Gemini, Key, OpenAi,
    blocks::Place,
    driver::{self, Decode, Flow},
    sse::Splitter,
};

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

/// Plays an answer, cut in pieces of the size that its first byte says, and whole.
///
/// # Panics
/// If the stream breaks the grammar of chunks, does not end in exactly one terminal, or depends on how it is cut.
pub fn decode(wire: Wire, bytes: &[u8]) {
    let Some((first, answer)) = bytes.split_first() else { return };
    let info = ModelInfo::new("fuzz/model");
    match wire {
        Wire::Messages => both(Anthropic::new(info, Key::none()).wire(), *first, answer),
        Wire::Responses => both(OpenAi::new(info, Key::none()).wire(), *first, answer),
        Wire::Chat => both(Chat::new(info, Key::none()).wire(), *first, answer),
        Wire::Gemini => both(Gemini::new(info, Key::none()).wire(), *first, answer),
    }
}

fn both(wire: &impl driver::Wire, size: u8, answer: &[u8]) {
    let whole = play(wire, answer.len().max(1), answer);
    let cut = play(wire, usize::from(size).max(1), answer);
    assert_eq!(whole, cut, "how an answer is cut makes no difference");
}

fn play(wire: &impl driver::Wire, size: usize, answer: &[u8]) -> Vec<Result<Chunk, Error>> {
    let mut decoder = wire.decoder(Place { turn: 1, attempt: 0 });
    let (mut splitter, mut out) = (Splitter::default(), VecDeque::new());
    let end = read(&mut decoder, &mut splitter, size, answer, &mut out);
    let mut collector = Collector::new();
    let start =
        Chunk::Start { attempt: 0, model: wire.info().id.clone(), limits: Box::default(), warnings: Vec::new() };
    let mut items: Vec<Result<Chunk, Error>> = std::iter::once(start).chain(out).map(Ok).collect();
    for chunk in items.iter().flatten() {
        let pushed = collector.push(chunk);
        assert!(matches!(pushed, Ok(None)), "the grammar holds: {pushed:?} at {chunk:?}");
    }
    items.push(end);
    items
}

/// Reads an answer to its end; gives the terminal.
fn read<D: Decode>(
    decoder: &mut D,
    splitter: &mut Splitter,
    size: usize,
    answer: &[u8],
    out: &mut VecDeque<Chunk>,
) -> Result<Chunk, Error> {
    for piece in answer.chunks(size) {
        let bad = splitter.push(piece).err();
        while let Some(frame) = splitter.next()? {
            if decoder.frame(frame, out)? == Flow::Finished {
                return decoder.end(out).map(|reply| Chunk::Done(Arc::new(reply)));
            }
        }
        if let Some(error) = bad {
            return Err(error);
        }
    }
    if let Ok(Some(frame)) = splitter.last() {
        decoder.frame(frame, out)?;
    }
    decoder.end(out).map(|reply| Chunk::Done(Arc::new(reply)))
}
