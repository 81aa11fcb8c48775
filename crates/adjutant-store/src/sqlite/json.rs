//! JSON values as text that can be read again.

use adjutant_core::json::{MAX_DEPTH, depth};
use serde::{Serialize, de::DeserializeOwned};

use super::fault::Fault;

/// The value as text.
pub(super) fn write(value: &impl Serialize, what: &str) -> Result<String, Fault> {
    let json = serde_json::to_string(value)
        .map_err(|error| Fault::Invalid(format!("{what} is no JSON: {error}")))?;
    if depth(json.as_bytes()) > MAX_DEPTH {
        return Err(Fault::Invalid(format!(
            "{what} is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    Ok(json)
}

/// The value of a text that was written before.
pub(super) fn read<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, Fault> {
    serde_json::from_str(json)
        .map_err(|error| Fault::Corrupt(format!("{what} is not what was written: {error}")))
}
