//! Walks a value along a schema and converts scalars to the type of the schema. Values that fit stay unchanged.

use adjutant_llm::{Schema, json};
use serde_json::{Map, Value};

use super::{
    read::fits_below,
    scalar::{convert, is, names, types, whole},
};
use crate::Bound;

/// The largest number of steps of one coercion, validated values included; the rest then stays as it is.
const MAX_STEPS: usize = 500_000;
/// The largest number of branches that are tried within each other; deeper, only a part that fits as it is gets
/// followed.
const MAX_TRIALS: usize = 6;
/// The largest number of schemas that are entered within each other, references included.
const MAX_NESTED: usize = 512;

/// Coerces a value in place; returns whether it was changed.
pub(super) fn coerce(bound: &Bound, root: &Value, value: &mut Value) -> bool {
    let mut walk = Walk {
        bound,
        root,
        steps: MAX_STEPS,
        nested: 0,
        trials: 0,
        level: 0,
        changed: false,
    };
    walk.visit(
        value,
        &LocatedSchema {
            schema: root,
            pointer: String::new(),
        },
    );
    walk.changed
}

struct Walk<'a> {
    bound: &'a Bound,
    root: &'a Value,
    steps: usize,
    nested: usize,
    trials: usize,
    level: usize,
    changed: bool,
}

/// A schema and its place in the root schema.
struct LocatedSchema<'a> {
    schema: &'a Value,
    pointer: String,
}

impl<'a> LocatedSchema<'a> {
    fn key(&self, key: &str) -> Option<LocatedSchema<'a>> {
        let schema = self.schema.get(key)?;
        let token = key.replace('~', "~0").replace('/', "~1");
        Some(LocatedSchema {
            schema,
            pointer: format!("{}/{token}", self.pointer),
        })
    }

    fn list(&self, key: &str) -> Vec<LocatedSchema<'a>> {
        let Some(list) = self.schema.get(key).and_then(Value::as_array) else {
            return Vec::new();
        };
        let place = |(n, schema)| LocatedSchema {
            schema,
            pointer: format!("{}/{key}/{n}", self.pointer),
        };
        list.iter().enumerate().map(place).collect()
    }
}

impl<'a> Walk<'a> {
    /// The order is: reference, `allOf`, `anyOf`, `oneOf`, own type, then the inner values.
    fn visit(&mut self, value: &mut Value, place: &LocatedSchema<'a>) {
        if !place.schema.is_object() || self.nested == MAX_NESTED || !self.step(1) {
            return;
        }
        self.nested += 1;
        if let Some(target) = self.target(place) {
            self.visit(value, &target);
        }
        for part in place.list("allOf") {
            self.visit(value, &part);
        }
        for keyword in ["anyOf", "oneOf"] {
            self.branch(value, &place.list(keyword));
        }
        self.own_type(value, place.schema);
        self.level += 1;
        match value {
            Value::Object(map) => self.properties(map, place),
            Value::Array(items) => self.items(items, place),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.level -= 1;
        self.nested -= 1;
    }

    fn step(&mut self, count: usize) -> bool {
        self.steps = self.steps.saturating_sub(count);
        self.steps > 0
    }

    /// Returns the schema that a reference within the schema points at.
    fn target(&self, place: &LocatedSchema<'a>) -> Option<LocatedSchema<'a>> {
        let pointer = place.schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        Some(LocatedSchema {
            schema: self.root.pointer(pointer)?,
            pointer: pointer.to_owned(),
        })
    }

    /// Follows the branch that the value fits, or else the first one that it can be coerced to.
    fn branch(&mut self, value: &mut Value, branches: &[LocatedSchema<'a>]) {
        if branches.is_empty() {
            return;
        }
        for place in branches {
            if self.fits(value, place) {
                return self.visit(value, place);
            }
        }
        if self.trials == MAX_TRIALS {
            return;
        }
        self.trials += 1;
        let fitting = branches.iter().find_map(|place| self.trial(value, place));
        self.trials -= 1;
        if let Some(fitting) = fitting {
            *value = fitting;
            self.changed = true;
        }
    }

    /// The value made to fit a branch, if that can be done.
    fn trial(&mut self, value: &Value, place: &LocatedSchema<'a>) -> Option<Value> {
        let mut trial = value.clone();
        let before = std::mem::replace(&mut self.changed, false);
        self.visit(&mut trial, place);
        let changed = std::mem::replace(&mut self.changed, before);
        (changed && self.fits(&trial, place)).then_some(trial)
    }

    fn fits(&mut self, value: &Value, place: &LocatedSchema<'a>) -> bool {
        if !self.step(size(value)) {
            return false;
        }
        let schema: Option<Schema> = self.bound.part(&place.pointer);
        schema.is_some_and(|schema| schema.validate(value).is_ok())
    }

    fn own_type(&mut self, value: &mut Value, schema: &Value) {
        let fits = types(schema).any(|name| is(value, name));
        let other = if fits {
            let integers_only = names(schema, "integer") && !names(schema, "number");
            if integers_only { whole(value) } else { None }
        } else {
            let only = types(schema).count() == 1;
            types(schema)
                .filter(|name| only || *name != "null")
                .find_map(|name| self.convert_value(value, name))
        };
        if let Some(other) = other {
            *value = other;
            self.changed = true;
        }
    }

    /// The value as another type: by the table, or read from text if it is a whole array or object.
    fn convert_value(&self, value: &Value, name: &str) -> Option<Value> {
        match (name, value) {
            ("array" | "object", Value::String(text)) => {
                let read = json::from_str(text).ok()?;
                (is(&read, name) && fits_below(&read, self.level)).then_some(read)
            }
            _ => convert(value, name),
        }
    }

    fn properties(&mut self, map: &mut Map<String, Value>, place: &LocatedSchema<'a>) {
        let properties = place.key("properties");
        let others = if place.schema.get("patternProperties").is_none() {
            place.key("additionalProperties")
        } else {
            None
        };
        let mut dropped = Vec::new();
        for (key, value) in map.iter_mut() {
            let own = properties.as_ref().and_then(|it| it.key(key));
            if let Some(own) = &own
                && value.is_null()
                && !requires(place.schema, key)
                && !self.allows_null(own)
            {
                dropped.push(key.clone());
            } else if let Some(schema) = own.as_ref().or(others.as_ref()) {
                self.visit(value, schema);
            }
        }
        for key in dropped {
            map.shift_remove(&key);
            self.changed = true;
        }
    }

    fn items(&mut self, items: &mut [Value], place: &LocatedSchema<'a>) {
        let mut first = place.list("prefixItems");
        let mut rest = place.key("items");
        // Before draft 2020-12 a tuple was a list under `items`.
        if rest.as_ref().is_some_and(|it| it.schema.is_array()) {
            first = place.list("items");
            rest = place.key("additionalItems");
        }
        for (n, item) in items.iter_mut().enumerate() {
            if let Some(place) = first.get(n).or(rest.as_ref()) {
                self.visit(item, place);
            }
        }
    }

    fn allows_null(&mut self, place: &LocatedSchema<'a>) -> bool {
        if !place.schema.is_object() || self.nested == MAX_NESTED || !self.step(1) {
            return place.schema.as_bool().unwrap_or(true);
        }
        self.nested += 1;
        let allows = self.says_null(place);
        self.nested -= 1;
        allows
    }

    fn says_null(&mut self, place: &LocatedSchema<'a>) -> bool {
        let schema = place.schema;
        let listed = schema
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|it| it.contains(&Value::Null));
        let typed = schema.get("type").is_none() || names(schema, "null");
        if !listed || !typed || schema.get("const").is_some_and(|it| !it.is_null()) {
            return false;
        }
        if let Some(target) = self.target(place)
            && !self.allows_null(&target)
        {
            return false;
        }
        if !place.list("allOf").iter().all(|it| self.allows_null(it)) {
            return false;
        }
        ["anyOf", "oneOf"].into_iter().all(|keyword| {
            let branches = place.list(keyword);
            branches.is_empty() || branches.iter().any(|it| self.allows_null(it))
        })
    }
}

fn requires(schema: &Value, key: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|it| it.iter().any(|name| name == key))
}

/// Returns the number of values that a value holds, itself included.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
