//! JSON values as text that can be read again.

use serde::{Serialize, de::DeserializeOwned};

use super::fault::Fault;

/// How deep a value may be: what is deeper could not be read again.
const MAX_DEPTH: usize = 120;

/// The value as text.
pub(super) fn write(value: &impl Serialize, what: &str) -> Result<String, Fault> {
    let json = serde_json::to_string(value).map_err(|error| Fault::Invalid(format!("{what} is no JSON: {error}")))?;
    if depth(&json) > MAX_DEPTH {
        return Err(Fault::Invalid(format!("{what} is nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(json)
}

/// The value of a text that was written before.
pub(super) fn read<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| Fault::Corrupt(format!("{what} is not what was written: {error}")))
}

fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
