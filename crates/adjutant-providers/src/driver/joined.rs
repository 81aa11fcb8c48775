//! Halves of surrogate pairs in neighboring deltas are joined; renamed tools and property keys get their names back.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Block, BlockKind, Call, Chunk, Error, ErrorKind, Reply, ToolDecl,
    surrogates::{ESCAPE, Half, REPLACEMENT, lone, mend, replace},
};

use super::{Decode, Flow};
use crate::{
    pieces::set_args,
    sse::Frame,
    strict::{has_renamed_keys, restore_keys},
    tool_names,
};

/// Passes complete characters to a decoder: halves in neighboring frames are joined, and lone ones are replaced. Calls
/// get their original names and property keys back.
#[derive(Debug)]
pub(crate) struct Joined<D> {
    decoder: D,
    held: Option<Box<Held>>,
    /// `None` if all tools are declared with their own names and keys.
    renamed: Option<Box<Renamed>>,
}

/// The tools that are declared with other names or property keys, and their calls.
#[derive(Debug)]
struct Renamed {
    tools: Arc<[ToolDecl]>,
    /// The open calls of tools with renamed keys. Their arguments are one delta, when they are complete.
    open: Vec<u32>,
    /// True if the name or the keys of a call were restored.
    is_restored: bool,
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
    pub(crate) fn new(decoder: D, renamed: Arc<[ToolDecl]>) -> Self {
        let has_renamed = !renamed.is_empty();
        let renamed = has_renamed.then(|| {
            Box::new(Renamed {
                tools: renamed,
                open: Vec::new(),
                is_restored: false,
            })
        });
        Self {
            decoder,
            held: None,
            renamed,
        }
    }

    /// Decodes a frame that follows a held frame, or with calls whose names or keys are restored.
    #[cold]
    fn decode_with_changes(
        &mut self,
        frame: Frame<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<Flow, Error> {
        let before = out.len();
        let decoded = match self.held.take() {
            Some(held) => self.join(held, frame, out),
            None => match self.decoder.frame(frame, out) {
                Err(error) => self.repair(frame, error, out),
                decoded => decoded,
            },
        };
        self.restore(out, before);
        decoded
    }

    /// Restores the names and keys of calls in the chunks that came since `out` had this length.
    fn restore(&mut self, out: &mut VecDeque<Chunk>, before: usize) {
        if let Some(renamed) = &mut self.renamed {
            renamed.restore(out, before);
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
        if halves.is_empty() || error.kind() != ErrorKind::Protocol {
            return Err(error);
        }
        // A frame that ends the answer is not held: nothing may follow it.
        let is_delta = event.is_empty() || event.ends_with("delta");
        let is_held = |half: &mut Half| is_delta && half.is_high && half.is_outer;
        let highs: Vec<usize> = halves.extract_if(.., is_held).map(|half| half.at).collect();
        let data = replace(frame.data, &halves);
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

    /// Decodes the frame that is held, if there is one: nothing follows it.
    fn release(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        if let Some(held) = self.held.take() {
            let data = mend(&held.data).unwrap_or(held.data);
            let event = &held.event;
            self.decoder.frame(Frame { event, data: &data }, out)?;
        }
        Ok(())
    }
}

impl Renamed {
    /// Returns a call with the name and keys of its tool, or `None` if nothing changes.
    fn restore_call(&self, block: &Block) -> Option<Arc<Block>> {
        let Block::Call(call) = block else {
            return None;
        };
        let name = tool_names::original(call.name.as_str(), &self.tools);
        let mut restored = name.map(|name| Call {
            name: name.clone(),
            ..call.clone()
        });
        let call = restored.as_ref().unwrap_or(call);
        if let Some(args) = restore_keys(call, &self.tools) {
            let mut call = call.clone();
            set_args(&mut call, args);
            restored = Some(call);
        }
        restored.map(|call| Arc::new(Block::Call(call)))
    }

    /// Restores the names and keys of calls in the chunks that came since `out` had this length.
    fn restore(&mut self, out: &mut VecDeque<Chunk>, before: usize) {
        let before = before.min(out.len());
        let mut has_renamed = !self.open.is_empty();
        for chunk in out.range_mut(before..) {
            match chunk {
                Chunk::Open {
                    block,
                    kind: BlockKind::Call { name, .. },
                } => {
                    if let Some(original) = tool_names::original(name.as_str(), &self.tools) {
                        *name = original.clone();
                    }
                    let mut tools = self.tools.iter();
                    if tools.any(|tool| tool.name == *name && has_renamed_keys(tool)) {
                        self.open.push(*block);
                        has_renamed = true;
                    }
                }
                Chunk::Close { content, .. } => {
                    if let Some(restored) = self.restore_call(content) {
                        *content = restored;
                        self.is_restored = true;
                    }
                }
                _ => {}
            }
        }
        if has_renamed {
            self.merge_deltas(out, before);
        }
    }

    /// Replaces the deltas of calls with renamed keys by one with the restored arguments.
    #[cold]
    fn merge_deltas(&mut self, out: &mut VecDeque<Chunk>, before: usize) {
        for chunk in out.split_off(before) {
            match &chunk {
                Chunk::Delta { block, .. } if self.open.contains(block) => continue,
                Chunk::Close { block, content } if self.open.contains(block) => {
                    self.open.retain(|it| it != block);
                    if let Block::Call(call) = &**content
                        && !call.args.is_empty()
                    {
                        out.push_back(Chunk::Delta {
                            block: *block,
                            text: call.args.to_string(),
                        });
                    }
                }
                _ => {}
            }
            out.push_back(chunk);
        }
    }
}

impl<D: Decode> Decode for Joined<D> {
    #[inline]
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        if self.held.is_some() || self.renamed.is_some() {
            return self.decode_with_changes(frame, out);
        }
        match self.decoder.frame(frame, out) {
            Err(error) => self.repair(frame, error, out),
            decoded => decoded,
        }
    }

    fn document(&mut self, json: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let (before, mended) = (out.len(), mend(json));
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
        if let Some(renamed) = self.renamed.as_ref().filter(|it| it.is_restored) {
            for block in &mut reply.blocks {
                if let Some(restored) = renamed.restore_call(block) {
                    *block = restored;
                }
            }
        }
        Ok(reply)
    }
}
