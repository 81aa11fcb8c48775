//! The arguments of a call while they stream. Pure.

use serde::de::IgnoredAny;

/// The pieces of arguments so far.
#[derive(Debug, Default)]
pub(crate) struct PartialArgs {
    text: String,
    /// The offset at which the last piece begins.
    last: usize,
    /// The length of the arguments in deltas, if the pieces after them may be repetitions.
    streamed: Option<usize>,
}

impl PartialArgs {
    /// Adds a piece. Returns false if it may be a repetition instead of a delta.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        if piece.is_empty() {
            return false;
        }
        let may_repeat =
            || piece.starts_with(&self.text) || piece.starts_with('{') && is_object(&self.text);
        if self.streamed.is_none() && !self.text.is_empty() && may_repeat() {
            self.streamed = Some(self.text.len());
        }
        self.last = self.text.len();
        self.text.push_str(piece);
        self.streamed.is_none()
    }

    /// The arguments in deltas so far.
    pub(crate) fn deltas(&self) -> &str {
        &self.text[..self.streamed.unwrap_or(self.text.len())]
    }

    /// The end of the arguments that is missing in the deltas.
    pub(crate) fn rest(&self) -> &str {
        self.whole().strip_prefix(self.deltas()).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The pieces so far, joined.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The arguments. Some servers repeat all of them at the end, or all so far in each piece.
    ///
    /// Source: elizaOS/eliza 16973, 2026-07, and NousResearch/hermes-agent 35718, 2026-05.
    pub(crate) fn whole(&self) -> &str {
        let last = &self.text[self.last..];
        if self.last > 0 && last.contains('{') && is_object(last) && !is_object(&self.text) {
            return last;
        }
        &self.text
    }
}

/// True if arguments are a whole object.
pub(crate) fn is_object(args: &str) -> bool {
    let args = args.trim();
    args.starts_with('{') && args.ends_with('}') && serde_json::from_str::<IgnoredAny>(args).is_ok()
}
