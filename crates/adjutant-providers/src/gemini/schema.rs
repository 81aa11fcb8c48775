//! JSON schemas in the form that the Gemini API accepts for the text of a reply. Pure.

use serde_json::{Map, Value, json};

/// The depth to which a schema is looked into.
const MAX_DEPTH: usize = 64;
/// The members that are understood, with nothing to look into.
///
/// Source: `GenerateContentConfig.responseJsonSchema` in python-genai, 2026-11; so are the next three.
const PLAIN: [&str; 12] = [
    "$id",
    "$anchor",
    "$ref",
    "type",
    "format",
    "title",
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "propertyOrdering",
];
/// Members whose values are maps of schemas.
const MAPS: [&str; 2] = ["properties", "$defs"];
/// Members whose values are lists of schemas; `oneOf` is read as `anyOf`.
const LISTS: [&str; 3] = ["prefixItems", "anyOf", "oneOf"];
/// Members whose values are schemas or booleans.
const SCHEMAS: [&str; 2] = ["items", "additionalProperties"];
/// Members that demand nothing.
const NOTES: [&str; 7] = [
    "$schema",
    "$comment",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// The members of a schema of an object without members.
const BARE: [&str; 7] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "description",
    "$schema",
];

/// A schema that the API takes.
#[derive(Debug, PartialEq)]
pub(super) struct Supported {
    pub(super) schema: Value,
    /// True if it allows more than the original.
    pub(super) lossy: bool,
}

/// Returns the schema with the keywords that the API supports. The rest is omitted.
pub(super) fn supported(schema: &Value) -> Supported {
    let mut lossy = false;
    let schema = rewrite(schema, &mut lossy, 0);
    Supported { schema, lossy }
}

/// True if the arguments of a tool with this schema have any members; a schema without any is better left out.
///
/// Source: what the goose project does, 2026-11.
pub(super) fn has_members(schema: &Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let is_empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    members
        .iter()
        .any(|(name, value)| !BARE.contains(&name.as_str()) || !is_empty(value))
}

fn rewrite(schema: &Value, lossy: &mut bool, depth: usize) -> Value {
    let Value::Object(members) = schema else {
        *lossy |= *schema != Value::Bool(true);
        return json!({});
    };
    if depth > MAX_DEPTH {
        *lossy = true;
        return json!({});
    }
    let members = flat(members, lossy);
    let mut object = Map::with_capacity(members.len());
    for (name, value) in &members {
        let value = match (name.as_str(), value) {
            // A reference permits no other members.
            (name, _)
                if members.contains_key("$ref")
                    && !name.starts_with('$')
                    && name != "definitions" =>
            {
                *lossy |= !NOTES.contains(&name) && !["title", "description"].contains(&name);
                continue;
            }
            ("definitions", Value::Object(map)) => {
                object.insert("$defs".to_owned(), inner(map, lossy, depth));
                continue;
            }
            ("$ref", Value::String(to)) => json!(to.replacen("#/definitions/", "#/$defs/", 1)),
            ("enum", Value::Array(values)) if values.iter().all(is_listable) => value.clone(),
            (name, Value::Object(map)) if MAPS.contains(&name) => inner(map, lossy, depth),
            (name, Value::Array(list)) if LISTS.contains(&name) => list
                .iter()
                .map(|it| rewrite(it, lossy, depth + 1))
                .collect(),
            (name, Value::Bool(_)) if SCHEMAS.contains(&name) => value.clone(),
            (name, Value::Object(_)) if SCHEMAS.contains(&name) => rewrite(value, lossy, depth + 1),
            ("required", Value::Array(_)) => value.clone(),
            (name, _) if PLAIN.contains(&name) => value.clone(),
            (name, _) => {
                *lossy |= !NOTES.contains(&name) && !say(name, value, &members, &mut object);
                continue;
            }
        };
        object.insert(name.clone(), value);
    }
    Value::Object(object)
}

fn inner(map: &Map<String, Value>, lossy: &mut bool, depth: usize) -> Value {
    map.iter()
        .map(|(name, it)| (name.clone(), rewrite(it, lossy, depth + 1)))
        .collect()
}

/// Expresses the rule of a member with other keywords; returns whether the result is complete.
fn say(
    name: &str,
    value: &Value,
    members: &Map<String, Value>,
    object: &mut Map<String, Value>,
) -> bool {
    let step = match name {
        "const" if is_listable(value) => {
            object.insert("enum".to_owned(), json!([value]));
            return true;
        }
        "const" if value.is_null() => {
            object.insert("type".to_owned(), json!("null"));
            return true;
        }
        "exclusiveMinimum" => 1,
        "exclusiveMaximum" => -1,
        _ => return false,
    };
    let bound = if step == 1 { "minimum" } else { "maximum" };
    let is_integer = members.get("type").is_some_and(|it| it == "integer");
    let next = value
        .as_i64()
        .and_then(|it| it.checked_add(step))
        .filter(|_| is_integer);
    if members.contains_key(bound) || !value.is_number() {
        return false;
    }
    object.insert(
        bound.to_owned(),
        next.map_or_else(|| value.clone(), Value::from),
    );
    next.is_some()
}

/// True if a value may stand in a list of values.
fn is_listable(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// Returns the members merged with all schemas in `allOf`; on a conflict, the first one takes precedence.
fn flat(members: &Map<String, Value>, lossy: &mut bool) -> Map<String, Value> {
    let mut all = members.clone();
    let Some(Value::Array(parts)) = all.shift_remove("allOf") else {
        return all;
    };
    for part in parts {
        let Value::Object(part) = part else {
            *lossy |= part != Value::Bool(true);
            continue;
        };
        for (name, value) in part {
            match (all.get_mut(&name), value) {
                (Some(Value::Object(there)), Value::Object(more)) if name == "properties" => {
                    for (name, it) in more {
                        *lossy |= there.get(&name).is_some_and(|there| *there != it);
                        there.entry(name).or_insert(it);
                    }
                }
                (Some(Value::Array(there)), Value::Array(more)) if name == "required" => {
                    there.extend(more);
                }
                (Some(there), value) => {
                    *lossy |= *there != value && !NOTES.contains(&name.as_str())
                }
                (None, value) => {
                    all.insert(name, value);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expect: Value, lossy: bool) {
        assert_eq!(
            supported(&schema),
            Supported {
                schema: expect,
                lossy
            }
        );
    }

    #[test]
    fn supported_keeps_a_schema_when_the_wire_knows_its_words() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "enum": ["x", "y"]},
                "b": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
                "c": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            },
            "required": ["a"], "additionalProperties": false,
            "$defs": {"n": {"type": "number", "maximum": 1.5}},
        });
        check(schema.clone(), schema, false);
    }

    #[test]
    fn supported_says_a_demand_by_other_words_when_it_can() {
        check(
            json!({"const": "x", "default": "x", "$schema": "s"}),
            json!({"enum": ["x"]}),
            false,
        );
        check(
            json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}),
            json!({"type": "integer", "minimum": 1, "maximum": 8}),
            false,
        );
        check(
            json!({"definitions": {"d": {"const": null}}, "properties": {"a": {"$ref": "#/definitions/d", "description": "d"}}}),
            json!({"$defs": {"d": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/d"}}}),
            false,
        );
        check(
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ]}),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a", "b"],
            }),
            false,
        );
    }

    #[test]
    fn supported_is_lossy_when_a_demand_cannot_be_said() {
        check(
            json!({"type": "string", "pattern": "a+", "minLength": 1}),
            json!({"type": "string"}),
            true,
        );
        check(
            json!({"type": "number", "exclusiveMinimum": 0.5}),
            json!({"type": "number", "minimum": 0.5}),
            true,
        );
        check(json!({"const": true}), json!({}), true);
        check(
            json!({"$ref": "#/$defs/a", "type": "object"}),
            json!({"$ref": "#/$defs/a"}),
            true,
        );
        check(json!({"not": {"type": "string"}}), json!({}), true);
        check(json!(false), json!({}), true);
        let deep = (0..80).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        assert!(supported(&deep).lossy);
    }

    #[test]
    fn has_members_says_no_when_a_tool_takes_nothing() {
        assert!(!has_members(
            &json!({"type": "object", "properties": {}, "additionalProperties": false})
        ));
        assert!(!has_members(&json!({})));
        assert!(has_members(
            &json!({"type": "object", "properties": {"a": {}}})
        ));
        assert!(has_members(&json!({"$ref": "#/$defs/a"})));
    }
}
