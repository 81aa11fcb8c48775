//! The places where two JSON values differ, for a person: pointers, and a bounded piece of each side.

use std::fmt;

use serde_json::Value;

/// The maximum number of differences in a message.
const MAX_SHOWN: usize = 4;
/// The maximum number of characters of each side in a message.
const MAX_SIDE: usize = 80;
/// The number of characters before the difference of two texts in a message.
const BEFORE: usize = 20;

/// The places where two values differ.
#[derive(Debug, Default)]
pub(super) struct Differences {
    count: usize,
    shown: Vec<DifferingField>,
}

#[derive(Debug)]
struct DifferingField {
    pointer: String,
    recorded: String,
    asked: String,
}

/// Compares two values, member by member.
pub(super) fn between(recorded: &Value, asked: &Value) -> Differences {
    let mut differences = Differences::default();
    differences.compare(&mut String::new(), Some(recorded), Some(asked));
    differences
}

impl Differences {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn compare(&mut self, pointer: &mut String, recorded: Option<&Value>, asked: Option<&Value>) {
        match (recorded, asked) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                for (name, value) in one {
                    self.step(pointer, name, Some(value), other.get(name));
                }
                for (name, value) in other.iter().filter(|(name, _)| !one.contains_key(*name)) {
                    self.step(pointer, name, None, Some(value));
                }
                // Members are compared in the order in which a model receives them.
                if self.count == 0 && one.len() == other.len() && !one.keys().eq(other.keys()) {
                    self.note(pointer, names(one.keys()), names(other.keys()));
                }
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                for at in 0..one.len().max(other.len()) {
                    self.step(pointer, &at.to_string(), one.get(at), other.get(at));
                }
            }
            (Some(Value::String(one)), Some(Value::String(other))) if one != other => {
                let common = one
                    .chars()
                    .zip(other.chars())
                    .take_while(|(a, b)| a == b)
                    .count();
                self.note(pointer, text(one, common), text(other, common));
            }
            _ if recorded == asked => {}
            _ => self.note(pointer, whole(recorded), whole(asked)),
        }
    }

    fn step(
        &mut self,
        pointer: &mut String,
        name: &str,
        recorded: Option<&Value>,
        asked: Option<&Value>,
    ) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        self.compare(pointer, recorded, asked);
        pointer.truncate(length);
    }

    fn note(&mut self, pointer: &str, recorded: String, asked: String) {
        self.count += 1;
        if self.shown.len() < MAX_SHOWN {
            let pointer = pointer.chars().take(2 * MAX_SIDE).collect();
            self.shown.push(DifferingField {
                pointer,
                recorded,
                asked,
            });
        }
    }
}

fn whole(value: Option<&Value>) -> String {
    value.map_or_else(
        || "nothing".to_owned(),
        |value| truncate_text(&value.to_string()),
    )
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    truncate_text(&names.map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// A text around the place where it differs from another.
fn text(text: &str, common: usize) -> String {
    let from = common.saturating_sub(BEFORE);
    let piece: String = text.chars().skip(from).collect();
    format!(
        "{}{}",
        if from > 0 { "…" } else { "" },
        truncate_text(&format!("{piece:?}"))
    )
}

fn truncate_text(text: &str) -> String {
    let mut piece: String = text.chars().take(MAX_SIDE).collect();
    if piece.len() < text.len() {
        piece.push('…');
    }
    piece
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shown.is_empty() {
            return f.write_str("no difference");
        }
        for (
            at,
            DifferingField {
                pointer,
                recorded,
                asked,
            },
        ) in self.shown.iter().enumerate()
        {
            let comma = if at > 0 { "; " } else { "" };
            write!(
                f,
                "{comma}at {pointer:?} recorded {recorded}, asked {asked}"
            )?;
        }
        match self.count - self.shown.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(recorded: Value, asked: Value, expect: &str) {
        assert_eq!(between(&recorded, &asked).to_string(), expect);
    }

    #[test]
    fn difference_shows_the_places_when_values_differ() {
        check(
            json!({"a": [1, {"b": "c"}]}),
            json!({"a": [1, {"b": "c"}]}),
            "no difference",
        );
        check(
            json!({"a": [1]}),
            json!({"a": [2]}),
            r#"at "/a/0" recorded 1, asked 2"#,
        );
        check(
            json!({"a/b~": 1}),
            json!({}),
            r#"at "/a~1b~0" recorded 1, asked nothing"#,
        );
        check(
            json!([1]),
            json!([1, null]),
            r#"at "/1" recorded nothing, asked null"#,
        );
        check(
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "a": 1}),
            r#"at "" recorded a, b, asked b, a"#,
        );
        let (one, other) = (
            format!("{}é1", "x".repeat(50)),
            format!("{}é2", "x".repeat(50)),
        );
        let before = "x".repeat(19);
        check(
            json!(one),
            json!(other),
            &format!(r#"at "" recorded …"{before}é1", asked …"{before}é2""#),
        );
        let long = "y".repeat(200);
        check(
            json!(0),
            json!([long]),
            &format!(r#"at "" recorded 0, asked ["{}…"#, "y".repeat(78)),
        );
        let many = "at \"/0\" recorded 0, asked 1; at \"/1\" recorded 0, asked 1; at \"/2\" recorded 0, asked 1; \
                    at \"/3\" recorded 0, asked 1; and 6 more";
        check(vec![0; 10].into(), vec![1; 10].into(), many);
    }
}
