//! Schemas of tools in JSON Schema 2020-12, without what vendors refuse. Pure.
//!
//! A keyword that cannot be translated is dropped: arguments are always held against the schema itself.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use adjutant_llm::{Call, ToolDecl};
use serde_json::{Map, Value, json};

use super::MAX_DEPTH;

/// The largest number of characters of a property key. Source: the error "Property keys should match pattern
/// '^[a-zA-Z0-9_.-]{1,64}$'" of the Messages API, 2026-11.
const MAX_KEY: usize = 64;
/// The largest number of values of an `enum`. Source: "Limitations on enum size" in OpenAI's guide to structured outputs,
/// 2026-11: 1,000 in a schema.
const MAX_ENUM: usize = 500;
/// Members whose values are maps of schemas, except members with special rules.
const MAPS: [&str; 1] = ["dependentSchemas"];
/// Members whose values are lists of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Members whose values are schemas.
const SCHEMAS: [&str; 11] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Members of older drafts that have no translation, and what vendors do not read.
const DROPPED: [&str; 3] = ["$schema", "dependencies", "additionalItems"];
/// Syntax that the vendors' regular expressions do not support. Source: the errors "regex lookaround is not
/// supported" of OpenAI and "Invalid regex" of Anthropic, 2026.
const NO_REGEX: [&str; 5] = ["(?=", "(?!", "(?<=", "(?<!", "\\k<"];

/// The schema as vendors read it; the tool's own schema decides how property keys are renamed.
pub(super) fn portable<'a>(schema: &'a Value, original: &Value) -> Cow<'a, Value> {
    let renames = Renames::new(original);
    let translated = Translator {
        root: schema,
        renames: &renames,
    }
    .schema(schema, 0);
    if translated == *schema {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(translated)
    }
}

/// True if a tool has property keys that vendors refuse.
pub(crate) fn has_renamed_keys(tool: &ToolDecl) -> bool {
    has_bad_key(&tool.schema, 0)
}

/// Returns the arguments of a call with the property keys of its tool. `None` if the tool was declared with its own keys.
pub(crate) fn restore_keys(call: &Call, tools: &[ToolDecl]) -> Option<Arc<str>> {
    let tool = tools.iter().find(|tool| tool.name == call.name)?;
    if !has_renamed_keys(tool) {
        return None;
    }
    let mut args = serde_json::from_str::<Value>(&call.args).ok()?;
    Renames::new(&tool.schema).restore(&mut args);
    let args = args.to_string();
    (*args != *call.args).then(|| args.into())
}

/// The property keys that vendors refuse, and the keys in their place.
struct Renames(Vec<Rename>);

struct Rename {
    original: String,
    declared: String,
}

impl Renames {
    fn new(schema: &Value) -> Self {
        let mut renames = Vec::new();
        if !has_bad_key(schema, 0) {
            return Self(renames);
        }
        let mut keys = Vec::new();
        collect_keys(schema, &mut keys, 0);
        let (good, bad): (Vec<&str>, Vec<&str>) = keys.into_iter().partition(|key| is_good(key));
        let mut taken: BTreeSet<String> = good.into_iter().map(str::to_owned).collect();
        for key in bad {
            if renames.iter().any(|it: &Rename| it.original == key) {
                continue;
            }
            let fits = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
            let letters = key.chars().map(|it| if fits(it) { it } else { '_' });
            let base: String = letters.take(MAX_KEY - 8).collect();
            let mut declared = if base.is_empty() {
                "_".to_owned()
            } else {
                base.clone()
            };
            let mut number = 2;
            while !taken.insert(declared.clone()) {
                declared = format!("{base}_{number}");
                number += 1;
            }
            renames.push(Rename {
                original: key.to_owned(),
                declared,
            });
        }
        Self(renames)
    }

    fn to_declared<'a>(&'a self, key: &'a str) -> &'a str {
        let found = self.0.iter().find(|it| it.original == key);
        found.map_or(key, |it| &it.declared)
    }

    fn restore(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|it| self.restore(it)),
            Value::Object(members) => {
                let restored = std::mem::take(members)
                    .into_iter()
                    .map(|(name, mut value)| {
                        self.restore(&mut value);
                        let found = self.0.iter().find(|it| it.declared == name);
                        (found.map_or(name, |it| it.original.clone()), value)
                    });
                *members = restored.collect();
            }
            _ => {}
        }
    }
}

fn is_good(key: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"_.-".contains(&it);
    (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(is_part)
}

fn has_bad_key(schema: &Value, depth: usize) -> bool {
    let deeper = |it: &Value| depth < MAX_DEPTH && has_bad_key(it, depth + 1);
    match schema {
        Value::Array(items) => items.iter().any(deeper),
        Value::Object(members) => members.iter().any(|(name, value)| match value {
            Value::Object(map) if name == "properties" => {
                map.iter().any(|(key, it)| !is_good(key) || deeper(it))
            }
            value => deeper(value),
        }),
        _ => false,
    }
}

fn collect_keys<'a>(schema: &'a Value, keys: &mut Vec<&'a str>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Array(items) => {
            for it in items {
                collect_keys(it, keys, depth + 1);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Object(map) if name == "properties" => {
                        for (key, it) in map {
                            keys.push(key);
                            collect_keys(it, keys, depth + 1);
                        }
                    }
                    value => collect_keys(value, keys, depth + 1),
                }
            }
        }
        _ => {}
    }
}

struct Translator<'a> {
    root: &'a Value,
    renames: &'a Renames,
}

impl Translator<'_> {
    fn schema(&self, schema: &Value, depth: usize) -> Value {
        let members = match schema {
            Value::Bool(_) => return schema.clone(),
            Value::Object(members) if depth <= MAX_DEPTH => members,
            _ => return json!({}),
        };
        let is_tuple = members.get("items").is_some_and(Value::is_array);
        let mut object = Map::with_capacity(members.len());
        for (name, value) in members {
            let inner = |it: &Value| self.schema(it, depth + 1);
            let translated = match (name.as_str(), value) {
                ("properties", Value::Object(map)) => map
                    .iter()
                    .map(|(key, it)| (self.renames.to_declared(key).to_owned(), inner(it)))
                    .collect(),
                ("patternProperties", Value::Object(map)) => map
                    .iter()
                    .filter(|(pattern, _)| is_regex(pattern))
                    .map(|(pattern, it)| (pattern.clone(), inner(it)))
                    .collect(),
                ("$defs" | "definitions", Value::Object(map)) => {
                    let defs = map.iter().map(|(name, it)| (name.clone(), inner(it)));
                    let all = object.entry("$defs").or_insert_with(|| json!({}));
                    if let Value::Object(all) = all {
                        all.extend(defs);
                    }
                    continue;
                }
                ("items", Value::Array(list)) => {
                    let list = list.iter().map(inner).collect();
                    let rest = members.get("additionalItems").map_or(json!({}), inner);
                    object.insert("prefixItems".to_owned(), Value::Array(list));
                    object.insert("items".to_owned(), rest);
                    continue;
                }
                ("prefixItems", _) if is_tuple => continue,
                ("required", Value::Array(keys)) => {
                    let declared = |key: &str| json!(self.renames.to_declared(key));
                    let keys = keys
                        .iter()
                        .map(|it| it.as_str().map_or(it.clone(), declared));
                    keys.collect()
                }
                ("dependentRequired", Value::Object(map)) if self.renames.0.is_empty() => {
                    Value::Object(map.clone())
                }
                ("dependentRequired", _) => continue,
                // In draft 4, a boolean excludes the bound itself.
                ("minimum" | "maximum", bound) if is_excluded(name, members) => {
                    object.insert(exclusive(name).to_owned(), bound.clone());
                    continue;
                }
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => continue,
                ("pattern", Value::String(pattern)) if !is_regex(pattern) => continue,
                ("$ref", Value::String(place)) => match self.place(place) {
                    Some(place) => json!(place),
                    None => continue,
                },
                ("enum", Value::Array(values)) if values.is_empty() || values.len() > MAX_ENUM => {
                    continue;
                }
                (name, Value::Array(list)) if LISTS.contains(&name) => {
                    if list.is_empty() {
                        continue;
                    }
                    list.iter().map(inner).collect()
                }
                (name, Value::Object(map)) if MAPS.contains(&name) => map
                    .iter()
                    .map(|(name, it)| (name.clone(), inner(it)))
                    .collect(),
                (name, Value::Object(_) | Value::Bool(_)) if SCHEMAS.contains(&name) => {
                    inner(value)
                }
                (name, _) if DROPPED.contains(&name) => continue,
                _ => value.clone(),
            };
            object.insert(name.clone(), translated);
        }
        // "array schema missing items". Source: OpenAI's error, anomalyco/opencode 3140, 2025-10.
        if members.get("type").is_some_and(|it| it == "array") {
            object.entry("items").or_insert_with(|| json!({}));
        }
        Value::Object(object)
    }

    /// The place of a reference in the translation, if it is one.
    fn place(&self, place: &str) -> Option<String> {
        let pointer = place.strip_prefix('#')?;
        self.root.pointer(pointer)?;
        let is_moved = |part: &str| self.renames.to_declared(part) != part;
        if pointer.split('/').any(is_moved) || pointer.contains("/items/") {
            return None;
        }
        Some(place.replacen("#/definitions/", "#/$defs/", 1))
    }
}

fn exclusive(bound: &str) -> &'static str {
    if bound == "minimum" {
        "exclusiveMinimum"
    } else {
        "exclusiveMaximum"
    }
}

fn is_excluded(bound: &str, members: &Map<String, Value>) -> bool {
    members.get(exclusive(bound)) == Some(&Value::Bool(true))
}

/// True if vendors can read a pattern.
fn is_regex(pattern: &str) -> bool {
    let refers = |it: &[u8]| it[0] == b'\\' && (b'1'..=b'9').contains(&it[1]);
    !NO_REGEX.iter().any(|it| pattern.contains(it)) && !pattern.as_bytes().windows(2).any(refers)
}

#[cfg(test)]
mod tests {
    use adjutant_llm::CallId;

    use super::*;

    fn translated(schema: &Value) -> Cow<'_, Value> {
        portable(schema, schema)
    }

    fn in_object(inner: Value) -> Value {
        json!({"type": "object", "properties": {"p": inner}})
    }

    #[test]
    fn portable_translates_or_drops_what_vendors_refuse() {
        let number = || json!({"type": "number"});
        let many: Vec<_> = (0..=MAX_ENUM).collect();
        let table = [
            (
                json!({"type": "array", "items": [number(), number()], "minItems": 2}),
                json!({"type": "array", "prefixItems": [number(), number()], "items": {}, "minItems": 2}),
            ),
            (
                json!({"type": "array", "items": [number()], "additionalItems": false}),
                json!({"type": "array", "prefixItems": [number()], "items": false}),
            ),
            (
                json!({"type": "array", "items": number(), "additionalItems": false}),
                json!({"type": "array", "items": number()}),
            ),
            (
                json!({"type": "array"}),
                json!({"type": "array", "items": {}}),
            ),
            (
                json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false}),
                json!({"type": "number", "exclusiveMinimum": 1, "maximum": 2}),
            ),
            (
                json!({"type": "number", "exclusiveMinimum": 1}),
                json!({"type": "number", "exclusiveMinimum": 1}),
            ),
            (
                json!({"type": "string", "pattern": "^(?!x).*$"}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "string", "pattern": "(a)\\1"}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "string", "pattern": "^(?:x|y)+$"}),
                json!({"type": "string", "pattern": "^(?:x|y)+$"}),
            ),
            (
                json!({"type": "object", "patternProperties": {"^(?=x)": {}, "^y": number()}}),
                json!({"type": "object", "patternProperties": {"^y": number()}}),
            ),
            (
                json!({"$ref": "#/definitions/none", "title": "t"}),
                json!({"title": "t"}),
            ),
            (json!({"$ref": "https://a.example/s.json"}), json!({})),
            (json!({"enum": many}), json!({})),
            (json!({"enum": []}), json!({})),
            (json!({"anyOf": [], "const": 1}), json!({"const": 1})),
            (
                json!({"anyOf": [{"items": [true]}, {"not": {"pattern": "(?=x)"}}]}),
                json!({"anyOf": [{"prefixItems": [true], "items": {}}, {"not": {}}]}),
            ),
        ];
        for (schema, expect) in table {
            assert_eq!(
                *translated(&in_object(schema.clone())),
                in_object(expect),
                "{schema}"
            );
        }
        let tree = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"n": {"properties": {"next": {"$ref": "#/definitions/n"}}}},
            "$defs": {"m": {}},
            "properties": {"a": {"$ref": "#/definitions/n"}, "b": {"$ref": "#/$defs/m"}, "c": {"$ref": "#"}},
        });
        let expect = json!({
            "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}, "m": {}},
            "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/m"}, "c": {"$ref": "#"}},
        });
        assert_eq!(*translated(&tree), expect);
        let deep = (0..200).fold(json!({}), |inner, _| in_object(inner));
        assert!(translated(&deep).to_string().len() < deep.to_string().len());
    }

    #[test]
    fn keys_are_renamed_and_restored_when_vendors_refuse_them() {
        let long = "k".repeat(70);
        let schema = json!({
            "type": "object",
            "properties": {
                "$filter": {"type": "string"}, "_filter": {"type": "string"}, "a b": {"type": "string"}, "é": {}, "": {},
                &long: {"type": "array", "items": {"type": "object", "properties": {"x<": {}, "ok": {}}, "required": ["x<"]}},
            },
            "required": ["$filter", "_filter"],
        });
        let declared = translated(&schema);
        let keys: Vec<_> = declared["properties"]
            .as_object()
            .expect("a map")
            .keys()
            .collect();
        assert_eq!(
            keys,
            ["_filter_2", "_filter", "a_b", "_", "_2", &"k".repeat(56)]
        );
        assert_eq!(declared["required"], json!(["_filter_2", "_filter"]));
        assert_eq!(
            declared["properties"]["k".repeat(56)]["items"]["required"],
            json!(["x_"])
        );
        let tool = ToolDecl {
            name: "odata".into(),
            description: "".into(),
            schema: schema.into(),
        };
        let id = CallId {
            turn: 1,
            attempt: 0,
            block: 0,
        };
        let args = json!({"_filter_2": "a", "_filter": "b", "k".repeat(56): [{"x_": 1, "ok": 2}]})
            .to_string();
        let tools = [tool];
        let restored = restore_keys(&Call::new(id, "odata", args), &tools);
        let expect = json!({"$filter": "a", "_filter": "b", &long: [{"x<": 1, "ok": 2}]});
        assert_eq!(restored.as_deref(), Some(&*expect.to_string()));
        let other = Call::new(id, "odata", "x");
        assert_eq!(restore_keys(&other, &tools), None);
    }
}
