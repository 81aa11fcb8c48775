//! Halves of surrogate pairs that stand alone in JSON: they are no Unicode, and the parser refuses them. Pure.
//!
//! Servers that cut texts by UTF-16 units split an emoji between two deltas, and models write half of one. Nothing here
//! runs before the parser has refused a frame.
//!
//! Source: elizaOS/eliza 30904, 2026-09, and elie222/rakazo 416, 2026-08.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, Chunk, Error, ErrorKind, Reply, ToolDecl};
use serde::de::DeserializeOwned;

use crate::{
    driver::{Decode, Flow},
    sse::Frame,
    strict::restore_keys,
};

/// The number of bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;
/// The escape that takes the place of a lone half.
const REPLACEMENT: &str = "\\ufffd";

/// A lone half in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Half {
    /// The offset of its escape.
    at: usize,
    is_high: bool,
    /// True if it is a high half at the end of its string, or a low half at the beginning.
    is_outer: bool,
}

/// Reads JSON; lone halves in it are replaced.
///
/// # Errors
/// If it cannot be read all the same.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| match mended(json) {
        Some(json) => serde_json::from_str(&json),
        None => Err(error),
    })
}

/// Returns the JSON text with its lone halves replaced, or `None` if it has none.
#[cold]
pub(crate) fn mended(json: &str) -> Option<String> {
    let halves = lone(json);
    (!halves.is_empty()).then(|| replaced(json, &halves))
}

fn replaced(json: &str, halves: &[Half]) -> String {
    let mut text = json.to_owned();
    for half in halves {
        text.replace_range(half.at..half.at + ESCAPE, REPLACEMENT);
    }
    text
}

/// Returns the lone halves of a JSON text, in order.
fn lone(json: &str) -> Vec<Half> {
    let (bytes, mut halves) = (json.as_bytes(), Vec::new());
    let unit = |at: usize| {
        let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut at, mut last_end) = (0, 0);
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        at += next;
        let (first, second) = (unit(at), unit(at + ESCAPE));
        let length = match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(half @ 0xd800..=0xdfff), _) => {
                let is_high = half < 0xdc00;
                let is_outer = if is_high {
                    bytes.get(at + ESCAPE) == Some(&b'"')
                } else {
                    at > last_end && bytes[at - 1] == b'"'
                };
                halves.push(Half {
                    at,
                    is_high,
                    is_outer,
                });
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            (None, _) => 2,
        };
        at += length;
        last_end = at;
        if at >= bytes.len() {
            break;
        }
    }
    halves
}

/// A decoder that is shown whole characters: halves in neighboring frames are joined, and lone ones are replaced. Calls
/// get the property keys of their tools back.
#[derive(Debug)]
pub(crate) struct Joined<D> {
    decoder: D,
    /// The tools of the request, and those that messages added.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_halves_are_replaced_when_json_holds_them() {
        let table = [
            (r#""a\ud83d\ude00b""#, None),
            (r#""\\ud83d""#, None),
            (r#""\u00e9\n\u12""#, None),
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\uDE00a""#, Some(r#""\ufffda""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#""\\\ud83dx""#, Some(r#""\\\ufffdx""#)),
            (r#"{"\ud83d":"\"\ude00"}"#, Some(r#"{"\ufffd":"\"\ufffd"}"#)),
        ];
        for (json, expect) in table {
            assert_eq!(mended(json).as_deref(), expect, "{json}");
            let is_json = serde_json::from_str::<serde_json::Value>(json).is_ok();
            assert_eq!(
                read::<serde_json::Value>(json).is_ok(),
                is_json || expect.is_some()
            );
        }
        for cut in 0..20 {
            mended(&r#""\\ud83d\u\ud8\ude00"é"#.chars().take(cut).collect::<String>());
        }
    }

    #[test]
    fn half_is_outer_when_it_touches_the_end_of_its_string() {
        let outer = |json| lone(json).iter().map(|it| it.is_outer).collect::<Vec<_>>();
        assert_eq!(outer(r#"{"a":"x\ud83d","b":"\ude00x"}"#), [true, true]);
        assert_eq!(outer(r#"{"a":"x\ud83dx","b":"x\ude00"}"#), [false, false]);
        assert_eq!(outer(r#"{"a":"\"\ude00"}"#), [false]);
    }
}
