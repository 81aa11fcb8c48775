//! Reads the options and tools of the Responses wire.

use adjutant_llm::{Format, Options, ToolChoice, ToolDecl};

use crate::{
    node::Node,
    openai::{cache_key, effort_of, flag, one_of, parse_tool_choice, schema_format, word_choice},
    refusal::Refusal,
    strict,
};

/// The smallest limit of the output.
///
/// Source: OpenAI API reference "Create a model response", `max_output_tokens`, August 2026.
const MIN_OUTPUT: u64 = 16;
/// The values that a request may include.
const INCLUDES: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// The functions that may be called; tools that run at the vendor are not for us.
pub(super) fn tools(root: &Node<'_>) -> Result<Vec<ToolDecl>, Refusal> {
    let mut tools = Vec::new();
    for tool in root
        .field("tools")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        if tool.need("type")?.text()? != "function" {
            continue;
        }
        let (name, description, schema) = strict::function(&tool)?;
        tools.push(ToolDecl {
            name: name.into(),
            description: description.into(),
            schema: schema.into(),
        });
    }
    Ok(tools)
}

/// All other settings for the answer.
pub(super) fn options(root: &Node<'_>, tools: &[ToolDecl]) -> Result<Options, Refusal> {
    let mut options = Options::default();
    if let Some(tokens) = root.field("max_output_tokens") {
        if tokens.count()? < MIN_OUTPUT {
            let message = format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {MIN_OUTPUT}, but got \
                 {} instead.",
                tokens.value
            );
            return Err(Refusal::invalid(message)
                .param("max_output_tokens")
                .code("integer_below_min_value"));
        }
        options.max_output_tokens = Some(tokens.count()?);
    }
    if let Some(temperature) = root.field("temperature") {
        options.temperature = Some(temperature.within(0.0, 2.0)?);
    }
    options.top_p = root
        .field("top_p")
        .map(|it| it.within(0.0, 1.0))
        .transpose()?;
    if let Some(effort) = root.field("reasoning").and_then(|it| it.field("effort")) {
        options.thinking = Some(effort_of(&effort)?);
    }
    if let Some(summary) = root.field("reasoning").and_then(|it| it.field("summary")) {
        one_of(&summary, &["auto", "concise", "detailed"])?;
    }
    for include in root
        .field("include")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        one_of(&include, &INCLUDES)?;
    }
    flag(root, "store")?;
    cache_key(root)?;
    options.sequential_calls = flag(root, "parallel_tool_calls")? == Some(false);
    options.tool_choice = choice(root, tools)?;
    options.format = root
        .field("text")
        .and_then(|it| it.field("format"))
        .map(|it| format(&it))
        .transpose()?
        .flatten();
    Ok(options)
}

fn choice(root: &Node<'_>, tools: &[ToolDecl]) -> Result<ToolChoice, Refusal> {
    let Some(choice) = root.field("tool_choice") else {
        return Ok(ToolChoice::Auto);
    };
    if choice.value.is_string() {
        return word_choice(&choice, root.field("tools").is_some());
    }
    match choice.need("type")?.text()? {
        "function" => parse_tool_choice(&choice.need("name")?, tools),
        // The choice of a tool that runs at the vendor.
        _ => Ok(ToolChoice::Required),
    }
}

fn format(node: &Node<'_>) -> Result<Option<Format>, Refusal> {
    match one_of(&node.need("type")?, &["text", "json_object", "json_schema"])? {
        "json_schema" => schema_format(node).map(Some),
        _ => Ok(None),
    }
}
