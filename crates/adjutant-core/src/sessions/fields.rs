//! The fields in which two records differ, by JSON pointer.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::short;
use crate::journal::Stamped;

/// The maximum number of fields in a diff.
const MAX_FIELDS: usize = 50;
/// The maximum number of characters of a value in a diff.
const MAX_CHARS: usize = 120;

/// A field in which two records differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Field {
    /// The field: a JSON pointer from the stored record, as in `/record/replied/reply/blocks/0/text`.
    pub at: String,
    /// The values that the records have there, shortened, as JSON; none where a record has no such field.
    pub sides: [Option<String>; 2],
}

/// The fields in which two records differ, times not counted; at most 50.
pub(super) fn fields(one: &Stamped, other: &Stamped) -> Vec<Field> {
    let mut found = Vec::new();
    let value = |stamped: &Stamped| {
        let record = serde_json::to_value(&stamped.record).unwrap_or_default();
        json!({"thread": stamped.thread, "record": record})
    };
    compare(&value(one), &value(other), &mut String::new(), &mut found);
    found
}

fn compare(one: &Value, other: &Value, at: &mut String, found: &mut Vec<Field>) {
    if one == other || found.len() >= MAX_FIELDS {
        return;
    }
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => objects(one, other, at, found),
        (Value::Array(one), Value::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                below(
                    one.get(index),
                    other.get(index),
                    &index.to_string(),
                    at,
                    found,
                );
            }
        }
        _ => note(Some(one), Some(other), at, found),
    }
}

fn objects(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    at: &mut String,
    found: &mut Vec<Field>,
) {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        let step = name.replace('~', "~0").replace('/', "~1");
        below(one.get(name), other.get(name), &step, at, found);
    }
}

fn below(
    one: Option<&Value>,
    other: Option<&Value>,
    step: &str,
    at: &mut String,
    found: &mut Vec<Field>,
) {
    let here = at.len();
    at.push('/');
    at.push_str(step);
    match (one, other) {
        (Some(one), Some(other)) => compare(one, other, at, found),
        (one, other) => note(one, other, at, found),
    }
    at.truncate(here);
}

fn note(one: Option<&Value>, other: Option<&Value>, at: &str, found: &mut Vec<Field>) {
    if found.len() >= MAX_FIELDS {
        return;
    }
    let [one, other] = [one, other].map(|value| value.map(Value::to_string));
    // Long texts start at their first difference.
    let differ = match (&one, &other) {
        (Some(one), Some(other)) => one
            .bytes()
            .zip(other.bytes())
            .take_while(|(one, other)| one == other)
            .count(),
        _ => 0,
    };
    let shown = |text: Option<String>| {
        let text = text?;
        let from = if text.len() > MAX_CHARS { differ } else { 0 };
        Some(short::around(&text, from, MAX_CHARS))
    };
    found.push(Field {
        at: at.to_owned(),
        sides: [shown(one), shown(other)],
    });
}
