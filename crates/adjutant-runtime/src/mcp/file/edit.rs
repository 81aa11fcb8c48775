//! Edits a file of servers without changing the rest of its text.

use std::{collections::BTreeSet, fmt, fs, io, path::Path};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use super::{SERVERS, invalid};
use crate::{Error, ErrorKind, files::storage};

/// The reason why a file is not changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unchanged {
    Exists,
    Missing,
    Strange(String),
}

impl Unchanged {
    pub(super) fn error(self, path: &Path, name: &str) -> Error {
        match self {
            Self::Exists => Error::new(
                ErrorKind::Exists,
                format!("{}: there is a server {name} already", path.display()),
            ),
            Self::Missing => Error::new(
                ErrorKind::Missing,
                format!("{}: there is no server {name}", path.display()),
            ),
            Self::Strange(why) => invalid(path, &why),
        }
    }
}

/// The members of an object, in the order of the text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

/// Returns the text with an additional server.
pub(super) fn added(text: &str, name: &str, value: &Value) -> Result<String, Unchanged> {
    let blank = if text.trim().is_empty() { "{}\n" } else { text };
    let unit = unit(blank);
    let root = members(blank)?;
    let Some((_, servers)) = servers(&root) else {
        return inserted(
            blank,
            blank.trim(),
            &root,
            SERVERS[0],
            &serde_json::json!({ name: value }),
            (&unit, 1),
        );
    };
    let inner = members(servers.get())?;
    if inner.0.iter().any(|(known, _)| known == name) {
        return Err(Unchanged::Exists);
    }
    inserted(blank, servers.get(), &inner, name, value, (&unit, 2))
}

/// Returns the text without a server.
pub(super) fn removed(text: &str, name: &str) -> Result<String, Unchanged> {
    if text.trim().is_empty() {
        return Err(Unchanged::Missing);
    }
    let root = members(text)?;
    let Some((_, servers)) = servers(&root) else {
        return Err(Unchanged::Missing);
    };
    let inner = members(servers.get())?.0;
    let at = inner
        .iter()
        .position(|(known, _)| known == name)
        .ok_or(Unchanged::Missing)?;
    let begin = start(text, servers.get()) + 1;
    let end = |at: usize| {
        inner
            .get(at)
            .map(|(_, value)| start(text, value.get()) + value.get().len())
    };
    let (own, next) = (end(at).unwrap_or(begin), inner.get(at + 1).is_some());
    let range = match at.checked_sub(1).and_then(end) {
        Some(before) => before..own,
        // The first member: up to the name of the next one, or to the end of the object.
        None if next => {
            let key = |from: usize| {
                from + text
                    .get(from..)
                    .and_then(|rest| rest.find('"'))
                    .unwrap_or_default()
            };
            key(begin)..key(own)
        }
        None => begin..start(text, servers.get()) + servers.get().len() - 1,
    };
    let mut text = text.to_owned();
    text.replace_range(range, "");
    whole(text)
}

/// Returns a key that appears twice in one object, in nested objects up to this depth.
pub(super) fn twice(text: &str, depth: usize) -> Option<String> {
    let members = members(text).ok()?.0;
    let mut seen = BTreeSet::new();
    let again = members
        .iter()
        .find(|(name, _)| !seen.insert(name))
        .map(|(name, _)| name.clone());
    let below = || {
        members
            .iter()
            .find_map(|(_, value)| twice(value.get(), depth - 1))
    };
    again.or_else(|| if depth > 1 { below() } else { None })
}

/// Returns the servers, and the name of their field.
fn servers<'a>(root: &Members<'a>) -> Option<(&'static str, &'a RawValue)> {
    SERVERS
        .iter()
        .find_map(|field| Some((*field, root.0.iter().find(|(key, _)| key == field)?.1)))
}

fn members(text: &str) -> Result<Members<'_>, Unchanged> {
    serde_json::from_str(text)
        .map_err(|error| Unchanged::Strange(format!("it is no JSON of this form: {error}")))
}

/// Returns the text with an additional member in one of its objects.
fn inserted(
    text: &str,
    object: &str,
    members: &Members<'_>,
    name: &str,
    value: &Value,
    (unit, depth): (&str, usize),
) -> Result<String, Unchanged> {
    let indent = unit.repeat(depth);
    let key = Value::from(name).to_string();
    let member = format!(
        "\n{indent}{key}: {}",
        pretty(value, unit).replace('\n', &format!("\n{indent}"))
    );
    let (range, new) = match members.0.last() {
        Some((_, last)) => {
            let at = start(text, last.get()) + last.get().len();
            (at..at, format!(",{member}"))
        }
        None => {
            let at = start(text, object);
            (
                at..at + object.len(),
                format!("{{{member}\n{}}}", unit.repeat(depth - 1)),
            )
        }
    };
    let mut text = text.to_owned();
    text.replace_range(range, &new);
    whole(text)
}

/// Returns the offset of a part of a text.
fn start(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Returns the indentation of the first indented line.
fn unit(text: &str) -> String {
    let blanks = |line: &str| {
        line.chars()
            .take_while(|c| matches!(c, ' ' | '\t'))
            .collect::<String>()
    };
    text.lines()
        .map(blanks)
        .find(|blanks| !blanks.is_empty())
        .unwrap_or_else(|| "  ".to_owned())
}

fn pretty(value: &Value, unit: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut bytes, formatter,
    ));
    written
        .ok()
        .and_then(|()| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| value.to_string())
}

/// Checks that the text can be parsed again.
fn whole(text: String) -> Result<String, Unchanged> {
    members(&text)?;
    Ok(text)
}

/// Writes a temporary file and renames it; permissions are kept.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let beside = path.with_file_name(format!(".{}.new", Uuid::new_v4().simple()));
    let written = write_new(path, &beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        let _gone = fs::remove_file(&beside);
        storage("write", path, error)
    })
}

fn write_new(path: &Path, beside: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create_new(beside)?;
    if let Ok(known) = fs::metadata(path) {
        file.set_permissions(known.permissions())?;
    }
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, with: &str) {
        let value = json!({ "command": "b", "args": ["x", "y"] });
        let added = added(text, "new", &value);
        assert_eq!(added.as_deref(), Ok(with), "{text}");
        let again = removed(with, "new");
        let left: Value = serde_json::from_str(&again.expect("it is there")).expect("it is JSON");
        let mut before: Value =
            serde_json::from_str(if text.is_empty() { "{}" } else { text }).expect("it is JSON");
        if before.get("servers").is_none() && before.get("mcpServers").is_none() {
            before["mcpServers"] = json!({});
        }
        assert_eq!(left, before);
    }

    #[test]
    fn file_keeps_all_else_when_a_server_is_added_and_removed() {
        let new = "\"new\": {\n      \"command\": \"b\",\n      \"args\": [\n        \"x\",\n        \"y\"\n      ]\n    }";
        check(
            "",
            &format!("{{\n  \"mcpServers\": {{\n    {new}\n  }}\n}}\n"),
        );
        check(
            "{\"mcpServers\": {}}",
            &format!("{{\"mcpServers\": {{\n    {new}\n  }}}}"),
        );
        let tabbed = "{\n\t\"other\" : [1,2],\n\t\"servers\": {\n\t\t\"a\": {\"command\":\"a\", \"odd\": 1e2}\n\t}\n}\n";
        let added = "{\n\t\"other\" : [1,2],\n\t\"servers\": {\n\t\t\"a\": {\"command\":\"a\", \"odd\": 1e2},\n\t\t\"new\": {\n\t\t\t\
                     \"command\": \"b\",\n\t\t\t\"args\": [\n\t\t\t\t\"x\",\n\t\t\t\t\"y\"\n\t\t\t]\n\t\t}\n\t}\n}\n";
        check(tabbed, added);
        assert_eq!(removed(added, "new").as_deref(), Ok(tabbed));
        let first = removed(added, "a").expect("it is there");
        assert!(
            first.starts_with(
                "{\n\t\"other\" : [1,2],\n\t\"servers\": {\n\t\t\"new\": {\n\t\t\t\"command\""
            ),
            "{first}"
        );
    }

    #[test]
    fn file_is_not_changed_when_it_cannot_be_meant() {
        let a = r#"{"mcpServers": {"a": {}}}"#;
        assert_eq!(added(a, "a", &json!({})), Err(Unchanged::Exists));
        assert_eq!(removed(a, "b"), Err(Unchanged::Missing));
        assert_eq!(removed("", "b"), Err(Unchanged::Missing));
        for text in ["[]", "{", r#"{"mcpServers": []}"#, "{} {}", "// hm\n{}"] {
            assert!(
                matches!(added(text, "a", &json!({})), Err(Unchanged::Strange(_))),
                "{text}"
            );
        }
    }
}
