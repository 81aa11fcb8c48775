//! The schema for a model: named, always an object, compiled.

use std::sync::Arc;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{Error, ErrorKind, Format, Schema, Violation};

/// The largest number of characters in the name of a format.
const MAX_NAME: usize = 64;
/// The one field of a wrapping object.
const FIELD: &str = "value";

/// A compiled format with an object schema.
#[derive(Debug)]
pub(super) struct Form {
    /// The original schema.
    given: Arc<Value>,
    format: Format,
    schema: Schema,
    wrapped: bool,
}

impl Form {
    pub(super) fn compile(format: Format) -> Result<Self, Error> {
        let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        if format.name.is_empty() || format.name.len() > MAX_NAME || !format.name.chars().all(fits)
        {
            let name: String = format.name.chars().take(MAX_NAME).collect();
            let message =
                format!("not a name of 1 to {MAX_NAME} letters, digits, _ and -: {name:?}");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Before it is wrapped, so that errors refer to the original schema.
        let given = Arc::clone(&format.schema);
        let schema = Schema::compile(Arc::clone(&given))?;
        let plain = |it: &&str| format.schema.get(*it).is_none();
        let is_plain = ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"]
            .iter()
            .all(plain);
        if is_plain && format.schema.get("type").and_then(Value::as_str) == Some("object") {
            return Ok(Self {
                given,
                format,
                schema,
                wrapped: false,
            });
        }
        let schema = Arc::new(wrap(&format.schema));
        let format = Format {
            name: format.name,
            schema: Arc::clone(&schema),
        };
        Ok(Self {
            given,
            format,
            schema: Schema::compile(schema)?,
            wrapped: true,
        })
    }

    pub(super) fn format(&self) -> &Format {
        &self.format
    }

    /// The name and the original schema.
    pub(super) fn original_format(&self) -> Format {
        Format {
            name: Arc::clone(&self.format.name),
            schema: Arc::clone(&self.given),
        }
    }

    /// Returns the part of a partial answer that corresponds to the requested value.
    pub(super) fn inner<'a>(&self, answer: &'a Value) -> Option<&'a Value> {
        if self.wrapped && answer.is_object() {
            answer.get(FIELD)
        } else {
            Some(answer)
        }
    }

    /// Validates an answer and unwraps it; an answer without the wrapper is accepted too.
    pub(super) fn accept(&self, answer: Value) -> Result<Value, Vec<Violation>> {
        let Err(wrong) = self.schema.validate(&answer) else {
            return Ok(self.unwrap(answer));
        };
        if self.wrapped {
            let wrapped = json!({ FIELD: answer });
            if self.schema.validate(&wrapped).is_ok() {
                return Ok(self.unwrap(wrapped));
            }
        }
        Err(wrong)
    }

    fn unwrap(&self, mut answer: Value) -> Value {
        if self.wrapped {
            answer.get_mut(FIELD).map(Value::take).unwrap_or_default()
        } else {
            answer
        }
    }
}

/// The schema and the name of a Rust type.
pub(super) fn format_of<T: JsonSchema>() -> Format {
    let settings = SchemaSettings::draft2020_12().with(|it| it.meta_schema = None);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("title");
        if root.get("type").and_then(Value::as_str) == Some("object") {
            // Some providers refuse an object schema without properties.
            root.entry("properties")
                .or_insert_with(|| Value::Object(Map::new()));
        }
    }
    let fits = |it: char| {
        if it.is_ascii_alphanumeric() || it == '-' {
            it
        } else {
            '_'
        }
    };
    let name: String = T::schema_name().chars().map(fits).take(MAX_NAME).collect();
    Format::new(
        if name.is_empty() {
            FIELD.to_owned()
        } else {
            name
        },
        schema,
    )
}

/// An object with a single field with this schema; definitions that are referred to stay at the root.
fn wrap(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut outer = Map::new();
    outer.insert("type".into(), "object".into());
    let mut definitions = Vec::new();
    if let Some(inner) = inner.as_object_mut() {
        for key in ["$schema", "$defs", "definitions"] {
            definitions.extend(inner.shift_remove(key).map(|value| (key.to_owned(), value)));
        }
    }
    let place = |mut value: Value| {
        redirect(&mut value);
        value
    };
    outer.insert("properties".into(), json!({ FIELD: place(inner) }));
    outer.insert("required".into(), json!([FIELD]));
    outer.insert("additionalProperties".into(), false.into());
    outer.extend(
        definitions
            .into_iter()
            .map(|(key, value)| (key, place(value))),
    );
    Value::Object(outer)
}

/// Points references to the root to where the root has gone.
fn redirect(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(to) if key == "$ref" && to == "#" => {
                        *to = format!("#/properties/{FIELD}")
                    }
                    value => redirect(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redirect),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
