//! Reads the options and tools of the Chat Completions wire.

use adjutant_llm::{Format, Options, ToolChoice, ToolDecl};

use crate::{
    node::Node,
    openai::{cache_key, effort_of, flag, parse_tool_choice, schema_format, word_choice},
    refusal::Refusal,
    strict,
};

/// The largest number of stop sequences that a request may have.
const MAX_STOPS: usize = 4;
/// The largest number of tools that a request may have.
const MAX_TOOLS: usize = 128;

/// Reads the options for the answer.
pub(super) fn options(root: &Node<'_>, tools: &[ToolDecl]) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let (old, new) = (
        root.field("max_tokens"),
        root.field("max_completion_tokens"),
    );
    if old.is_some() && new.is_some() {
        let message =
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Refusal::invalid(message)
            .param("max_tokens")
            .code("invalid_parameter_combination"));
    }
    if let Some(tokens) = new.or(old) {
        options.max_output_tokens = Some(tokens.count()?);
    }
    if let Some(effort) = root.field("reasoning_effort") {
        options.thinking = Some(effort_of(&effort)?);
    }
    cache_key(root)?;
    flag(root, "store")?;
    options.sequential_calls = flag(root, "parallel_tool_calls")? == Some(false);
    if root.field("parallel_tool_calls").is_some() && tools.is_empty() {
        let message = "'parallel_tool_calls' is only allowed when 'tools' are specified.";
        return Err(Refusal::invalid(message).param("parallel_tool_calls"));
    }
    options.tool_choice = choice(root, tools)?;
    options.format = root
        .field("response_format")
        .map(|it| format(&it))
        .transpose()?
        .flatten();
    if let Some(temperature) = root.field("temperature") {
        options.temperature = Some(temperature.within(0.0, 2.0)?);
    }
    options.top_p = root
        .field("top_p")
        .map(|it| it.within(0.0, 1.0))
        .transpose()?;
    options.seed = root.field("seed").map(|it| it.count()).transpose()?;
    let Some(stop) = root.field("stop") else {
        return Ok(options);
    };
    let stops = if stop.value.is_string() {
        vec![stop.clone()]
    } else {
        stop.items()?
    };
    if stops.is_empty() || stops.len() > MAX_STOPS {
        return Err(stop.refuse("expected an array of 1 to 4 strings"));
    }
    for stop in stops {
        if stop.text()?.is_empty() {
            return Err(stop.refuse("expected a string with at least one character"));
        }
        options.stop.push(stop.text()?.into());
    }
    Ok(options)
}

/// The functions that may be called.
pub(super) fn tools(root: &Node<'_>) -> Result<Vec<ToolDecl>, Refusal> {
    let Some(list) = root.field("tools") else {
        return Ok(Vec::new());
    };
    let items = list.items()?;
    if items.is_empty() {
        return Err(list.refuse("[] is too short - 'tools'"));
    }
    if items.len() > MAX_TOOLS {
        return Err(list.refuse("array too long. Expected an array with maximum length 128"));
    }
    items.iter().map(tool).collect()
}

fn tool(node: &Node<'_>) -> Result<ToolDecl, Refusal> {
    if node.need("type")?.text()? != "function" {
        return Err(node.refuse("Invalid value. Supported values are: 'function'."));
    }
    let (name, description, schema) = strict::function(&node.need("function")?)?;
    Ok(ToolDecl {
        name: name.into(),
        description: description.into(),
        schema: schema.into(),
    })
}

fn choice(root: &Node<'_>, tools: &[ToolDecl]) -> Result<ToolChoice, Refusal> {
    let Some(choice) = root.field("tool_choice") else {
        return Ok(ToolChoice::Auto);
    };
    if tools.is_empty() && choice.value != "none" {
        let message = "'tool_choice' is only allowed when 'tools' are specified.";
        return Err(Refusal::invalid(message).param("tool_choice"));
    }
    if choice.value.is_string() {
        return word_choice(&choice, !tools.is_empty());
    }
    if choice.need("type")?.text()? != "function" {
        return Err(choice.refuse("Invalid value. Supported values are: 'function'."));
    }
    parse_tool_choice(&choice.need("function")?.need("name")?, tools)
}

fn format(node: &Node<'_>) -> Result<Option<Format>, Refusal> {
    match node.need("type")?.text()? {
        "json_schema" => schema_format(&node.need("json_schema")?).map(Some),
        "text" | "json_object" => Ok(None),
        other => Err(node.refuse(format!("Invalid value: '{other}'."))),
    }
}
