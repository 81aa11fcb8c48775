//! A compiled JSON schema. Our own type, so that the validator behind it can change.

mod pattern;
mod plain;

use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use boon::{CompileError, Compiler, Draft, SchemaIndex, Schemas};
use serde_json::Value;

use crate::{Error, ErrorKind};
use plain::Plain;

/// The assumed address of the schema; it is never fetched.
const PLACE: &str = "schema:///root.json";
/// The largest depth of a value if its schema refers to itself from alternatives.
///
/// The validator tries every alternative at every level, so the time for such a value doubles or worse with each.
const MAX_BRANCHING_DEPTH: usize = 12;

/// The drafts by which a schema is read that does not fit the draft it names, or 2020-12 if it names none.
const OLDER: [Draft; 2] = [Draft::V7, Draft::V4];

/// A compiled JSON schema; cheap to clone. It is read by the draft that it names, else by 2020-12, else by an older one.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Compiled>,
}

struct Compiled {
    source: Arc<Value>,
    schemas: Schemas,
    root: SchemaIndex,
    branching: bool,
    plain: Option<Plain>,
}

/// One place where a value does not fit a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Violation {
    /// The place, as a JSON pointer; empty for the whole value.
    pub path: String,
    /// The fault of the value there.
    pub message: String,
}

impl Schema {
    /// Compiles a schema; formats are checked, references outside it are refused.
    ///
    /// # Errors
    /// `Invalid` if it is not a JSON schema, or refers to another document.
    pub fn compile(source: Arc<Value>) -> Result<Self, Error> {
        Self::compile_at(source, PLACE)
    }

    /// Returns the part of this schema at a JSON pointer as a separate schema; references still resolve in the whole
    /// schema.
    ///
    /// # Errors
    /// `Invalid` if there is no schema at that location.
    pub fn part(&self, pointer: &str) -> Result<Self, Error> {
        let mut place = format!("{PLACE}#");
        for byte in pointer.bytes() {
            match byte {
                b'/' | b'~' | b'-' | b'_' | b'.' | b'$' => place.push(char::from(byte)),
                byte if byte.is_ascii_alphanumeric() => place.push(char::from(byte)),
                byte => place.push_str(&format!("%{byte:02X}")),
            }
        }
        Self::compile_at(Arc::clone(&self.inner.source), &place)
    }

    /// The original schema.
    pub fn source(&self) -> &Arc<Value> {
        &self.inner.source
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Every place that does not fit, in the order of the value.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self
            .inner
            .plain
            .as_ref()
            .is_some_and(|plain| plain.fits(value))
        {
            return Ok(());
        }
        if self.inner.branching && is_deeper(value, MAX_BRANCHING_DEPTH) {
            let message = format!(
                "nested deeper than {MAX_BRANCHING_DEPTH} levels, which cannot be checked with this schema"
            );
            return Err(vec![Violation {
                path: String::new(),
                message,
            }]);
        }
        let Err(error) = self.inner.schemas.validate(value, self.inner.root) else {
            return Ok(());
        };
        let mut violations = Vec::new();
        collect(&error, &mut HashSet::new(), &mut violations);
        Err(violations)
    }

    fn compile_at(source: Arc<Value>, place: &str) -> Result<Self, Error> {
        let local = pattern::without_lookahead(&source);
        let local = local.as_ref().unwrap_or(&source);
        let (schemas, root) = build(local.clone(), place, Draft::V2020_12)
            .or_else(|error| build_by_older(local, place).ok_or(error))?;
        let branching =
            holds_key(&source, &["$ref", "$dynamicRef"]) && holds_key(&source, &["anyOf", "oneOf"]);
        let plain = if place == PLACE {
            Plain::from_schema(&source)
        } else {
            None
        };
        Ok(Self {
            inner: Arc::new(Compiled {
                source,
                schemas,
                root,
                branching,
                plain,
            }),
        })
    }
}

/// Compiles the schema by the draft that it names, or by this one.
fn build(schema: Value, place: &str, draft: Draft) -> Result<(Schemas, SchemaIndex), Error> {
    let invalid = |error: &dyn fmt::Display| {
        Error::new(ErrorKind::Invalid, format!("not a JSON schema: {error}"))
    };
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.set_default_draft(draft);
    compiler.enable_format_assertions();
    compiler.use_loader(Box::new(Closed));
    compiler
        .add_resource(PLACE, schema)
        .map_err(|error| invalid(&error))?;
    // The compiler assumes that every pattern that it can parse can also be built. It treats a too large pattern
    // as a bug, and panics with debug assertions.
    let too_large = || invalid(&"a pattern is too large");
    let compile = || match compiler.compile(place, &mut schemas) {
        Err(CompileError::Bug(_)) => Err(too_large()),
        compiled => compiled.map_err(|error| invalid(&error)),
    };
    let root = catch_unwind(AssertUnwindSafe(compile)).map_err(|_| too_large())??;
    Ok((schemas, root))
}

/// Compiles a schema that does not fit the draft that it names, or 2020-12 if it names none. Many programs write older
/// drafts without `$schema`, or an unknown address in it.
#[cold]
fn build_by_older(schema: &Value, place: &str) -> Option<(Schemas, SchemaIndex)> {
    let mut schema = schema.clone();
    let named = schema.as_object_mut()?.remove("$schema");
    let newest = named.map(|_| Draft::V2020_12);
    let mut drafts = newest.into_iter().chain(OLDER);
    drafts.find_map(|draft| build(schema.clone(), place, draft).ok())
}

/// True if an object with one of these keys is somewhere in the value.
fn holds_key(value: &Value, keys: &[&str]) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| keys.contains(&key.as_str()) || holds_key(value, keys)),
        Value::Array(items) => items.iter().any(|item| holds_key(item, keys)),
        _ => false,
    }
}

/// True if objects and arrays stand in each other more than `levels` deep.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let inner = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Object(map) => map.values().any(inner),
        Value::Array(items) => items.iter().any(inner),
        _ => false,
    }
}

fn collect(
    error: &boon::ValidationError<'_, '_>,
    seen: &mut HashSet<Violation>,
    into: &mut Vec<Violation>,
) {
    if error.causes.is_empty() {
        let violation = Violation {
            path: error.instance_location.to_string(),
            message: error.kind.to_string(),
        };
        if seen.insert(violation.clone()) {
            into.push(violation);
        }
    }
    for cause in &error.causes {
        collect(cause, seen, into);
    }
}

/// Loads nothing: a schema that comes from a server must not make us fetch.
struct Closed;

impl boon::UrlLoader for Closed {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("refers to {url}, which is outside of the schema").into())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.inner.source).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn validate_names_every_path_when_several_fail() {
        let schema = json!({
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"$ref": "#/$defs/n"}, "m": {"type": "string", "format": "email"}},
            "$defs": {"n": {"type": "integer"}}
        });
        let schema = Schema::compile(Arc::new(schema)).expect("a schema");
        assert_eq!(
            schema.validate(&json!({"n": 9_007_199_254_740_993_u64, "m": "a@b.example"})),
            Ok(())
        );
        let violations = schema
            .validate(&json!({"n": "x", "m": "no"}))
            .expect_err("two paths are wrong");
        let paths: Vec<_> = violations.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/n", "/m"]);
    }

    #[test]
    fn part_sees_the_whole_when_it_refers_to_it() {
        let schema = json!({"properties": {"a b/c": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
        let schema = Schema::compile(Arc::new(schema)).expect("a schema");
        let part = schema
            .part("/properties/a b~1c")
            .expect("there is a schema");
        assert_eq!(
            (
                part.validate(&json!(1)),
                part.validate(&json!("x")).is_err()
            ),
            (Ok(()), true)
        );
        assert_eq!(
            schema
                .part("/nowhere")
                .map(|_| ())
                .map_err(|error| error.kind()),
            Err(ErrorKind::Invalid)
        );
    }

    #[test]
    fn compile_reads_older_drafts_when_the_schema_does_not_name_them() {
        let tuple =
            json!({"items": [{"type": "number"}, {"type": "string"}], "additionalItems": false});
        let bound = json!({"minimum": 0, "exclusiveMinimum": true});
        let of = |draft: &str, schema: &Value| {
            let mut schema = schema.clone();
            schema["$schema"] = json!(draft);
            schema
        };
        let table = [
            (tuple.clone(), json!([1, "a"]), json!([1, "a", 2])),
            (bound.clone(), json!(1), json!(0)),
            (
                of("http://json-schema.org/schema#", &tuple),
                json!([1]),
                json!(["a"]),
            ),
            (
                of("https://json-schema.org/draft/2020-12/schema", &tuple),
                json!([1]),
                json!(["a"]),
            ),
            (
                of("http://json-schema.org/draft-07/schema#", &bound),
                json!(1),
                json!(0),
            ),
            (
                of("https://example.com/mine.json", &json!({"type": "string"})),
                json!("a"),
                json!(1),
            ),
        ];
        for (schema, fits, misfits) in table {
            let compiled = Schema::compile(Arc::new(schema.clone())).expect("a schema");
            assert_eq!(compiled.validate(&fits), Ok(()), "{schema}");
            assert!(compiled.validate(&misfits).is_err(), "{schema}");
            assert_eq!(**compiled.source(), schema);
        }
    }

    #[test]
    fn compile_refuses_when_a_pattern_is_too_large() {
        let error = Schema::compile(Arc::new(json!({"pattern": "(a{1,1000}){1,1000}"})))
            .expect_err("it is too large");
        assert_eq!(
            error.to_string(),
            "not a JSON schema: a pattern is too large"
        );
    }

    #[test]
    fn compile_refuses_when_a_reference_points_outside() {
        let schema = json!({"$ref": "https://elsewhere.example/schema.json"});
        let error = Schema::compile(Arc::new(schema)).expect_err("nothing is fetched");
        assert!(error.message().contains("elsewhere.example"), "{error}");
    }

    #[test]
    fn plain_schema_takes_only_what_the_validator_takes() {
        let members = [
            json!({"type": "integer", "format": "uint64", "minimum": 0}),
            json!({"type": "integer"}),
            json!({"type": "string"}),
            json!({"type": "number"}),
            json!({"type": "boolean"}),
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "format": "email"}),
            json!({"type": ["string", "null"]}),
        ];
        let values = [
            json!(7),
            json!(-7),
            json!(u64::MAX),
            json!(1.0),
            json!(1.5),
            json!("x"),
            json!(""),
            json!(true),
        ];
        let values = values
            .into_iter()
            .chain([json!(null), json!([]), json!({})]);
        let values: Vec<_> = values
            .flat_map(|it| {
                [
                    json!({"n": it}),
                    json!({"m": it}),
                    json!({"n": it, "m": 1}),
                    it,
                ]
            })
            .collect();
        for member in &members {
            for more in [
                json!({}),
                json!({"required": ["n"]}),
                json!({"additionalProperties": false}),
            ] {
                let mut schema = json!({"type": "object", "properties": {"n": member}});
                schema
                    .as_object_mut()
                    .expect("an object")
                    .extend(more.as_object().expect("an object").clone());
                let schema = Schema::compile(Arc::new(schema)).expect("a schema");
                for value in &values {
                    let is_valid = schema
                        .inner
                        .schemas
                        .validate(value, schema.inner.root)
                        .is_ok();
                    assert_eq!(
                        schema.validate(value).is_ok(),
                        is_valid,
                        "{schema:?} {value}"
                    );
                }
            }
        }
    }
}
