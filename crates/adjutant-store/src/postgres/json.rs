//! JSON as bytes: PostgreSQL's own type cannot hold every string.

use adjutant_core::json::{MAX_DEPTH, depth};
use serde::Serialize;
use serde_json::Value;

/// The bytes of a value; `None` if it is nested too deeply to be read again.
pub(super) fn bytes(value: &impl Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(value)
        .ok()
        .filter(|bytes| depth(bytes) <= MAX_DEPTH)
}

/// The value of these bytes.
pub(super) fn value(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}
