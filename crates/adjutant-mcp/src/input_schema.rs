//! Schemas of tools as servers write them. Parts that cannot be read are removed, so that the tool can be offered. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::Schema;
use serde_json::{Value, json};

/// Members whose values are maps of schemas.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Members whose values are lists of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Members whose values are schemas.
const SCHEMAS: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// The maximum number of removed parts that a warning names.
const MAX_NAMED: usize = 3;

/// A schema of an object that can be compiled, and the places of the parts that were removed from it.
pub(crate) struct InputSchema<'a> {
    pub(crate) schema: Cow<'a, Value>,
    removed: Vec<String>,
}

impl<'a> InputSchema<'a> {
    /// Removes the parts that cannot be read. The caller limits the depth of the schema.
    ///
    /// # Errors
    /// The reason, if it is not the schema of an object.
    pub(crate) fn new(schema: &'a Value) -> Result<Self, String> {
        let mut schema = Cow::Borrowed(schema);
        match schema.get("type") {
            Some(Value::String(name)) if name == "object" => {}
            // The protocol demands the type; servers that are written by hand leave it out.
            None | Some(Value::Null) if schema.is_object() => {
                schema.to_mut()["type"] = json!("object");
            }
            Some(_) | None => return Err("its schema is not that of an object".to_owned()),
        }
        let mut removed = Vec::new();
        let is_whole = leads_somewhere(&schema, &schema)
            && Schema::compile(Arc::new(schema.as_ref().clone())).is_ok();
        if !is_whole {
            let root = schema.as_ref().clone();
            let mut remover = Remover {
                root: &root,
                removed: Vec::new(),
            };
            remover.visit(schema.to_mut(), "");
            removed = remover.removed;
        }
        Ok(Self { schema, removed })
    }

    /// Returns the warning about removed parts, if there are any.
    pub(crate) fn warning(&self, tool: &str) -> Option<String> {
        let named = self.removed.iter().take(MAX_NAMED).cloned();
        let mut parts = named.collect::<Vec<_>>().join(", ");
        let more = self.removed.len().checked_sub(MAX_NAMED + 1);
        if let Some(more) = more {
            parts += &format!(" and {} more", more + 1);
        }
        (!self.removed.is_empty())
            .then(|| format!("its tool {tool:?} is offered without parts of its schema that cannot be read: {parts}"))
    }
}

/// True if every reference leads to a place of the schema.
fn leads_somewhere(value: &Value, root: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(name, member)| match member {
            Value::String(to) if name == "$ref" => find(root, to).is_some(),
            member => leads_somewhere(member, root),
        }),
        Value::Array(items) => items.iter().all(|it| leads_somewhere(it, root)),
        _ => true,
    }
}

fn find<'a>(root: &'a Value, to: &str) -> Option<&'a Value> {
    root.pointer(to.strip_prefix('#')?)
}

struct Remover<'a> {
    root: &'a Value,
    removed: Vec<String>,
}

impl Remover<'_> {
    fn visit(&mut self, schema: &mut Value, place: &str) {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return,
            other => {
                *other = json!({});
                self.removed.push(place.to_owned());
                return;
            }
        };
        members.retain(|name, value| {
            let place = format!("{place}/{name}");
            let is_read = match (name.as_str(), &mut *value) {
                (name, Value::Object(map)) if MAPS.contains(&name) => {
                    map.retain(|key, it| {
                        let place = format!("{place}/{key}");
                        if name == "patternProperties" && !is_valid("pattern", &json!(key)) {
                            self.removed.push(place);
                            return false;
                        }
                        self.visit(it, &place);
                        true
                    });
                    true
                }
                (name, Value::Array(list))
                    if name == "items" || LISTS.contains(&name) && !list.is_empty() =>
                {
                    for (number, it) in list.iter_mut().enumerate() {
                        self.visit(it, &format!("{place}/{number}"));
                    }
                    true
                }
                (name, Value::Object(_) | Value::Bool(_)) if SCHEMAS.contains(&name) => {
                    self.visit(value, &place);
                    true
                }
                ("$ref", to) => to.as_str().is_some_and(|to| find(self.root, to).is_some()),
                ("$dynamicRef" | "$recursiveRef", _) => false,
                (name, value) => is_valid(name, value),
            };
            if !is_read {
                self.removed.push(place);
            }
            is_read
        });
    }
}

/// True if a member of a schema can be read.
fn is_valid(name: &str, value: &Value) -> bool {
    // A schema that names an unknown draft is read by the newest draft that it fits.
    name == "$schema" || Schema::compile(Arc::new(json!({ name: value }))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_removed_when_they_are_no_schema() {
        let object = |inner: Value| json!({"type": "object", "properties": {"p": inner}});
        let table = [
            (
                json!({"type": "any", "title": "t"}),
                json!({"title": "t"}),
                "/properties/p/type",
            ),
            (
                json!({"type": "string", "pattern": "(?<=a)b"}),
                json!({"type": "string"}),
                "/properties/p/pattern",
            ),
            (
                json!({"$ref": "#/$defs/none"}),
                json!({}),
                "/properties/p/$ref",
            ),
            (
                json!({"$ref": "https://a.example/s"}),
                json!({}),
                "/properties/p/$ref",
            ),
            (
                json!({"type": "string", "required": true}),
                json!({"type": "string"}),
                "/properties/p/required",
            ),
            (json!("text"), json!({}), "/properties/p"),
            (json!({"anyOf": []}), json!({}), "/properties/p/anyOf"),
            (
                json!({"items": [{"enum": 1}, {"type": "string"}]}),
                json!({"items": [{}, {"type": "string"}]}),
                "/properties/p/items/0/enum",
            ),
            (
                json!({"patternProperties": {"(?<=a)": {}, "b": {"minimum": "x"}}}),
                json!({"patternProperties": {"b": {}}}),
                "/properties/p/patternProperties/(?<=a), /properties/p/patternProperties/b/minimum",
            ),
        ];
        for (schema, expect, removed) in table {
            let given = object(schema);
            let read = InputSchema::new(&given).expect("an object");
            assert_eq!(*read.schema, object(expect), "{given}");
            let warning = read.warning("t").expect("a warning");
            assert!(warning.ends_with(&format!(": {removed}")), "{warning}");
            Schema::compile(Arc::new(read.schema.into_owned())).expect("a schema");
        }
    }

    #[test]
    fn schema_stays_when_it_can_be_read() {
        for given in [
            json!({"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "number"}]}}}),
            json!({"type": "object", "properties": {"a": {"pattern": "^(?!x)y"}, "b": {"$ref": "#"}}}),
        ] {
            let read = InputSchema::new(&given).expect("an object");
            assert_eq!((&*read.schema, read.warning("t")), (&given, None));
        }
        let bare = json!({"properties": {}});
        let read = InputSchema::new(&bare).expect("an object");
        assert_eq!(*read.schema, json!({"properties": {}, "type": "object"}));
        assert!(InputSchema::new(&json!({"type": "string"})).is_err());
    }
}
