//! Writes YAML that parses to the same value: plain scalars where they are safe, quotes elsewhere.

use serde_json::Value;

/// Formats a value as a YAML document.
pub(crate) fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(value, 0, &mut out),
        Value::Array(items) if !items.is_empty() => block(value, 0, &mut out),
        other => {
            inline(other, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Writes a mapping or a list over several lines.
fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.push_str(&indent);
                out.push_str(&word(key));
                out.push(':');
                below(value, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                out.push_str(&indent);
                out.push('-');
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        // The first entry is on the line of the dash.
                        let mut inner = String::new();
                        block(item, depth + 1, &mut inner);
                        out.push(' ');
                        out.push_str(inner.get(indent.len() + 2..).unwrap_or_default());
                    }
                    other => below(other, depth, out),
                }
            }
        }
        _ => {}
    }
}

/// Writes the value after a key or a dash, with the end of its line.
fn below(value: &Value, depth: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        block(value, depth + 1, out);
    } else {
        out.push(' ');
        inline(value, depth + 1, out);
        out.push('\n');
    }
}

fn inline(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(text) if is_literal(text) && depth > 0 => literal(text, depth, out),
        Value::String(text) => out.push_str(&word(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

/// Writes a text of several lines as a literal block.
fn literal(text: &str, depth: usize, out: &mut String) {
    out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.lines() {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&"  ".repeat(depth));
            out.push_str(line);
        }
    }
}

/// True if a literal block preserves the text.
fn is_literal(text: &str) -> bool {
    let is_kept = |c: char| c == '\n' || !is_escaped(c);
    let blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    text.contains('\n')
        && text.chars().all(is_kept)
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text.len() > 1
        && !text
            .split('\n')
            .any(|line| blank(line) || line.starts_with('\t') || line.ends_with(' '))
}

/// Writes a text in one line: without quotes if it can only be a text.
fn word(text: &str) -> String {
    let is_inner =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        && text
            .split(' ')
            .all(|part| !part.is_empty() && part.chars().all(is_inner))
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        quoted(text)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_escaped(c) && u32::from(c) > 0xffff => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)))
            }
            c if is_escaped(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// True for characters that YAML does not preserve, or that control a terminal.
fn is_escaped(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control()
        || turns
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        || u32::from(c) & 0xfffe == 0xfffe
}
