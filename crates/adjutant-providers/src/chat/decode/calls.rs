//! Assembles the calls of a reply while they stream, and distinguishes them in all the ways servers use.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, Chunk, Error, Extra, ToolName};
use serde_json::{Map, Value};

use super::{Decoder, members_to_extra, protocol};
use crate::{
    args::{PartialArgs, is_object},
    chat::wire::CallDelta,
};

/// The largest number of calls that may wait for their names.
const MAX_CALLS: usize = 4_096;

/// A call that is not closed yet; it opens with its name.
#[derive(Debug)]
pub(super) struct OpenCall {
    index: Option<u64>,
    wire_id: Option<Arc<str>>,
    named: Option<(u32, ToolName)>,
    args: PartialArgs,
    /// True if a piece had arguments, even empty ones: then the name is complete.
    has_args: bool,
    /// The content that goes back with the call.
    extra_content: Option<Value>,
}

/// The fields of a piece that place it in a call.
#[derive(Clone, Copy)]
struct Piece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    args: &'a str,
}

impl Decoder {
    /// Takes a piece of a call; the calls from `known` on were opened by the same delta.
    pub(super) fn call(
        &mut self,
        delta: &mut CallDelta<'_>,
        known: usize,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let function = delta.function.take().unwrap_or_default();
        let id = delta.id.0.take().filter(|it| !it.is_empty());
        let name = function.name.0.filter(|it| !it.is_empty());
        let piece = Piece {
            index: delta.index.0,
            id: id.as_deref(),
            name: name.as_deref(),
            args: function.arguments.as_deref().unwrap_or_default(),
        };
        let found = self.find(piece).filter(|at| {
            // One delta does not repeat a call: what looks like it is another call with the same arguments.
            *at < known || !self.calls[*at].is_repeated_by(&piece)
        });
        let at = match found {
            Some(at) => at,
            None if self.calls.len() == MAX_CALLS => {
                return Err(protocol("the reply has more than 4,096 calls"));
            }
            None => {
                self.hush(out);
                self.calls.push(OpenCall::new(piece.index));
                self.calls.len() - 1
            }
        };
        let open = &mut self.calls[at];
        if let Some(extra) = delta
            .extra_content
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
        {
            open.extra_content = Some(extra);
        }
        if let (None, Some(id)) = (&open.wire_id, piece.id) {
            open.wire_id = Some(id.into());
        }
        match (&mut open.named, piece.name) {
            (None, Some(name)) => {
                let name = ToolName::from(name);
                let block = self.blocks.open(
                    |id| BlockKind::Call {
                        id,
                        name: name.clone(),
                    },
                    out,
                )?;
                open.named = Some((block, name));
                if !open.args.is_empty() {
                    out.push_back(Chunk::Delta {
                        block,
                        text: open.args.deltas().to_owned(),
                    });
                }
            }
            (Some((_, known)), Some(name)) if known.as_str() != name && open.args.is_empty() => {
                let is_longer = name.starts_with(known.as_str());
                *known = if is_longer {
                    name.into()
                } else {
                    format!("{known}{name}").into()
                };
            }
            _ => {}
        }
        open.has_args |= function.arguments.is_some();
        if let Some(text) = function.arguments.filter(|text| !text.is_empty())
            && open.args.push(&text)
            && let Some((block, _)) = &open.named
        {
            out.push_back(Chunk::Delta {
                block: *block,
                text: text.into_owned(),
            });
        }
        Ok(())
    }

    /// The open call that a piece belongs to, or `None` if it starts another one.
    ///
    /// Servers disagree on how to distinguish calls. Sources: one index for all calls, ollama/ollama 15457, 2026-04;
    /// an index that drifts within a call; an id that changes within a call, poolsideai/pool 9, 2026-05; names in
    /// every piece, NousResearch/hermes-agent 8259, 2026-04; names in pieces, continuedev/continue 5849, 2025-05.
    fn find(&self, piece: Piece<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let by_index = piece.index.and_then(|index| {
            let is_it = |open: &OpenCall| open.index == Some(index);
            self.calls.iter().rposition(is_it)
        });
        if let (Some(at), None, None) = (by_index, piece.id, piece.name) {
            return Some(at);
        }
        let by_id = piece.id.and_then(|id| {
            let is_it = |open: &OpenCall| open.wire_id.as_deref() == Some(id);
            let at = by_index.filter(|at| is_it(&self.calls[*at]));
            at.or_else(|| self.calls.iter().rposition(is_it))
        });
        let is_unplaced = piece.index.is_none() && piece.id.is_none();
        let found = by_id.or(by_index).or(is_unplaced.then_some(last));
        match (found, piece.name) {
            (Some(at), None) => Some(at),
            (Some(at), Some(name)) => self.calls[at].takes(name, &piece).then_some(at),
            // A piece without a name continues the last call, whatever it is numbered, until that is whole.
            (None, None) => (!is_object(self.calls[last].args.as_str())).then_some(last),
            (None, Some(name)) => self.calls[last].repeats(name, &piece).then_some(last),
        }
    }

    /// Closes the calls; the model's last thinking belongs to the first one.
    pub(super) fn close_calls(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        for open in std::mem::take(&mut self.calls) {
            let args: Arc<str> = Arc::from(open.args.whole());
            let Some((block, name)) = open.named else {
                // Arguments without a name may repeat the arguments of a call.
                if self.blocks.calls().any(|call| call.args == args) {
                    continue;
                }
                return Err(protocol("a call names no tool"));
            };
            let rest = open.args.rest();
            if !rest.is_empty() {
                out.push_back(Chunk::Delta {
                    block,
                    text: rest.to_owned(),
                });
            }
            let has_extra = open.extra_content.is_some() || !self.details.is_empty();
            let extra = if has_extra {
                self.extra(open.extra_content)
            } else {
                Extra::default()
            };
            let id = self.blocks.call_id(block);
            let call = Call {
                id,
                wire_id: open.wire_id,
                name,
                args,
                extra,
            };
            self.blocks.close(block, Block::Call(call), out);
        }
        Ok(())
    }

    /// Returns what goes back with a call.
    #[cold]
    fn extra(&mut self, content: Option<Value>) -> Extra {
        let mut extra = Map::new();
        if let Some(content) = content.filter(|it| !it.is_null()) {
            extra.insert("extra_content".to_owned(), content);
        }
        self.take_details(&mut extra);
        members_to_extra(extra)
    }
}

impl OpenCall {
    fn new(index: Option<u64>) -> Self {
        Self {
            index,
            wire_id: None,
            named: None,
            args: PartialArgs::default(),
            has_args: false,
            extra_content: None,
        }
    }

    /// True if a piece with a name belongs to this call, to which its index or its id points.
    fn takes(&self, name: &str, piece: &Piece<'_>) -> bool {
        let Some((_, known)) = &self.named else {
            return true;
        };
        let is_same_name = known.as_str() == name;
        let ids = (self.wire_id.as_deref(), piece.id);
        let has_other_id = matches!(ids, (Some(known), Some(id)) if known != id);
        let has_other_index =
            matches!((self.index, piece.index), (Some(known), Some(index)) if known != index);
        if has_other_index || has_other_id || is_object(self.args.as_str()) {
            return self.repeats(name, piece);
        }
        if is_same_name || !self.args.is_empty() {
            return is_same_name || !is_beginning(piece.args);
        }
        // If the call has no arguments yet, it is the rest of the name, provided that an id or index confirms it.
        ids.0.is_some() || !self.has_args
    }

    /// True if a piece that seems to belong to another call repeats or continues this call.
    fn repeats(&self, name: &str, piece: &Piece<'_>) -> bool {
        let is_same_name = self
            .named
            .as_ref()
            .is_some_and(|(_, it)| it.as_str() == name);
        let has_same_id = piece.id.is_some() && self.wire_id.as_deref() == piece.id;
        let has_other_id = !has_same_id && piece.id.is_some() && self.wire_id.is_some();
        let has_other_index = piece.index.is_some() && piece.index != self.index;
        let is_known = if self.is_repeated_by(piece) {
            // Two ids or two numbers are two calls, even with the same arguments.
            !has_other_id && !has_other_index
        } else if is_object(self.args.as_str()) {
            has_same_id && piece.args.trim().is_empty()
        } else {
            !self.args.is_empty() && !is_beginning(piece.args)
        };
        is_same_name && is_known
    }

    /// True if a piece with a name holds all arguments of this call.
    fn is_repeated_by(&self, piece: &Piece<'_>) -> bool {
        piece.name.is_some() && is_object(self.args.as_str()) && self.args.as_str() == piece.args
    }
}

/// True if these arguments can be the beginning of a call's.
fn is_beginning(args: &str) -> bool {
    let args = args.trim_start();
    args.is_empty() || args.starts_with('{')
}
