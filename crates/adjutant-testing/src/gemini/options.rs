//! Reads the options and the functions of the Gemini wire.

use adjutant_llm::{Effort, Format, Options, ToolChoice, ToolDecl};
use serde_json::{Value, json};

use crate::{node::Node, refusal::Refusal};

/// The largest length of the name of a function.
const MAX_NAME: usize = 64;
/// The largest number of stop sequences that a request may have.
const MAX_STOPS: usize = 5;
/// The fields that a `Schema` may have; they are a selection of OpenAPI 3.0.
///
/// Source: Gemini API reference, "Schema", August 2026.
const SCHEMA: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];

/// The functions that may be called.
pub(super) fn tools(root: &Node<'_>) -> Result<Vec<ToolDecl>, Refusal> {
    let mut tools: Vec<ToolDecl> = Vec::new();
    for tool in root
        .field("tools")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        // A tool of another kind runs at the vendor.
        let functions = tool
            .field("functionDeclarations")
            .map(|it| it.items())
            .transpose()?
            .unwrap_or_default();
        for function in functions {
            let name = name(&function.need("name")?)?;
            if tools.iter().any(|tool| tool.name.as_str() == name) {
                return Err(Refusal::invalid(format!(
                    "Duplicate function declaration found: {name}"
                )));
            }
            let description = function
                .field("description")
                .map(|it| it.text())
                .transpose()?
                .unwrap_or_default();
            let schema = schema(&function)?;
            tools.push(ToolDecl {
                name: name.into(),
                description: description.into(),
                schema: schema.into(),
            });
        }
    }
    Ok(tools)
}

/// Reads the options for the answer.
pub(super) fn options(
    root: &Node<'_>,
    model: &str,
    tools: &[ToolDecl],
) -> Result<Options, Refusal> {
    let mut options = Options {
        tool_choice: choice(root, tools)?,
        ..Options::default()
    };
    let Some(config) = root.field("generationConfig") else {
        return Ok(options);
    };
    config.object()?;
    if let Some(tokens) = config.field("maxOutputTokens") {
        options.max_output_tokens = Some(tokens.count()?);
    }
    if let Some(temperature) = config.field("temperature") {
        options.temperature = Some(temperature.within(0.0, 2.0)?);
    }
    options.top_p = config
        .field("topP")
        .map(|it| it.within(0.0, 1.0))
        .transpose()?;
    options.seed = config.field("seed").map(|it| it.count()).transpose()?;
    let stops = config
        .field("stopSequences")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default();
    if stops.len() > MAX_STOPS {
        return Err(Refusal::invalid(
            "The number of stop_sequences must be at most 5.",
        ));
    }
    for stop in stops {
        if stop.text()?.is_empty() {
            return Err(stop.refuse("stop sequences must not be empty"));
        }
        options.stop.push(stop.text()?.into());
    }
    if let Some(thinking) = config.field("thinkingConfig") {
        options.thinking = effort(&thinking, model)?;
    }
    options.format = format(&config)?;
    if options.format.is_some() && !tools.is_empty() && model.starts_with("gemini-2") {
        let message =
            "Function calling with a response mime type: 'application/json' is unsupported";
        return Err(Refusal::invalid(message));
    }
    Ok(options)
}

fn name<'a>(node: &Node<'a>) -> Result<&'a str, Refusal> {
    let name = node.text()?;
    let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | ':' | '-');
    if begins && name.chars().all(fits) && name.len() <= MAX_NAME {
        return Ok(name);
    }
    Err(node.refuse(
        "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), \
         underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.",
    ))
}

fn schema(function: &Node<'_>) -> Result<Value, Refusal> {
    let (old, new) = (
        function.field("parameters"),
        function.field("parametersJsonSchema"),
    );
    match (old, new) {
        (Some(_), Some(_)) => {
            Err(function.refuse("parameters and parameters_json_schema must not both be set"))
        }
        (Some(schema), None) => check_schema(&schema).map(|()| schema.value.clone()),
        (None, Some(schema)) => schema.object().map(|_| schema.value.clone()),
        (None, None) => Ok(json!({"type": "object"})),
    }
}

/// Checks that a schema contains only keywords that the vendor supports.
fn check_schema(schema: &Node<'_>) -> Result<(), Refusal> {
    for (keyword, _) in schema.object()? {
        if !SCHEMA.contains(&keyword.as_str()) {
            return Err(Refusal::invalid(format!(
                "Invalid JSON payload received. Unknown name \"{keyword}\" at '{}': Cannot find field.",
                schema.path
            )));
        }
    }
    if let Some(properties) = schema.field("properties") {
        for name in properties.object()?.keys() {
            properties
                .field(name)
                .map_or(Ok(()), |below| check_schema(&below))?;
        }
    }
    for below in schema
        .field("anyOf")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        check_schema(&below)?;
    }
    schema
        .field("items")
        .map_or(Ok(()), |below| check_schema(&below))
}

fn choice(root: &Node<'_>, tools: &[ToolDecl]) -> Result<ToolChoice, Refusal> {
    let config = root
        .field("toolConfig")
        .and_then(|it| it.field("functionCallingConfig"));
    let Some(config) = config else {
        return Ok(ToolChoice::Auto);
    };
    let mode = config
        .field("mode")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or("AUTO");
    let mut allowed = Vec::new();
    for name in config
        .field("allowedFunctionNames")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        let name = name.text()?;
        if !tools.iter().any(|tool| tool.name.as_str() == name) {
            let message = format!(
                "Function '{name}' in allowed_function_names is not declared in the tools."
            );
            return Err(Refusal::invalid(message));
        }
        allowed.push(name);
    }
    if !allowed.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        let message = "Please set allowed_function_names only when function calling mode is ANY or VALIDATED.";
        return Err(Refusal::invalid(message));
    }
    match (mode, allowed.as_slice()) {
        ("AUTO" | "VALIDATED" | "MODE_UNSPECIFIED", _) => Ok(ToolChoice::Auto),
        ("NONE", _) => Ok(ToolChoice::None),
        ("ANY", _) if tools.is_empty() => Err(Refusal::invalid(
            "Function calling config is set without function_declarations.",
        )),
        ("ANY", [name]) => Ok(ToolChoice::Named((*name).into())),
        ("ANY", _) => Ok(ToolChoice::Required),
        (other, _) => Err(Refusal::invalid(format!(
            "Invalid value at 'tool_config.function_calling_config.mode' (TYPE_ENUM), \"{other}\""
        ))),
    }
}

fn effort(thinking: &Node<'_>, model: &str) -> Result<Option<Effort>, Refusal> {
    let (level, budget) = (
        thinking.field("thinkingLevel"),
        thinking.field("thinkingBudget"),
    );
    match (level, budget) {
        (Some(_), Some(_)) => Err(Refusal::invalid(
            "You can only set only one of thinking budget and thinking level.",
        )),
        (Some(_), None) if model.starts_with("gemini-2") => Err(Refusal::invalid(
            "Thinking level is not supported for this model.",
        )),
        (Some(level), None) => match level.text()?.to_ascii_lowercase().as_str() {
            "minimal" => Ok(Some(Effort::Minimal)),
            "low" => Ok(Some(Effort::Low)),
            "medium" => Ok(Some(Effort::Medium)),
            "high" => Ok(Some(Effort::High)),
            "xhigh" => Ok(Some(Effort::Xhigh)),
            _ => Err(level.refuse("(TYPE_ENUM)")),
        },
        (None, Some(budget)) => match budget.value.as_i64() {
            Some(0) => Ok(Some(Effort::Off)),
            Some(-1..=32_768) => Ok(None),
            _ => Err(Refusal::invalid(
                "The thinking budget is invalid. Please choose a value between -1 and 32768.",
            )),
        },
        (None, None) => Ok(None),
    }
}

fn format(config: &Node<'_>) -> Result<Option<Format>, Refusal> {
    let schema = match (
        config.field("responseSchema"),
        config.field("responseJsonSchema"),
    ) {
        (Some(_), Some(_)) => {
            return Err(Refusal::invalid(
                "Only one of response_schema and response_json_schema may be set.",
            ));
        }
        (Some(schema), None) => {
            check_schema(&schema)?;
            Some(schema)
        }
        (None, schema) => schema,
    };
    let mime = config
        .field("responseMimeType")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or("text/plain");
    if !matches!(mime, "text/plain" | "application/json" | "text/x.enum") {
        let message = format!(
            "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, \
             `application/json`, `application/xml`, `application/yaml` and `text/x.enum`. Found `{mime}`.\n"
        );
        return Err(Refusal::invalid(message));
    }
    let Some(schema) = schema else {
        return Ok(None);
    };
    if mime != "application/json" {
        let message = "* GenerateContentRequest.generation_config.response_schema: only allowed when the response mime \
                       type is `application/json`\n";
        return Err(Refusal::invalid(message));
    }
    schema.object()?;
    Ok(Some(Format::new("response", schema.value.clone())))
}
