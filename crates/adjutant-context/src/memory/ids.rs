//! The data of a fact besides its text: ids that are made from its content, and its source.

use std::sync::Arc;

use adjutant_agent::memory::{FactId, Metadata};
use adjutant_llm::Utc;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Builder;

/// The id that always comes of these parts: a UUID of version 8.
pub(super) fn derive_id(parts: &[&str]) -> FactId {
    let mut digest = Sha256::new();
    for part in parts {
        // Its length keeps a part from running into the next one.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let digest: [u8; 32] = digest.finalize().into();
    let (first, _) = digest.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    FactId(
        Builder::from_custom_bytes(*first)
            .into_uuid()
            .to_string()
            .into(),
    )
}

/// Returns the metadata with the source and the time of a fact.
pub(super) fn metadata(source: &str, session: Option<&str>, now_ms: u64) -> Metadata {
    let mut metadata = Metadata::new();
    let mut put = |name: &str, value: &str| metadata.insert(Arc::from(name), Value::from(value));
    put("source", source);
    put("created_at", &Utc::from_ms(now_ms).to_string());
    if let Some(session) = session {
        put("session", session);
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_equal_only_when_each_part_is() {
        assert_eq!(derive_id(&["a", "b"]), derive_id(&["a", "b"]));
        assert_ne!(derive_id(&["a", "b"]), derive_id(&["ab"]));
        assert_eq!(derive_id(&["a"]).0.as_bytes()[14], b'8');
    }
}
