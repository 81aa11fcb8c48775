//! The coercion table: which scalar becomes which, and when it stays as it is.

use serde_json::{Number, Value};

/// The largest whole number up to which every one is exact as a fraction.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The name of a value's JSON type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The types that a schema names itself; empty if it names none.
pub(super) fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let named = schema.get("type");
    let many = named.and_then(Value::as_array).into_iter().flatten();
    named.into_iter().chain(many).filter_map(Value::as_str)
}

/// True if a schema names this type itself.
pub(super) fn names(schema: &Value, name: &str) -> bool {
    types(schema).any(|it| it == name)
}

/// True if a value is of a type.
pub(super) fn is(value: &Value, name: &str) -> bool {
    match name {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        name => type_name(value) == name,
    }
}

/// Returns the integer that equals a fraction without a fractional part, if it is exact.
pub(super) fn whole(value: &Value) -> Option<Value> {
    let Value::Number(number) = value else {
        return None;
    };
    if !number.is_f64() {
        return None;
    }
    let float = number
        .as_f64()
        .filter(|it| it.fract() == 0.0 && it.abs() <= EXACT)?;
    Some(Value::from(float as i64))
}

/// The value as another type, if the table has it and nothing is lost.
pub(super) fn convert(value: &Value, into: &str) -> Option<Value> {
    match (into, value) {
        ("number" | "integer", Value::Bool(flag)) => Some(Value::from(u8::from(*flag))),
        ("number", Value::String(text)) => number(text.trim()),
        ("integer", Value::String(text)) => integer(text.trim()),
        ("boolean", Value::String(text)) if text == "true" => Some(Value::Bool(true)),
        ("boolean", Value::String(text)) if text == "false" => Some(Value::Bool(false)),
        ("boolean", Value::Number(number)) if number.as_f64() == Some(1.0) => {
            Some(Value::Bool(true))
        }
        ("boolean", Value::Number(number)) if number.as_f64() == Some(0.0) => {
            Some(Value::Bool(false))
        }
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        ("null", Value::Bool(false)) => Some(Value::Null),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    exact(text).or_else(|| fraction(text).map(Value::Number))
}

/// An integer of 64 bits; digits are never read as a fraction, which would round them.
fn integer(text: &str) -> Option<Value> {
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if !zeros.is_empty() && zeros.bytes().all(|it| it == b'0') => digits,
        Some(_) | None => text,
    };
    if let Some(value) = exact(digits) {
        return Some(value);
    }
    let all_digits = digits
        .trim_start_matches(['+', '-'])
        .bytes()
        .all(|it| it.is_ascii_digit());
    if all_digits {
        None
    } else {
        whole(&Value::Number(fraction(text)?))
    }
}

fn exact(text: &str) -> Option<Value> {
    text.parse::<i64>()
        .map(Value::from)
        .or_else(|_| text.parse::<u64>().map(Value::from))
        .ok()
}

fn fraction(text: &str) -> Option<Number> {
    let plain = text
        .bytes()
        .all(|it| matches!(it, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let float = text.parse::<f64>().ok().filter(|_| plain)?;
    Number::from_f64(float)
}
