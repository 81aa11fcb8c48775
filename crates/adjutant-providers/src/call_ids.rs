//! The ids under which calls and their results are sent back. Pure.

use std::collections::BTreeMap;

use adjutant_llm::{Call, CallId};
use serde::Serialize;

use crate::fnv::Fnv;

/// The id of a call in a request.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum WireId<'a> {
    /// The vendor's own.
    Theirs(&'a str),
    Ours(CallId),
}

/// The calls in the messages so far by the hashes of their vendors' ids.
#[derive(Debug, Default)]
pub(crate) struct TheirIds(BTreeMap<Fnv, CallId>);

impl TheirIds {
    /// The vendor's own id of a call, if it can be sent back: the wire accepts it, and no earlier call has it.
    ///
    /// The same call gets the same answer again, so that results follow their calls.
    pub(crate) fn get<'a>(
        &mut self,
        call: &'a Call,
        is_taken_back: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        let id = call.wire_id.as_ref()?;
        // An id in our own form may belong to another call.
        let is_ours =
            matches!(id.as_bytes(), [b'c', b'0'..=b'9', ..]) && id.parse::<CallId>().is_ok();
        if is_ours || !is_taken_back(id) {
            return None;
        }
        // Two ids with one hash count as one: then the later call has our id.
        let owner = *self.0.entry(Fnv::new().with(&**id)).or_insert(call.id);
        (owner == call.id).then_some(&**id)
    }
}

/// True if an id consists of at most `longest` letters, digits, `_` and `-`.
pub(crate) fn is_plain(id: &str, longest: usize) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    (1..=longest).contains(&id.len()) && id.bytes().all(is_part)
}
