//! What is known of a fact besides its text: ids that come of something, and where it came from.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use super::{FactId, Metadata};

/// The id that always comes of these parts: a UUID of version 8.
pub(super) fn derived(parts: &[&str]) -> FactId {
    let mut digest = Sha256::new();
    for part in parts {
        // Its length keeps a part from running into the next one.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let digest: [u8; 32] = digest.finalize().into();
    let (first, _) = digest.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    FactId(Builder::from_custom_bytes(*first).into_uuid().to_string().into())
}

/// Where a fact came from, and when.
pub(super) fn metadata(source: &str, session: Option<&str>, now_ms: u64) -> Metadata {
    let mut metadata = Metadata::new();
    let mut put = |name: &str, value: &str| metadata.insert(Arc::from(name), Value::from(value));
    put("source", source);
    put("created_at", &timestamp(now_ms));
    if let Some(session) = session {
        put("session", session);
    }
    metadata
}

/// The time in RFC 3339, in whole seconds.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn timestamp(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_a_date_when_days_are_leap_days() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_400_999), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_709_251_199_000), "2024-02-29T23:59:59Z");
    }

    #[test]
    fn derived_ids_are_equal_only_when_each_part_is() {
        assert_eq!(derived(&["a", "b"]), derived(&["a", "b"]));
        assert_ne!(derived(&["a", "b"]), derived(&["ab"]));
        assert_eq!(derived(&["a"]).0.as_bytes()[14], b'8');
    }
}
