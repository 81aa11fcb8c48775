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

/// The calls in the messages so far that have ids of vendors.
#[derive(Debug, Default)]
pub(crate) struct TheirIds {
    /// The calls by the hashes of these ids.
    owners: BTreeMap<Fnv, CallId>,
    /// The last call, and true if its id can go back. The result of a single call follows it.
    last: Option<(CallId, bool)>,
}

impl TheirIds {
    /// The vendor's own id of a call, if it can be sent back: the wire accepts it, and no earlier call has it.
    ///
    /// The same call gets the same answer again, so that results follow their calls.
    pub(crate) fn get<'a>(
        &mut self,
        call: &'a Call,
        is_taken_back: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        let id = call.wire_id.as_deref()?;
        if let Some((last, goes_back)) = self.last
            && last == call.id
        {
            return goes_back.then_some(id);
        }
        let goes_back = self.add(call.id, id, is_taken_back);
        self.last = Some((call.id, goes_back));
        goes_back.then_some(id)
    }

    fn add(&mut self, call: CallId, id: &str, is_taken_back: impl Fn(&str) -> bool) -> bool {
        // An id in our own form may belong to another call.
        let is_ours =
            matches!(id.as_bytes(), [b'c', b'0'..=b'9', ..]) && id.parse::<CallId>().is_ok();
        if is_ours || !is_taken_back(id) {
            return false;
        }
        // Two ids with one hash count as one: then the later call has our id.
        *self.owners.entry(Fnv::new().with(id)).or_insert(call) == call
    }
}

/// True if an id consists of at most `longest` letters, digits, `_` and `-`.
pub(crate) fn is_plain(id: &str, longest: usize) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    (1..=longest).contains(&id.len()) && id.bytes().all(is_part)
}
