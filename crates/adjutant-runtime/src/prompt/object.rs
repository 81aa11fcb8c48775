//! Objects that match a schema: the result of an agent in a session, or of a single model request.

use std::sync::Arc;

use adjutant_agent::{Output, RunResult};
use adjutant_llm::{Format, Model, Options, Request, Schema, Shape};
use serde_json::Value;

use super::{ObjectRequest, told};
use crate::{Error, ErrorKind};

/// The default name of an object.
const NAME: &str = "answer";

/// Sends a model request.
pub(super) async fn object(
    model: &dyn Model,
    options: Options,
    request: ObjectRequest,
) -> Result<Value, Error> {
    let format = format(
        request.schema,
        request.schema_name,
        request.schema_description,
    )?;
    let shape = Shape::<Value>::from_format(format).map_err(unusable)?;
    let asked = Request::new()
        .user(request.prompt.to_string())
        .options(options);
    shape
        .ask(model, asked)
        .await
        .map(|shaped| shaped.value)
        .map_err(told::object_error)
}

/// Returns the output settings of a run.
pub(super) fn output(request: ObjectRequest) -> Result<Output<Value>, Error> {
    let format = format(
        request.schema,
        request.schema_name,
        request.schema_description,
    )?;
    Output::from_format(format).map_err(told::agent_error)
}

/// Returns the object from a run.
pub(super) fn object_from_result(result: &Arc<RunResult>) -> Result<Value, Error> {
    told::check_outcome(&result.outcome)?;
    if let Some(object) = &result.output {
        return Ok(Value::clone(object));
    }
    adjutant_agent::Error::check_result(RunResult::clone(result)).map_err(told::agent_error)?;
    Err(Error::new(
        ErrorKind::Agent,
        format!("no object: the run is {}", result.outcome.kind()),
    ))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn unusable(error: adjutant_llm::Error) -> Error {
    invalid(format!("the schema cannot be used: {error}"))
}

fn format(
    mut schema: Value,
    name: Option<Arc<str>>,
    description: Option<Arc<str>>,
) -> Result<Format, Error> {
    if schema.is_null() {
        return Err(invalid("a schema is required".into()));
    }
    let Some(fields) = schema.as_object_mut() else {
        return Err(invalid("the schema must be a JSON object".into()));
    };
    if !fields
        .get("type")
        .is_some_and(|it| it.is_string() || it.is_array())
    {
        return Err(invalid(
            "the schema must declare a `type` at its top".into(),
        ));
    }
    if let Some(description) = description {
        fields
            .entry("description")
            .or_insert_with(|| Value::String(description.to_string()));
    }
    let schema = Arc::new(schema);
    Schema::compile(Arc::clone(&schema)).map_err(unusable)?;
    Ok(Format::new(name.unwrap_or_else(|| NAME.into()), schema))
}
