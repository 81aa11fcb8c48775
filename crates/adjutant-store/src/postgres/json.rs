//! JSON as bytes: PostgreSQL's own type cannot hold every string.

use serde::Serialize;
use serde_json::Value;

/// How deep JSON may be: what is deeper could not be read again.
const MAX_DEPTH: usize = 120;

/// The bytes of a value; none if it is so deep that it could not be read again.
pub(super) fn bytes(value: &impl Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(value).ok().filter(|bytes| depth(bytes) <= MAX_DEPTH)
}

/// The value of these bytes.
pub(super) fn value(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// How deep arrays and objects lie in each other.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
