//! The usage as a provider reports it, unchanged: gathered over the events of an answer, and kept within bounds. Pure.

use std::collections::BTreeMap;

use adjutant_llm::Extra;
use serde_json::{Map, Value, value::RawValue};

/// The most bytes of a usage that is kept, and of all that is gathered.
pub(crate) const MAX_BYTES: usize = 16 * 1024;
/// The most members that are gathered.
const MAX_MEMBERS: usize = 64;
/// The largest depth to which values may be nested, the gathered object included: records with them must stay readable.
pub(crate) const MAX_DEPTH: usize = 16;
/// The greatest float that counts as a whole number.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The usage so far. Values out of bounds are omitted, and the previous value of such a member is dropped.
#[derive(Debug, Default)]
pub(crate) struct RawUsage {
    members: Map<String, Value>,
    bytes: usize,
}

impl RawUsage {
    /// Adds a usage, in which a `null` member has no meaning; returns whether anything changed.
    pub(crate) fn add(&mut self, raw: &RawValue, members: Map<String, Value>) -> bool {
        if raw.get().len() > MAX_BYTES {
            return false;
        }
        members.into_iter().fold(false, |changed, (name, value)| {
            self.set(name, value) | changed
        })
    }

    /// Sets a member, unless it is `null`; gives whether anything changed.
    pub(crate) fn set(&mut self, name: String, value: Value) -> bool {
        let known = self.members.get(&name);
        if value.is_null() || known == Some(&value) {
            return false;
        }
        let held = known
            .and_then(|it| weight(it, MAX_DEPTH))
            .map_or(0, |it| it + name.len());
        let others = self.bytes - held;
        let fits = |bytes: &usize| {
            others + bytes <= MAX_BYTES && (known.is_some() || self.members.len() < MAX_MEMBERS)
        };
        match weight(&value, MAX_DEPTH)
            .map(|it| it + name.len())
            .filter(fits)
        {
            Some(bytes) => {
                self.bytes = others + bytes;
                self.members.insert(name, value);
                true
            }
            None => {
                self.bytes = others;
                self.members.remove(&name).is_some()
            }
        }
    }

    /// All of it so far.
    pub(crate) fn value(&self) -> Extra {
        Value::Object(self.members.clone()).into()
    }

    /// All of it, if there is any.
    pub(crate) fn take(&mut self) -> Extra {
        let members = std::mem::take(self).members;
        if members.is_empty() {
            Extra::default()
        } else {
            Value::Object(members).into()
        }
    }
}

/// Returns the members of a usage; an unreadable member is omitted, so that the others count.
pub(crate) fn members(raw: &RawValue) -> Option<Map<String, Value>> {
    serde_json::from_str(raw.get()).ok().or_else(|| {
        let raw: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
        let read =
            |(name, raw): (String, &RawValue)| Some((name, serde_json::from_str(raw.get()).ok()?));
        Some(raw.into_iter().filter_map(read).collect())
    })
}

/// Reads a count, also if it is written as a float; `None` for any other value.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| whole(value.as_f64()?))
}

/// A number with a fraction of zero, as some servers write counts.
pub(crate) fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=MAX_WHOLE).contains(&number)).then_some(number as u64)
}

/// About how many bytes a value takes as text; nothing if it is nested deeper than this, its holder included.
fn weight(value: &Value, depth: usize) -> Option<usize> {
    let inner = depth.checked_sub(1)?;
    match value {
        Value::String(text) => Some(text.len() + 3),
        Value::Array(items) => items
            .iter()
            .try_fold(3, |sum, item| Some(sum + weight(item, inner)?)),
        Value::Object(members) => members.iter().try_fold(3, |sum, (name, value)| {
            Some(sum + name.len() + 3 + weight(value, inner)?)
        }),
        _ => Some(4),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(usage: &mut RawUsage, said: &str) -> bool {
        let raw: &RawValue = serde_json::from_str(said).expect("JSON");
        usage.add(raw, members(raw).expect("an object"))
    }

    #[test]
    fn add_gathers_members_when_they_change() {
        let mut usage = RawUsage::default();
        assert!(add(&mut usage, r#"{"a":1,"b":null}"#));
        assert!(!add(&mut usage, r#"{"a":1,"b":null}"#));
        assert!(add(&mut usage, r#"{"a":null,"b":[2]}"#));
        assert_eq!(*usage.value(), json!({"a": 1, "b": [2]}));
        assert_eq!(*usage.take(), json!({"a": 1, "b": [2]}));
        assert_eq!(*usage.take(), Value::Null);
    }

    #[test]
    fn add_keeps_within_bounds_when_a_usage_is_out_of_them() {
        let mut usage = RawUsage::default();
        assert!(!add(
            &mut usage,
            &json!({"a": 1, "large": "x".repeat(MAX_BYTES)}).to_string()
        ));
        let nested = |depth: usize| {
            format!(
                r#"{{"deep":{}1{},"flat":1}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        assert!(add(&mut usage, &nested(15)));
        assert!(!usage.value()["deep"].is_null());
        for depth in [16, 100, 500] {
            add(&mut usage, &nested(depth));
            assert_eq!(*usage.value(), json!({"flat": 1}), "{depth}");
        }
        for at in 0..1_000 {
            add(
                &mut usage,
                &json!({format!("k{at}"): "x".repeat(1_000)}).to_string(),
            );
        }
        assert!((10_000..=MAX_BYTES).contains(&usage.value().to_string().len()));
        let mut usage = RawUsage::default();
        let grown = (0..1_000)
            .filter(|at| add(&mut usage, &json!({format!("k{at}"): at}).to_string()))
            .count();
        assert_eq!((grown, usage.members.len()), (MAX_MEMBERS, MAX_MEMBERS));
        assert!(add(&mut usage, r#"{"k0":"new"}"#));
    }

    #[test]
    fn count_is_read_when_it_is_whole() {
        let read = |value: Value| count(&value);
        assert_eq!(
            [
                read(json!(5)),
                read(json!(5.0)),
                read(json!(0)),
                read(json!(u64::MAX))
            ],
            [Some(5), Some(5), Some(0), Some(u64::MAX)]
        );
        for odd in [
            json!(-1),
            json!(5.5),
            json!(1e30),
            json!("5"),
            json!(true),
            json!([5]),
            Value::Null,
        ] {
            assert_eq!(count(&odd), None, "{odd}");
        }
    }
}
