//! Schemas as vendors' strict modes want them. Pure; a schema that cannot be made strict stays as it is.

mod portable;
mod tool;

use serde_json::{Map, Value};

pub(crate) use portable::{has_renamed_keys, restore_keys};
pub(crate) use tool::for_tool;

/// The depth to which a schema is looked into.
const MAX_DEPTH: usize = 64;
/// Members whose values are maps of schemas.
const MAPS: [&str; 4] = ["properties", "$defs", "definitions", "patternProperties"];
/// Members whose values are schemas, or lists of schemas.
const SCHEMAS: [&str; 9] = [
    "items",
    "prefixItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
];

/// Members that Anthropic's mode does not know, and that a schema loses its meaning without.
const UNKNOWN: [&str; 11] = [
    "not",
    "if",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "contains",
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
];
/// Members that it refuses, and that a description can express.
const SAID: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// Members that it supports. Others are annotations, or have no effect without unsupported members.
///
/// Source: Anthropic's guide to structured outputs, "JSON schema limitations", 2026-11; `transform_schema` of its Python
/// client 2.14 moves all others into descriptions.
const KNOWN: [&str; 19] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "minItems",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];
/// Members of which a strict mode demands one: without them, a schema takes anything.
///
/// Source: "schema must have a 'type' key" in can1357/oh-my-pi 211, 2026-02; Anthropic's Python client 2.14 raises an error.
const DEMANDS: [&str; 8] = [
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "oneOf",
    "properties",
    "type",
];
/// The formats of texts that it knows.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Returns the schema in the form of Anthropic's mode: objects are closed, so that they have only the named members;
/// bounds move to the description, and `oneOf` is widened to `anyOf`. `None` if the meaning would change beyond that.
/// The answer must be validated against the original schema.
///
/// Source: Anthropic's guide to structured outputs, "JSON schema limitations", 2026-11, and what its SDKs do.
pub(crate) fn closed(schema: &Value) -> Option<Value> {
    let closed = rewrite(
        schema,
        &|object| close(object).and_then(|()| say(object)),
        0,
    )?;
    (!is_recursive(&closed)).then_some(closed)
}

/// The schema in the form of OpenAI's strict mode: objects closed, all members required, optional ones nullable.
/// `None` if it holds what that mode does not know.
///
/// Source: OpenAI's guide to structured outputs, "supported schemas", 2026-11.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    rewrite(
        schema,
        &|object| close(object).and_then(|()| require(object)),
        0,
    )
}

fn rewrite(
    schema: &Value,
    change: &impl Fn(&mut Map<String, Value>) -> Option<()>,
    depth: usize,
) -> Option<Value> {
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
                let map = map
                    .iter()
                    .map(|(name, it)| Some((name.clone(), inner(it)?)));
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
    let is_demanding = DEMANDS.iter().any(|name| object.contains_key(*name));
    is_demanding.then_some(Value::Object(object))
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
        // A map with arbitrary keys, or an object that accepts anything: closing it would change its meaning.
        Some(_) => return None,
    }
    // Without members it takes anything too.
    object.get("properties")?;
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(())
}

/// Adds to the description the rules that the mode refuses.
fn say(object: &mut Map<String, Value>) -> Option<()> {
    let is_outside = |it: &Value| it.as_str().is_none_or(|it| !it.starts_with('#'));
    let is_compound = |it: &Value| it.is_object() || it.is_array();
    let values = object.get("enum").and_then(Value::as_array);
    if UNKNOWN.iter().any(|it| object.contains_key(*it))
        || object.get("$ref").is_some_and(is_outside)
        || values.is_some_and(|values| values.iter().any(is_compound))
    {
        return None;
    }
    let refused = |name: &str, value: &Value| match name {
        "minItems" => value.as_u64().is_none_or(|it| it > 1),
        "format" => value.as_str().is_none_or(|it| !FORMATS.contains(&it)),
        // Only plain regular expressions are known.
        "pattern" => value.as_str().is_none_or(|it| {
            ["(?", "\\b", "\\B", "\\1"]
                .iter()
                .any(|part| it.contains(part))
        }),
        _ => SAID.contains(&name),
    };
    let (said, kept): (Map<_, _>, Map<_, _>) = std::mem::take(object)
        .into_iter()
        .partition(|(name, value)| refused(name, value));
    // Beside an enum, the vendor's client drops the items too.
    let has_items = !kept.contains_key("enum")
        && kept.get("type").is_none_or(|it| {
            it == "array"
                || it
                    .as_array()
                    .is_some_and(|names| names.contains(&"array".into()))
        });
    *object = kept
        .into_iter()
        .filter(|(name, _)| KNOWN.contains(&name.as_str()) && (has_items || name != "items"))
        .map(|(name, it)| {
            (
                if name == "oneOf" {
                    "anyOf".to_owned()
                } else {
                    name
                },
                it,
            )
        })
        .collect();
    if !said.is_empty() {
        let before = object
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = format!("{before}\n\n{}", Value::Object(said));
        object.insert("description".to_owned(), text.trim().into());
    }
    Some(())
}

/// True if a schema, or one of its definitions, leads back to itself.
fn is_recursive(schema: &Value) -> bool {
    let definitions = |key: &'static str| {
        let map = schema
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        map.map(move |(name, it)| (format!("#/{key}/{name}"), it))
    };
    if refers(schema, &|it| it == "#", 0) {
        return true;
    }
    let mut left: Vec<(String, &Value)> = definitions("$defs")
        .chain(definitions("definitions"))
        .collect();
    loop {
        let is_left = |it: &str| left.iter().any(|(name, _)| name == it);
        let rest: Vec<_> = left
            .iter()
            .filter(|(_, it)| refers(it, &is_left, 0))
            .cloned()
            .collect();
        if rest.is_empty() || rest.len() == left.len() {
            return !rest.is_empty();
        }
        left = rest;
    }
}

/// True if a wanted reference is anywhere below.
fn refers(value: &Value, is_wanted: &impl Fn(&str) -> bool, depth: usize) -> bool {
    match value {
        _ if depth > 2 * MAX_DEPTH => true,
        Value::Array(items) => items.iter().any(|it| refers(it, is_wanted, depth + 1)),
        Value::Object(members) => {
            members
                .get("$ref")
                .and_then(Value::as_str)
                .is_some_and(is_wanted)
                || members.values().any(|it| refers(it, is_wanted, depth + 1))
        }
        _ => false,
    }
}

/// Requires all members of an object. Optional ones must take `null` already, so that the meaning stays.
fn require(object: &mut Map<String, Value>) -> Option<()> {
    if object.contains_key("$ref") && !object.contains_key("properties") {
        // "$ref cannot have keywords {'description'}". Source: vectorize-io/hindsight 3944, 2026-08.
        object.retain(|name, _| matches!(name.as_str(), "$ref" | "$defs" | "definitions"));
        return Some(());
    }
    let beyond = [
        "oneOf",
        "allOf",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    ];
    if beyond
        .iter()
        .chain(&UNKNOWN)
        .any(|it| object.contains_key(*it))
        || object
            .get("format")
            .is_some_and(|it| it.as_str().is_none_or(|it| it == "uri"))
    {
        return None;
    }
    // An annotation that the mode refuses.
    object.remove("default");
    let Some(Value::Object(properties)) = object.get("properties") else {
        return Some(());
    };
    let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
    let is_required = |name: &str| {
        let required = object.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|it| it == name))
    };
    if !properties
        .iter()
        .all(|(name, schema)| is_required(name) || takes_null(schema))
    {
        return None;
    }
    object.insert("required".to_owned(), Value::Array(names));
    Some(())
}

/// True if a schema obviously accepts `null`.
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
        assert_eq!(
            (closed(&schema), strict(&schema)),
            (expect_closed, expect_strict)
        );
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
        check(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            None,
            None,
        );
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        check(optional, Some(closed), None);
        let either = json!({"oneOf": [{"type": "string"}]});
        check(either, Some(json!({"anyOf": [{"type": "string"}]})), None);
        let deep = (0..80).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "items": inner}),
        );
        check(deep, None, None);
    }

    #[test]
    fn schemas_stay_as_they_are_when_a_member_takes_anything() {
        for anything in [json!({}), json!({"description": "Any value."})] {
            let schema =
                json!({"type": "object", "properties": {"a": anything}, "required": ["a"]});
            check(schema, None, None);
        }
    }

    #[test]
    fn closed_drops_annotations_that_the_mode_does_not_know() {
        let text = json!({"type": "string", "optional": true, "examples": ["x"], "items": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": false});
        let mut expect = schema.clone();
        expect["properties"]["a"] = json!({"type": "string"});
        assert_eq!(closed(&schema), Some(expect));
    }

    #[test]
    fn closed_says_in_words_what_the_mode_refuses_when_it_can_be_said() {
        let bounds =
            json!({"type": "integer", "description": "A size.", "minimum": 1, "maximum": 5});
        let list = json!({"type": "array", "items": {"type": "string", "format": "uuid", "pattern": "^a+$"}, "minItems": 2});
        let schema = json!({"type": "object", "properties": {"minimum": bounds, "b": list}, "required": ["b"]});
        let expect = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "description": "A size.\n\n{\"minimum\":1,\"maximum\":5}"},
                "b": {
                    "type": "array",
                    "items": {"type": "string", "format": "uuid", "pattern": "^a+$"},
                    "description": "{\"minItems\":2}"
                },
            },
            "required": ["b"],
            "additionalProperties": false,
        });
        assert_eq!(closed(&schema), Some(expect));
    }

    #[test]
    fn closed_is_nothing_when_a_schema_is_beyond_the_mode() {
        for schema in [
            json!({"not": {"type": "string"}}),
            json!({"enum": [{"a": 1}]}),
            json!({"$ref": "https://a.example/schema"}),
            json!({"type": "array", "items": {"$ref": "#"}}),
            json!({"$ref": "#/$defs/a", "$defs": {
                "a": {"type": "array", "items": {"$ref": "#/$defs/b"}}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}
            }}),
        ] {
            assert_eq!(closed(&schema), None, "{schema}");
        }
        let chain = json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/b"}}, "b": {"type": "string"}
        }});
        assert_eq!(closed(&chain), Some(chain));
    }
}
