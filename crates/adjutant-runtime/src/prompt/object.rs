//! An object that fits a schema: one question to the model, without a session and without tools.

use std::sync::Arc;

use adjutant_llm::{Format, Model, Options, Request, Schema, Shape};
use serde_json::Value;

use super::{ObjectRequest, told};
use crate::{Error, ErrorKind};

/// The name of an object, unless a request sets another.
const NAME: &str = "answer";

/// Asks the model.
pub(super) async fn object(model: &dyn Model, options: Options, request: ObjectRequest) -> Result<Value, Error> {
    let shape = shape(request.schema, request.schema_name, request.schema_description)?;
    let asked = Request::new().user(request.prompt.to_string()).options(options);
    shape.ask(model, asked).await.map(|shaped| shaped.value).map_err(told::of_object)
}

fn shape(mut schema: Value, name: Option<Arc<str>>, description: Option<Arc<str>>) -> Result<Shape<Value>, Error> {
    let invalid = |message: String| Error::new(ErrorKind::Invalid, message);
    if schema.is_null() {
        return Err(invalid("a schema is required".into()));
    }
    let Some(fields) = schema.as_object_mut() else {
        return Err(invalid("the schema must be a JSON object".into()));
    };
    if !fields.get("type").is_some_and(|it| it.is_string() || it.is_array()) {
        return Err(invalid("the schema must declare a `type` at its top".into()));
    }
    if let Some(description) = description {
        fields.entry("description").or_insert_with(|| Value::String(description.to_string()));
    }
    let schema = Arc::new(schema);
    let wrong = |error: adjutant_llm::Error| invalid(format!("the schema cannot be used: {error}"));
    Schema::compile(Arc::clone(&schema)).map_err(wrong)?;
    Shape::of(Format::new(name.unwrap_or_else(|| NAME.into()), schema)).map_err(wrong)
}
