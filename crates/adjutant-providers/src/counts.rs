//! Token counts as servers write them, and the raw usage around them where it is stored. Pure.

use adjutant_llm::Extra;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::raw_usage::{MAX_BYTES, MAX_DEPTH, whole};

/// Reads a count: a whole number, also if it is written as a float. Anything else is `None`.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?.get();
    Ok(text.parse().ok().or_else(|| whole(text.parse().ok()?)))
}

/// Reads what can be read; anything else is as if it were not there.
pub(crate) fn loose<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// The usage as it came; `null` if it is larger or deeper than any true one.
pub fn usage_to_extra(raw: &RawValue) -> Extra {
    let is_true = raw.get().len() <= MAX_BYTES && depth(raw.get()) <= MAX_DEPTH;
    if is_true {
        Extra::from(raw)
    } else {
        Extra::default()
    }
}

/// The depth to which a JSON text is nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    deepest
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
    use serde_json::{Value, json};

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
            serde_json::from_str::<Sample>(&json)
                .expect("JSON")
                .below
                .expect("it is there")
                .count
        };
        let whole = ["5", "5.0", "5e0", "0.0", "18446744073709551615"].map(read);
        assert_eq!(whole, [Some(5), Some(5), Some(5), Some(0), Some(u64::MAX)]);
        let odd = [
            "-1",
            "5.5",
            "1e300",
            "18446744073709551616",
            "null",
            "\"5\"",
            "[5]",
            "{}",
            "true",
        ]
        .map(read);
        assert_eq!(odd, [None; 9]);
    }

    #[test]
    fn part_is_left_out_when_it_cannot_be_read() {
        let read = |json: &str| serde_json::from_str::<Sample>(json).expect("JSON");
        for below in ["null", "\"x\"", "7", "true"] {
            let json = format!(r#"{{"count":1,"below":{below}}}"#);
            assert_eq!(
                read(&json),
                Sample {
                    count: Some(1),
                    below: None
                }
            );
        }
    }

    #[test]
    fn usage_is_kept_when_it_is_small_and_flat() {
        let kept = |text: &str| usage_to_extra(serde_json::from_str(text).expect("JSON"));
        assert_eq!(*kept(r#"{"a":{"b":[1]}}"#), json!({"a": {"b": [1]}}));
        let brackets = r#"{"a\"[[[[[[[[[[[[[[[[[[":"\\"}"#;
        assert_eq!(
            *kept(brackets),
            serde_json::from_str::<Value>(brackets).expect("JSON")
        );
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_ne!(*kept(&nested(MAX_DEPTH)), Value::Null);
        assert_eq!(*kept(&nested(MAX_DEPTH + 1)), Value::Null);
        assert_eq!(*kept(&nested(4_000)), Value::Null);
        let long = |bytes: usize| format!("[\"{}\"]", "x".repeat(bytes - 4));
        assert_ne!(*kept(&long(MAX_BYTES)), Value::Null);
        assert_eq!(*kept(&long(MAX_BYTES + 1)), Value::Null);
    }
}
