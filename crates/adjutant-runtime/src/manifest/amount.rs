//! Times and sizes with units.

use std::{fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time: a whole number with a unit, `250ms`, `30s`, `5m`, `2h` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A size: a whole number with a unit, `512B`, `64KiB`, `8MiB` or `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const TIMES: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
const SIZES: [(&str, u64); 4] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Parses a whole number with a unit. The character before a unit must be a digit, which distinguishes units with a
/// common ending.
fn read(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Formats with the largest unit that leaves a whole number.
fn write(amount: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fits =
        |(_, factor): &&(&str, u64)| amount.is_multiple_of(*factor) && (amount > 0 || *factor == 1);
    let (name, factor) = units.iter().rev().find(fits).copied().unwrap_or(("", 1));
    write!(f, "{}{name}", amount / factor)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(
            u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX),
            &TIMES,
            f,
        )
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, &SIZES, f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses an amount; the error for a number without a unit explains the format.
struct Amount {
    units: &'static [(&'static str, u64)],
    expected: &'static str,
}

impl de::Visitor<'_> for Amount {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        read(text, self.units).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a time: a whole number with ms, s, m, h or d, as `30s`";
        let milliseconds = deserializer.deserialize_any(Amount {
            units: &TIMES,
            expected,
        })?;
        Ok(Self(Duration::from_millis(milliseconds)))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a size: a whole number with B, KiB, MiB or GiB, as `64KiB`";
        deserializer
            .deserialize_any(Amount {
                units: &SIZES,
                expected,
            })
            .map(Self)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^[0-9]+(ms|s|m|h|d)$|\$\{", "description": "A time, as `30s`."})
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^[0-9]+(B|KiB|MiB|GiB)$|\$\{", "description": "A size, as `64KiB`."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_they_are_read() {
        for text in ["0ms", "250ms", "30s", "5m", "2h", "7d"] {
            let time: Span = serde_json::from_value(text.into()).expect("a time");
            assert_eq!(time.to_string(), text);
        }
        for text in ["512B", "64KiB", "8MiB", "1GiB"] {
            let size: Bytes = serde_json::from_value(text.into()).expect("a size");
            assert_eq!(size.to_string(), text);
        }
    }

    #[test]
    fn amount_is_refused_without_a_unit_or_when_it_is_too_great() {
        for text in [
            "30",
            "s",
            "-1s",
            "1.5s",
            "30 s",
            "30sec",
            "99999999999999999999s",
            "18446744073709551615d",
            "",
        ] {
            assert!(
                serde_json::from_value::<Span>(text.into()).is_err(),
                "{text}"
            );
        }
    }
}
