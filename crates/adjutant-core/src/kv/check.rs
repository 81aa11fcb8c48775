//! The checks that a key-value store makes before it looks: the same on every storage.

use std::collections::HashSet;

use super::{Change, KvStoreError, KvStoreErrorKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_WRITE};

/// Checks the length of a key.
///
/// # Errors
/// `Invalid` if it is empty or has more than [`MAX_KEY_BYTES`] bytes.
pub fn check_key(key: &str) -> Result<(), KvStoreError> {
    match key.len() {
        0 => Err(invalid("a key needs a letter at least".to_owned())),
        bytes if bytes > MAX_KEY_BYTES => Err(invalid(format!(
            "a key has {bytes} bytes; it may have {MAX_KEY_BYTES}"
        ))),
        _ => Ok(()),
    }
}

/// Checks the changes of a write, except the conditions of its keys.
///
/// # Errors
/// `Invalid` if a key, a value or the number of changes is too large, or a key appears twice.
pub(crate) fn check_write(changes: &[Change]) -> Result<(), KvStoreError> {
    if changes.len() > MAX_WRITE {
        return Err(invalid(format!(
            "a write has {} changes; it may have {MAX_WRITE}",
            changes.len()
        )));
    }
    let mut keys = HashSet::with_capacity(changes.len());
    for change in changes {
        check_key(&change.key)?;
        if !keys.insert(&*change.key) {
            return Err(invalid(format!(
                "key {:?} appears twice in one write",
                change.key
            )));
        }
        let Some((value, text)) = &change.put else {
            continue;
        };
        let bytes = serde_json::to_vec(value).map(|value| value.len() + text.len());
        let bytes = bytes.map_err(|error| {
            invalid(format!("the value of key {:?} is no JSON", change.key)).with_source(error)
        })?;
        if bytes > MAX_VALUE_BYTES {
            let key = &change.key;
            return Err(invalid(format!(
                "the value of key {key:?} has {bytes} bytes; it may have {MAX_VALUE_BYTES}"
            )));
        }
    }
    Ok(())
}

fn invalid(message: String) -> KvStoreError {
    KvStoreError::new(KvStoreErrorKind::Invalid, message)
}
