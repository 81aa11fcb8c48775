//! Reads the raw text of a model, and repairs damage that cannot change its meaning. Never completes cut text.

use std::str::Chars;

use adjutant_llm::json::{self, Misread};
use serde_json::{Error, Map, Value};

use super::scalar;

/// The largest number of bytes of raw arguments.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The largest depth of arguments: the limit that serde_json has.
const MAX_DEPTH: usize = 127;

/// The parsed arguments.
pub(super) struct Read {
    /// The arguments.
    pub(super) value: Value,
    /// True if the text was repaired.
    pub(super) changed: bool,
}

/// The reason why nothing was read.
pub(super) enum Unread {
    /// A key appears twice in an object, at this path: the intended value is unknown.
    Twice(String),
    /// The problem in words.
    Not(String),
}

/// Reads arguments.
pub(super) fn read(raw: &str, schema: &Value) -> Result<Read, Unread> {
    if raw.len() > MAX_BYTES {
        return Err(Unread::Not(format!(
            "{} bytes are too many: at most {MAX_BYTES} are taken",
            raw.len()
        )));
    }
    if raw.trim().is_empty() {
        return Ok(Read::other(Value::Object(Map::new())));
    }
    let read = json(raw)?;
    match &read.value {
        Value::Null if !scalar::names(schema, "null") => Ok(Read::other(Value::Object(Map::new()))),
        Value::String(text) if !scalar::names(schema, "string") => match json(text) {
            Ok(Read {
                value: value @ Value::Object(_),
                ..
            }) => Ok(Read::other(value)),
            Err(Unread::Twice(path)) => Err(Unread::Twice(path)),
            Ok(_) | Err(Unread::Not(_)) => Ok(read),
        },
        _ => Ok(read),
    }
}

/// Returns the depth of a value: 0 for a scalar.
pub(super) fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(nesting).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// True if the value stays readable at depth `level` of another one.
pub(super) fn fits_below(value: &Value, level: usize) -> bool {
    nesting(value) + level <= MAX_DEPTH
}

impl Read {
    fn other(value: Value) -> Self {
        Self {
            value,
            changed: true,
        }
    }
}

fn json(text: &str) -> Result<Read, Unread> {
    let strict = match json::from_str(text) {
        Ok(value) => {
            return Ok(Read {
                value,
                changed: false,
            });
        }
        Err(Misread::NotJson(error)) => error,
        Err(Misread::Twice { path }) => return Err(Unread::Twice(path)),
        Err(other) => return Err(Unread::Not(other.to_string())),
    };
    match json::from_str(&repair_json(without_fence(text))) {
        Ok(value) => Ok(Read::other(value)),
        Err(Misread::Twice { path }) => Err(Unread::Twice(path)),
        Err(Misread::NotJson(error)) if error.is_eof() => Err(Unread::Not(problem(&error))),
        Err(_) => Err(Unread::Not(problem(&strict))),
    }
}

fn problem(error: &Error) -> String {
    if error.is_eof() {
        return format!(
            "the JSON is cut off: {error}; nothing was run, send the arguments again in full"
        );
    }
    let text = error.to_string();
    if text.starts_with("recursion limit") {
        return format!("nested deeper than {MAX_DEPTH} levels");
    }
    format!("not JSON: {text}")
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(body) = text.strip_prefix("```") else {
        return text;
    };
    let body = body.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    body.strip_suffix("```").unwrap_or(body).trim()
}

fn repair_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (in_string, c) {
            (false, ',') if rest.as_str().trim_start().starts_with(['}', ']']) => {}
            (true, '\\') => escape(&mut rest, &mut out),
            (true, c) if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            (_, '"') => {
                in_string = !in_string;
                out.push('"');
            }
            (_, c) => out.push(c),
        }
    }
    out
}

/// Writes an escape after its backslash was read; a backslash that starts no escape is literal.
fn escape(rest: &mut Chars<'_>, out: &mut String) {
    let after = rest.as_str();
    let hex = || {
        after
            .as_bytes()
            .get(1..5)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match after.chars().next() {
        Some('\'') => out.push('\''),
        Some('u') if hex() => out.push_str("\\u"),
        Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => out.extend(['\\', c]),
        Some(_) => return out.push_str("\\\\"),
        None => return out.push('\\'),
    }
    rest.next();
}
