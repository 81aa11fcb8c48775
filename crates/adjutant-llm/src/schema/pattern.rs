//! Patterns that look ahead, as schemas without: the validator's regular expressions do not know it. Pure.

use serde_json::{Value, json};

/// Members whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];
/// Parts of a pattern that this module does not translate.
const UNKNOWN: [&str; 5] = ["(?=", "(?!", "(?<=", "(?<!", "\\k<"];

/// Returns the schema without patterns that start by looking ahead, or `None` if it has none.
pub(super) fn without_lookahead(schema: &Value) -> Option<Value> {
    if !looks_ahead(schema) {
        return None;
    }
    let mut schema = schema.clone();
    translate(&mut schema);
    Some(schema)
}

fn looks_ahead(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| match value {
            Value::String(pattern) => name == "pattern" && split(pattern).is_some(),
            value => !DATA.contains(&name.as_str()) && looks_ahead(value),
        }),
        Value::Array(items) => items.iter().any(looks_ahead),
        _ => false,
    }
}

fn translate(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let pattern = members.get("pattern").and_then(Value::as_str);
            if let Some(parts) = pattern.and_then(split) {
                members.remove("pattern");
                let parts = parts.iter().map(Part::to_schema);
                match members.get_mut("allOf") {
                    Some(Value::Array(all)) => all.extend(parts),
                    _ => {
                        members.insert("allOf".to_owned(), parts.collect());
                    }
                }
            }
            for (name, value) in members {
                if !DATA.contains(&name.as_str()) {
                    translate(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(translate),
        _ => {}
    }
}

/// A pattern that a text must match, or must not.
#[derive(Debug, PartialEq)]
struct Part {
    is_excluded: bool,
    pattern: String,
}

impl Part {
    fn to_schema(&self) -> Value {
        let pattern = &self.pattern;
        if self.is_excluded {
            // A pattern holds for every value that is not a text.
            json!({"not": {"type": "string", "pattern": pattern}})
        } else {
            json!({"pattern": pattern})
        }
    }
}

/// Splits a pattern that looks ahead at the start of the text, and only there.
fn split(pattern: &str) -> Option<Vec<Part>> {
    let anchored = pattern.strip_prefix('^');
    let mut rest = anchored.unwrap_or(pattern);
    let mut parts = Vec::new();
    while let Some(inner) = rest.strip_prefix("(?=").or(rest.strip_prefix("(?!")) {
        let end = group_end(inner)?;
        parts.push(Part {
            is_excluded: rest.starts_with("(?!"),
            pattern: format!("^(?:{})", check_part(&inner[..end])?),
        });
        rest = &inner[end + 1..];
    }
    if parts.is_empty() {
        return None;
    }
    let rest = match (rest.strip_prefix('^'), anchored) {
        (Some(rest), _) => rest,
        (None, Some(_)) => rest,
        (None, None) => return None,
    };
    // An alternative at the outermost level is not bound by what comes before it.
    let is_alternative = has_alternative(rest);
    let rest = check_part(rest).filter(|_| !is_alternative)?;
    if !rest.is_empty() {
        parts.push(Part {
            is_excluded: false,
            pattern: format!("^{rest}"),
        });
    }
    Some(parts)
}

/// Returns the part of a pattern if it contains neither lookaround nor references to groups, which are renumbered.
fn check_part(part: &str) -> Option<&str> {
    let refers = |pair: &[u8]| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]);
    let is_known = !UNKNOWN.iter().any(|it| part.contains(it));
    (is_known && !part.as_bytes().windows(2).any(refers)).then_some(part)
}

/// The offset of the parenthesis that closes a group, from after its opening.
fn group_end(inner: &str) -> Option<usize> {
    let mut depth = 0_u32;
    scan(inner, |at, byte| {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
        None
    })
}

fn has_alternative(pattern: &str) -> bool {
    let mut depth = 0_i32;
    let found = scan(pattern, |at, byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'|' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    });
    found.is_some()
}

/// Visits the bytes of a pattern that stand outside of classes and are not escaped, until one is found.
fn scan(pattern: &str, mut visit: impl FnMut(usize, u8) -> Option<usize>) -> Option<usize> {
    let (mut is_escaped, mut is_class) = (false, false);
    for (at, byte) in pattern.bytes().enumerate() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match byte {
            b'\\' => is_escaped = true,
            b'[' => is_class = true,
            b']' => is_class = false,
            byte if !is_class => {
                if let Some(found) = visit(at, byte) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::Schema;

    use super::*;

    #[test]
    fn pattern_is_checked_when_it_looks_ahead_at_the_start() {
        let table: [(&str, &[&str], &[&str]); 6] = [
            ("^(?!foo).*$", &["bar", "afoo", ""], &["foo", "foobar"]),
            (
                r"^(?=.*[A-Z])(?=.*\d).{4,}$",
                &["Ab12", "1234X"],
                &["Ab1", "abcd1", "ABCD"],
            ),
            (r"(?!^\d+$)^.+$", &["a1", "a"], &["12", ""]),
            (r"^(?![-.)])[a-z.-]+$", &["a-b"], &["-a", ".a", "A"]),
            ("^(?!(a|b)c)", &["ab", "c"], &["ac", "bcd"]),
            (r"^(?!\()[(a]+$", &["a("], &["(a"]),
        ];
        for (pattern, fits, misfits) in table {
            let schema = json!({"type": ["string", "null"], "pattern": pattern, "minLength": 0});
            let schema = Schema::compile(Arc::new(schema)).expect(pattern);
            for text in fits {
                assert_eq!(schema.validate(&json!(text)), Ok(()), "{pattern} {text}");
            }
            for text in misfits {
                assert!(schema.validate(&json!(text)).is_err(), "{pattern} {text}");
            }
            assert_eq!(schema.validate(&json!(null)), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn split_leaves_other_patterns_alone() {
        for pattern in [
            "^a(?!b)",
            "(?!a)b",
            "^(?!a)b|c",
            "(?<=a)b",
            r"^(?!(a)\1)b",
            "^(?!a",
            "^abc$",
            "",
        ] {
            assert_eq!(split(pattern), None, "{pattern}");
        }
        let data =
            json!({"const": {"pattern": "^(?!a)b"}, "properties": {"pattern": {"type": "string"}}});
        assert_eq!(without_lookahead(&data), None);
    }
}
