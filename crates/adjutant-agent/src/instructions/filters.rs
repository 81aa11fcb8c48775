//! Filters of templates beyond the builtins of the engine.

use std::borrow::Cow;

use minijinja::{
    Environment, Error, ErrorKind, Value,
    value::{Rest, ValueKind},
};

/// The largest number of spaces that `nindent` puts before a line.
const MAX_INDENT: usize = 256;

pub(super) fn register(engine: &mut Environment<'static>) {
    engine.add_filter("trim_prefix", trim_prefix);
    engine.add_filter("trim_suffix", trim_suffix);
    engine.add_filter("nindent", nindent);
    engine.add_filter("quote", quote);
    engine.add_filter("squote", squote);
    engine.add_test("empty", is_empty);
    engine.add_function("coalesce", coalesce);
}

fn trim_prefix(text: Cow<'_, str>, prefix: Cow<'_, str>) -> String {
    text.strip_prefix(&*prefix).unwrap_or(&text).to_owned()
}

fn trim_suffix(text: Cow<'_, str>, suffix: Cow<'_, str>) -> String {
    text.strip_suffix(&*suffix).unwrap_or(&text).to_owned()
}

/// A line break, and every line that is not blank indented.
fn nindent(text: Cow<'_, str>, width: usize) -> Result<String, Error> {
    if width > MAX_INDENT {
        let why = format!("`nindent` indents by {MAX_INDENT} spaces at most, not by {width}");
        return Err(Error::new(ErrorKind::InvalidOperation, why));
    }
    let indented = text.split('\n').map(|line| match line.trim().is_empty() {
        true => format!("\n{line}"),
        false => format!("\n{:width$}{line}", ""),
    });
    Ok(indented.collect())
}

/// In double quotes, escaped as in JSON.
fn quote(text: Cow<'_, str>) -> String {
    serde_json::Value::from(&*text).to_string()
}

/// In single quotes; single quotes and backslashes are escaped by a backslash.
fn squote(text: Cow<'_, str>) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn is_empty(value: &Value) -> bool {
    !value.is_true()
}

fn coalesce(values: Rest<Value>) -> Value {
    let is_there = |value: &&Value| !matches!(value.kind(), ValueKind::Undefined | ValueKind::None);
    values.iter().find(is_there).cloned().unwrap_or_default()
}
