//! The calls of a reply while they stream, told apart however a server tells them apart.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use adjutant_llm::{Block, BlockKind, Call, Chunk, Error, Extra, ToolName};
use serde_json::{Map, Value, value::RawValue};

use super::{Decoder, kept, protocol};
use crate::{chat::wire::CallDelta, text::Text};

/// The largest number of calls that may wait for their names.
const MAX_CALLS: usize = 4_096;

/// A call that is not closed yet; it opens with its name.
#[derive(Debug)]
pub(super) struct OpenCall {
    index: Option<u64>,
    wire_id: Option<Arc<str>>,
    named: Option<(u32, ToolName)>,
    args: String,
    /// The content that goes back with the call.
    extra_content: Option<Value>,
}

impl Decoder {
    pub(super) fn call(
        &mut self,
        delta: &mut CallDelta<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let (name, arguments) = match delta.function.take() {
            Some(function) => (function.name.0, function.arguments),
            None => (None, None),
        };
        let (id, name) = (
            delta.id.0.take().filter(|it| !it.is_empty()),
            name.filter(|it| !it.is_empty()),
        );
        let at = match self.find(delta.index, id.as_deref(), name.is_some()) {
            Some(at) => at,
            None if self.calls.len() == MAX_CALLS => {
                return Err(protocol("the reply has more than 4,096 calls"));
            }
            None => {
                self.hush(out);
                self.calls.push(OpenCall::new(delta.index));
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
        if let (None, Some(id)) = (&open.wire_id, id) {
            open.wire_id = Some(id.into());
        }
        if let (None, Some(name)) = (&open.named, name) {
            let name = ToolName::from(&*name);
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
                    text: open.args.clone(),
                });
            }
        }
        if let Some(text) = arguments.and_then(fragment).filter(|text| !text.is_empty()) {
            open.args.push_str(&text);
            if let Some((block, _)) = &open.named {
                out.push_back(Chunk::Delta {
                    block: *block,
                    text: text.into_owned(),
                });
            }
        }
        Ok(())
    }

    /// The open call that a delta belongs to: by its index, then by its id, then the last one.
    ///
    /// Some servers give every call the index 0 and tell them apart by id; some give neither after the first delta.
    fn find(&self, index: Option<u64>, id: Option<&str>, has_name: bool) -> Option<usize> {
        let same_id = |open: &OpenCall| match (open.wire_id.as_deref(), id) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        if let Some(index) = index {
            let found = self
                .calls
                .iter()
                .rposition(|open| open.index == Some(index))?;
            let other = !same_id(&self.calls[found]) && has_name;
            return if other {
                self.calls
                    .iter()
                    .position(|open| open.wire_id.as_deref() == id)
            } else {
                Some(found)
            };
        }
        if id.is_some() {
            return self
                .calls
                .iter()
                .position(|open| open.wire_id.as_deref() == id);
        }
        let last = self.calls.len().checked_sub(1)?;
        (!has_name || self.calls[last].named.is_none()).then_some(last)
    }

    /// Closes the calls; what the model thought last goes with the first one.
    pub(super) fn close_calls(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        for open in std::mem::take(&mut self.calls) {
            let Some((block, name)) = open.named else {
                return Err(protocol("a call names no tool"));
            };
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
                args: open.args.into(),
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
        kept(extra)
    }
}

impl OpenCall {
    fn new(index: Option<u64>) -> Self {
        Self {
            index,
            wire_id: None,
            named: None,
            args: String::new(),
            extra_content: None,
        }
    }
}

/// A piece of arguments: a text, or the JSON itself where a server sends an object.
fn fragment(raw: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<Text<'_>>(raw.get()) {
        Ok(Text(text)) => Some(text),
        Err(_) if raw.get() == "null" => None,
        Err(_) => Some(Cow::Borrowed(raw.get())),
    }
}
