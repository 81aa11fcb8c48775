//! Schemas as vendors' strict modes want them. Pure; a schema that cannot be made strict stays as it is.

use serde_json::{Map, Value};

/// How deep a schema is looked into.
const MAX_DEPTH: usize = 64;
/// Members whose values are maps of schemas.
const MAPS: [&str; 4] = ["properties", "$defs", "definitions", "patternProperties"];
/// Members whose values are schemas, or lists of schemas.
const SCHEMAS: [&str; 9] = ["items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"];

/// The schema with objects closed: they have no members but those it names. `None` if one of them must stay open.
///
/// Source: Anthropic's guide to structured outputs, 2026-11: `additionalProperties` must be `false`.
pub(crate) fn closed(schema: &Value) -> Option<Value> {
    rewrite(schema, &|object| close(object), 0)
}

/// The schema in the form of OpenAI's strict mode: objects closed, all members required, optional ones nullable.
/// `None` if it holds what that mode does not know.
///
/// Source: OpenAI's guide to structured outputs, "supported schemas", 2026-11.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    rewrite(schema, &|object| close(object).and_then(|()| require(object)), 0)
}

fn rewrite(schema: &Value, change: &impl Fn(&mut Map<String, Value>) -> Option<()>, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let Value::Object(members) = schema else {
        // `true` takes anything, which no strict mode does.
        return (*schema == Value::Bool(false)).then(|| schema.clone());
    };
    let mut object = Map::with_capacity(members.len() + 2);
    for (name, value) in members {
        let inner = |it: &Value| rewrite(it, change, depth + 1);
        let value = match (name.as_str(), value) {
            (name, Value::Object(map)) if MAPS.contains(&name) => {
                let map = map.iter().map(|(name, it)| Some((name.clone(), inner(it)?)));
                Value::Object(map.collect::<Option<_>>()?)
            }
            (name, Value::Array(list)) if SCHEMAS.contains(&name) => {
                Value::Array(list.iter().map(inner).collect::<Option<_>>()?)
            }
            (name, value) if SCHEMAS.contains(&name) => inner(value)?,
            _ => value.clone(),
        };
        object.insert(name.clone(), value);
    }
    change(&mut object)?;
    Some(Value::Object(object))
}

/// Closes a schema of an object.
fn close(object: &mut Map<String, Value>) -> Option<()> {
    let is_object = object.contains_key("properties")
        || match object.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => false,
        };
    if !is_object {
        return Some(());
    }
    match object.get("additionalProperties") {
        None | Some(Value::Bool(false)) => {}
        // A map of any names, or an object that takes anything: closing it would change what it means.
        Some(_) => return None,
    }
    // Without members it takes anything too.
    object.get("properties")?;
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(())
}

/// Requires all members of an object. Optional ones must take `null` already, so that the meaning stays.
fn require(object: &mut Map<String, Value>) -> Option<()> {
    if ["oneOf", "allOf", "not", "if", "patternProperties"].iter().any(|it| object.contains_key(*it)) {
        return None;
    }
    // An annotation that the mode refuses.
    object.remove("default");
    let Some(Value::Object(properties)) = object.get("properties") else { return Some(()) };
    let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
    let is_required = |name: &str| {
        let required = object.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|it| it == name))
    };
    if !properties.iter().all(|(name, schema)| is_required(name) || takes_null(schema)) {
        return None;
    }
    object.insert("required".to_owned(), Value::Array(names));
    Some(())
}

/// Whether a schema takes `null`, as far as can be seen at a glance.
fn takes_null(schema: &Value) -> bool {
    let is_null = |it: &Value| it == "null";
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_null),
        Some(name) => is_null(name),
        None => {
            let any = schema.get("anyOf").and_then(Value::as_array);
            let values = schema.get("enum").and_then(Value::as_array);
            any.is_some_and(|any| any.iter().any(takes_null))
                || values.is_some_and(|values| values.contains(&Value::Null))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, expect_closed: Option<Value>, expect_strict: Option<Value>) {
        assert_eq!((closed(&schema), strict(&schema)), (expect_closed, expect_strict));
    }

    #[test]
    fn schemas_are_closed_and_all_is_required_when_the_meaning_stays() {
        let inner = json!({"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}});
        let schema = json!({
            "type": "object", "properties": {"a": inner, "c": {"type": ["string", "null"], "default": null}}, "required": ["a"]
        });
        let closed_inner = json!({"type": "array", "items": {
            "type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"], "additionalProperties": false
        }});
        let mut expect = json!({
            "type": "object", "properties": {"a": closed_inner, "c": {"type": ["string", "null"], "default": null}},
            "required": ["a"], "additionalProperties": false
        });
        let is_closed = expect.clone();
        expect["properties"]["c"] = json!({"type": ["string", "null"]});
        expect["required"] = json!(["a", "c"]);
        check(schema, Some(is_closed), Some(expect));
    }

    #[test]
    fn schemas_stay_as_they_are_when_a_strict_mode_would_change_what_they_mean() {
        check(json!(true), None, None);
        check(json!({"type": "object"}), None, None);
        check(json!({"type": "object", "additionalProperties": {"type": "string"}}), None, None);
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        check(optional, Some(closed), None);
        let either = json!({"oneOf": [{"type": "string"}]});
        check(either.clone(), Some(either), None);
        let deep = (0..80).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        check(deep, None, None);
    }
}
