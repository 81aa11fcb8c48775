//! The rules of OpenAI for a schema that is held to strictly, on both of its wires, and for names.
//!
//! Source: OpenAI guide "Structured model outputs", section "Supported schemas", August 2026.

use serde_json::Value;

use crate::{node::Node, refusal::Refusal};

/// The largest length of the name of a tool or a format.
pub(crate) const MAX_NAME: usize = 64;

/// Checks the schema of a function or a format (`what`): `name` is its name, `place` its place in the body.
pub(crate) fn check(schema: &Value, what: &str, name: &str, place: &str) -> Result<(), Refusal> {
    let refuse = |why: String| {
        let code = if what == "function" {
            "invalid_function_parameters"
        } else {
            "invalid_json_schema"
        };
        Refusal::invalid(format!("Invalid schema for {what} '{name}': {why}"))
            .param(place)
            .code(code)
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("None");
        return Err(refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
        )));
    }
    part(schema, &mut Vec::new()).map_err(refuse)
}

fn part(schema: &Value, path: &mut Vec<String>) -> Result<(), String> {
    let context = |path: &[String]| {
        let steps: Vec<String> = path.iter().map(|step| format!("'{step}'")).collect();
        format!("In context=({})", steps.join(", "))
    };
    let is_object = schema.get("type").is_some_and(|kind| {
        kind == "object"
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
    });
    if is_object && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(format!(
            "{}, 'additionalProperties' is required to be supplied and to be false.",
            context(path)
        ));
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if let Some(missing) = properties
            .keys()
            .find(|key| !required.iter().any(|it| it == key.as_str()))
        {
            return Err(format!(
                "{}, 'required' is required to be supplied and to be an array including every key in properties. \
                 Missing '{missing}'.",
                context(path)
            ));
        }
    }
    for (keyword, below) in schema.as_object().into_iter().flatten() {
        path.push(keyword.clone());
        match (keyword.as_str(), below) {
            ("properties" | "$defs" | "definitions", Value::Object(parts)) => {
                for (name, below) in parts {
                    path.push(name.clone());
                    part(below, path)?;
                    path.pop();
                }
            }
            ("anyOf", Value::Array(parts)) => {
                parts.iter().try_for_each(|below| part(below, path))?
            }
            ("items", below) => part(below, path)?,
            ("oneOf" | "allOf" | "not" | "if" | "dependentRequired", _) => {
                path.pop();
                return Err(format!("{}, '{keyword}' is not permitted.", context(path)));
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

/// A declared function: its name, its description, and its schema.
pub(crate) fn function<'a>(node: &Node<'a>) -> Result<(&'a str, &'a str, Value), Refusal> {
    let name = node.need("name")?.word(MAX_NAME)?;
    let place = format!("{}.parameters", node.path);
    let schema = node.need("parameters")?;
    let kind = schema
        .object()?
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("None");
    if kind != "object" {
        return Err(Refusal::invalid(format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \
             \"{kind}\"'."
        ))
        .param(place)
        .code("invalid_function_parameters"));
    }
    if node
        .field("strict")
        .is_some_and(|strict| strict.value == true)
    {
        check(schema.value, "function", name, &place)?;
    }
    let description = node
        .field("description")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or_default();
    Ok((name, description, schema.value.clone()))
}
