//! Counts of tokens as servers write them, and the usage that they stand in as far as it is kept. Pure.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::raw_usage::{MAX_BYTES, MAX_DEPTH, weight, whole};

/// Reads a count: a whole number, also one that is written as a float. Anything else is none.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?.get();
    Ok(text.parse().ok().or_else(|| whole(text.parse().ok()?)))
}

/// Reads what can be read; anything else is as if it were not there.
pub(crate) fn loose<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// The usage as it came; `null` if it is larger or deeper than any true one.
pub(crate) fn kept(raw: &str) -> Arc<Value> {
    let value = if raw.len() > MAX_BYTES { Value::Null } else { serde_json::from_str(raw).unwrap_or_default() };
    Arc::new(if weight(&value, MAX_DEPTH).is_some() { value } else { Value::Null })
}

/// Parts of the input, in a usage of either wire of OpenAI.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InputDetails {
    #[serde(deserialize_with = "count")]
    pub(crate) cached_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(crate) cache_write_tokens: Option<u64>,
}

/// Parts of the output, in a usage of either wire of OpenAI.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OutputDetails {
    #[serde(deserialize_with = "count")]
    pub(crate) reasoning_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Sample {
        #[serde(deserialize_with = "count")]
        count: Option<u64>,
        #[serde(deserialize_with = "loose")]
        below: Option<Box<Sample>>,
    }

    #[test]
    fn count_is_read_when_it_is_whole() {
        let read = |count: &str| {
            let json = format!(r#"{{"below":{{"count":{count}}}}}"#);
            serde_json::from_str::<Sample>(&json).expect("JSON").below.expect("it is there").count
        };
        let whole = ["5", "5.0", "5e0", "0.0", "18446744073709551615"].map(read);
        assert_eq!(whole, [Some(5), Some(5), Some(5), Some(0), Some(u64::MAX)]);
        let odd = ["-1", "5.5", "1e300", "18446744073709551616", "null", "\"5\"", "[5]", "{}", "true"].map(read);
        assert_eq!(odd, [None; 9]);
    }

    #[test]
    fn part_is_left_out_when_it_cannot_be_read() {
        let read = |json: &str| serde_json::from_str::<Sample>(json).expect("JSON");
        for below in ["null", "\"x\"", "7", "true"] {
            let json = format!(r#"{{"count":1,"below":{below}}}"#);
            assert_eq!(read(&json), Sample { count: Some(1), below: None });
        }
    }

    #[test]
    fn usage_is_kept_when_it_is_small_and_flat() {
        assert_eq!(*kept(r#"{"a":{"b":[1]}}"#), json!({"a": {"b": [1]}}));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_ne!(*kept(&nested(MAX_DEPTH)), Value::Null);
        assert_eq!(*kept(&nested(MAX_DEPTH + 1)), Value::Null);
        assert_eq!(*kept(&nested(4_000)), Value::Null);
        let long = |bytes: usize| format!("[\"{}\"]", "x".repeat(bytes - 4));
        assert_ne!(*kept(&long(MAX_BYTES)), Value::Null);
        assert_eq!(*kept(&long(MAX_BYTES + 1)), Value::Null);
    }
}
