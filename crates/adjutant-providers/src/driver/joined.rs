//! Halves of surrogate pairs in neighboring deltas are joined, and renamed property keys are restored.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, Chunk, Error, ErrorKind, Reply, ToolDecl};

use super::{Decode, Flow};
use crate::{
    sse::Frame,
    strict::restore_keys,
    surrogates::{ESCAPE, Half, REPLACEMENT, lone, mended, replaced},
};

/// Passes complete characters to a decoder: halves in neighboring frames are joined, and lone ones are replaced. The
/// arguments of calls get their original property keys back.
#[derive(Debug)]
pub(crate) struct Joined<D> {
    decoder: D,
    /// The tools of the request, and the tools that messages added.
    tools: [Arc<[ToolDecl]>; 2],
    held: Option<Box<Held>>,
}

/// A frame with strings that end in a high half; the next frame decides what becomes of them.
#[derive(Debug)]
struct Held {
    event: String,
    data: String,
    /// The offsets of those halves.
    highs: Vec<usize>,
}

impl<D: Decode> Joined<D> {
    pub(crate) fn new(decoder: D, tools: [Arc<[ToolDecl]>; 2]) -> Self {
        Self {
            decoder,
            tools,
            held: None,
        }
    }

    /// Decodes a frame that the decoder cannot read: `error` is its reason.
    #[cold]
    fn repair(
        &mut self,
        frame: Frame<'_>,
        error: Error,
        out: &mut VecDeque<Chunk>,
    ) -> Result<Flow, Error> {
        let (event, mut halves) = (frame.event, lone(frame.data));
        if halves.is_empty() {
            return Err(error);
        }
        // A frame that ends the answer is not held: nothing may follow it.
        let is_delta = event.is_empty() || event.ends_with("delta");
        let is_held = |half: &mut Half| is_delta && half.is_high && half.is_outer;
        let highs: Vec<usize> = halves.extract_if(.., is_held).map(|half| half.at).collect();
        let data = replaced(frame.data, &halves);
        if highs.is_empty() {
            return self.decoder.frame(Frame { event, data: &data }, out);
        }
        self.held = Some(Box::new(Held {
            event: event.to_owned(),
            data,
            highs,
        }));
        Ok(Flow::More)
    }

    /// Decodes the frame that is held, and then this one.
    #[cold]
    fn join(
        &mut self,
        held: Box<Held>,
        frame: Frame<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<Flow, Error> {
        if frame.event == "ping" || frame.data.trim().is_empty() {
            self.held = Some(held);
            return Ok(Flow::More);
        }
        let mut lows = lone(frame.data);
        lows.retain(|half| !half.is_high && half.is_outer);
        let (mut first, mut data) = (held.data.clone(), frame.data.to_owned());
        // From the end on, so that the offsets before stay.
        for high in held.highs.iter().rev() {
            match lows.pop() {
                Some(low) => {
                    let half: String = data.drain(low.at..low.at + ESCAPE).collect();
                    first.insert_str(high + ESCAPE, &half);
                }
                None => first.replace_range(*high..high + ESCAPE, REPLACEMENT),
            }
        }
        let event = &held.event;
        self.decoder.frame(
            Frame {
                event,
                data: &first,
            },
            out,
        )?;
        self.frame(
            Frame {
                event: frame.event,
                data: &data,
            },
            out,
        )
    }

    fn restored(&self, block: &Block) -> Option<Arc<Block>> {
        let mut tools = self.tools.iter();
        tools.find_map(|tools| restore_keys(block, tools).map(Arc::new))
    }

    /// Restores the keys of calls that were closed since `out` had this length.
    fn restore(&self, out: &mut VecDeque<Chunk>, before: usize) {
        for chunk in out.range_mut(before.min(out.len())..) {
            if let Chunk::Close { content, .. } = chunk
                && let Some(restored) = self.restored(content)
            {
                *content = restored;
            }
        }
    }

    /// Decodes the frame that is held, if there is one: nothing follows it.
    fn release(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if let Some(held) = self.held.take() {
            let data = mended(&held.data).unwrap_or(held.data);
            let event = &held.event;
            self.decoder.frame(Frame { event, data: &data }, out)?;
        }
        Ok(())
    }
}

impl<D: Decode> Decode for Joined<D> {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let before = out.len();
        let decoded = match self.held.take() {
            Some(held) => self.join(held, frame, out),
            None => match self.decoder.frame(frame, out) {
                Err(error) if error.kind() == ErrorKind::Protocol => self.repair(frame, error, out),
                decoded => decoded,
            },
        };
        self.restore(out, before);
        decoded
    }

    fn document(&mut self, json: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let (before, mended) = (out.len(), mended(json));
        let json = mended.as_deref().unwrap_or(json);
        let decoded = self.decoder.document(json, out);
        self.restore(out, before);
        decoded
    }

    fn is_whole(&self) -> bool {
        self.decoder.is_whole()
    }

    fn awaits_usage(&self) -> bool {
        self.decoder.awaits_usage()
    }

    fn cut(&mut self, out: &mut VecDeque<Chunk>) {
        let _ = self.release(out);
        self.decoder.cut(out);
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        self.release(out)?;
        let before = out.len();
        let mut reply = self.decoder.end(out)?;
        self.restore(out, before);
        for block in &mut reply.blocks {
            if let Some(restored) = self.restored(block) {
                *block = restored;
            }
        }
        Ok(reply)
    }
}
