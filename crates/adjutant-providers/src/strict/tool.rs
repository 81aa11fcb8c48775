//! Schemas of tools as vendors declare them: one object at the root, nothing else. Pure.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value, json};

use super::{portable::portable, refers};

/// Members that vendors refuse at the root.
///
/// Source: Anthropic, "input_schema does not support oneOf, allOf, or anyOf at the top level"; OpenAI, "schema must have
/// type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", 2026-11.
const REFUSED: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];
/// Of those, the ones that lose meaning when they are merged or removed.
const LOSSY: [&str; 4] = ["oneOf", "anyOf", "enum", "not"];
/// Members whose values are maps that can be united.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Locations that no longer exist when the root is merged.
const GONE: [&str; 3] = ["#/oneOf/", "#/anyOf/", "#/allOf/"];
/// The largest number of schemas that are examined before a root is left unmerged.
const MAX_LOOKS: usize = 256;
/// The largest number of characters of a rule that the description holds.
const MAX_SAID: usize = 4_000;

type Object = Map<String, Value>;

/// The schema of a tool as vendors read it: in JSON Schema 2020-12, and one object.
pub(crate) fn for_tool(schema: &Value) -> Cow<'_, Value> {
    match one_object(schema) {
        Cow::Borrowed(object) => portable(object, schema),
        Cow::Owned(object) => Cow::Owned(portable(&object, schema).into_owned()),
    }
}

/// Returns the schema of a tool as one object: alternatives at the root become optional members, with the rule in the
/// description. The result never forbids more than the schema: arguments must be validated against the schema itself.
fn one_object(schema: &Value) -> Cow<'_, Value> {
    let is_plain = |it: &Object| {
        it.get("type").is_some_and(|it| it == "object")
            && !it.contains_key("$ref")
            && REFUSED.iter().all(|name| !it.contains_key(*name))
    };
    if schema.as_object().is_some_and(is_plain) {
        return Cow::Borrowed(schema);
    }
    let is_gone = |it: &str| GONE.iter().any(|place| it.starts_with(place));
    let flat = if refers(schema, &is_gone, 0) {
        None
    } else {
        Flat {
            root: schema,
            left: MAX_LOOKS,
        }
        .object(schema)
    };
    Cow::Owned(Value::Object(
        flat.map_or_else(|| open(schema), |flat| finish(flat, schema)),
    ))
}

/// An object of anything, with the schema in words.
fn open(schema: &Value) -> Object {
    let mut object = Object::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), json!({}));
    object.insert("additionalProperties".to_owned(), json!(true));
    say(
        &mut object,
        schema.get("description"),
        &format!("The arguments must fit this JSON schema: {schema}"),
    );
    object
}

/// Makes an object without alternatives one that vendors accept.
fn finish(mut flat: Object, schema: &Value) -> Object {
    flat.retain(|name, _| !REFUSED.contains(&name.as_str()));
    let mut object = Object::from_iter([("type".to_owned(), json!("object"))]);
    object.append(&mut flat);
    object.entry("properties").or_insert_with(|| json!({}));
    let lost: Object = schema
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| LOSSY.contains(&name.as_str()))
        .map(|(name, it)| (name.clone(), it.clone()))
        .collect();
    if !lost.is_empty() {
        let about = object.get("description").cloned();
        say(
            &mut object,
            about.as_ref(),
            &format!("The arguments must also fit: {}", Value::Object(lost)),
        );
    }
    object
}

fn say(object: &mut Object, before: Option<&Value>, rule: &str) {
    let before = before.and_then(Value::as_str).unwrap_or_default();
    let rule: String = rule.chars().take(MAX_SAID).collect();
    object.insert(
        "description".to_owned(),
        format!("{before}\n\n{rule}").trim().into(),
    );
}

/// Objects without alternatives, made of the parts of one root.
struct Flat<'a> {
    root: &'a Value,
    left: usize,
}

impl Flat<'_> {
    /// Returns the part of a schema that is an object; `None` if no part is, or if the schema is too large.
    fn object(&mut self, schema: &Value) -> Option<Object> {
        self.left = self.left.checked_sub(1)?;
        let members = match schema {
            Value::Bool(true) => return Some(Object::new()),
            Value::Object(members) => members,
            _ => return None,
        };
        let is_object = match members.get("type") {
            None => true,
            Some(Value::Array(names)) => names.iter().any(|it| it == "object"),
            Some(name) => name == "object",
        };
        if !is_object {
            return None;
        }
        let is_kept = |name: &str| !matches!(name, "type" | "$ref" | "oneOf" | "anyOf" | "allOf");
        let mut flat: Object = members
            .iter()
            .filter(|(name, _)| is_kept(name))
            .map(|(name, it)| (name.clone(), it.clone()))
            .collect();
        if let Some(place) = members.get("$ref") {
            let root = self.root;
            both(
                &mut flat,
                self.object(root.pointer(place.as_str()?.strip_prefix('#')?)?)?,
            );
        }
        for part in list(members, "allOf") {
            both(&mut flat, self.object(part)?);
        }
        for name in ["anyOf", "oneOf"] {
            if members.contains_key(name) {
                let parts: Vec<_> = list(members, name)
                    .filter_map(|it| self.object(it))
                    .collect();
                both(&mut flat, either(parts)?);
            }
        }
        Some(flat)
    }
}

fn list<'a>(members: &'a Object, name: &str) -> impl Iterator<Item = &'a Value> {
    members
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn list_required(members: &Object) -> BTreeSet<String> {
    list(members, "required")
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Adds what another object demands too.
fn both(flat: &mut Object, other: Object) {
    for (name, value) in other {
        match (flat.get_mut(&name), value) {
            (None, value) => drop(flat.insert(name, value)),
            (Some(Value::Object(old)), Value::Object(new)) if MAPS.contains(&&*name) => {
                unite(old, new, "allOf")
            }
            (Some(Value::Array(old)), Value::Array(new)) if name == "required" => {
                let new: Vec<_> = new.into_iter().filter(|it| !old.contains(it)).collect();
                old.extend(new);
            }
            (Some(old), Value::Bool(false)) if name == "additionalProperties" => {
                *old = Value::Bool(false)
            }
            // The value of the outer object is kept.
            (Some(_), _) => {}
        }
    }
}

/// Returns an object that takes all that any of these objects takes; `None` if there are no objects.
fn either(parts: Vec<Object>) -> Option<Object> {
    let mut parts = parts.into_iter();
    let mut all = parts.next()?;
    for part in parts {
        let shared = list_required(&part);
        if let Some(Value::Array(names)) = all.get_mut("required") {
            names.retain(|it| it.as_str().is_some_and(|it| shared.contains(it)));
        }
        // A demand that not all of the objects make is dropped.
        all.retain(|name, it| {
            MAPS.contains(&name.as_str()) || name == "required" || part.get(name) == Some(it)
        });
        for (name, value) in part {
            if let (true, Value::Object(new)) = (MAPS.contains(&name.as_str()), value)
                && let Value::Object(old) = all.entry(name).or_insert_with(|| json!({}))
            {
                unite(old, new, "anyOf");
            }
        }
    }
    Some(all)
}

/// Adds schemas by name; two of one name are joined by a keyword.
fn unite(old: &mut Object, new: Object, keyword: &str) {
    for (name, new) in new {
        let Some(before) = old.get_mut(&name) else {
            old.insert(name, new);
            continue;
        };
        if *before == new {
            continue;
        }
        match before
            .as_object_mut()
            .filter(|it| it.len() == 1)
            .and_then(|it| it.get_mut(keyword))
        {
            Some(Value::Array(parts)) if parts.contains(&new) => {}
            Some(Value::Array(parts)) => parts.push(new),
            _ => {
                *before = Value::Object(Object::from_iter([(
                    keyword.to_owned(),
                    json!([before.take(), new]),
                )]))
            }
        }
    }
}

#[cfg(test)]
mod tests;
