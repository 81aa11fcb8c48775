//! Reads the options and tools of the Responses wire.

use adjutant_llm::{Effort, Format, Options, ToolChoice, ToolDecl};

use crate::{node::Node, refusal::Refusal, strict};

/// The smallest limit of the output.
///
/// Source: OpenAI API reference "Create a model response", `max_output_tokens`, August 2026.
const MIN_OUTPUT: u64 = 16;
/// How long a cache key may be.
const MAX_CACHE_KEY: usize = 64;
/// What may be asked to be included.
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
    for tool in root.field("tools").map(|it| it.items()).transpose()?.unwrap_or_default() {
        if tool.need("type")?.text()? != "function" {
            continue;
        }
        let (name, description, schema) = strict::function(&tool)?;
        tools.push(ToolDecl { name: name.into(), description: description.into(), schema: schema.into() });
    }
    Ok(tools)
}

/// Everything else that says how to answer.
pub(super) fn options(root: &Node<'_>, tools: &[ToolDecl]) -> Result<Options, Refusal> {
    let mut options = Options::new();
    if let Some(tokens) = root.field("max_output_tokens") {
        if tokens.count()? < MIN_OUTPUT {
            let message = format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {MIN_OUTPUT}, but got \
                 {} instead.",
                tokens.value
            );
            return Err(Refusal::invalid(message).param("max_output_tokens").code("integer_below_min_value"));
        }
        options = options.max_output_tokens(tokens.count()?);
    }
    if let Some(temperature) = root.field("temperature") {
        options = options.temperature(temperature.within(0.0, 2.0)?);
    }
    if let Some(effort) = root.field("reasoning").and_then(|it| it.field("effort")) {
        options = options.thinking(effort_of(&effort)?);
    }
    if let Some(summary) = root.field("reasoning").and_then(|it| it.field("summary")) {
        one_of(&summary, &["auto", "concise", "detailed"])?;
    }
    for include in root.field("include").map(|it| it.items()).transpose()?.unwrap_or_default() {
        one_of(&include, &INCLUDES)?;
    }
    flag(root, "store")?;
    cache_key(root)?;
    options.sequential_calls = flag(root, "parallel_tool_calls")? == Some(false);
    options.tool_choice = choice(root, tools)?;
    options.format = root.field("text").and_then(|it| it.field("format")).map(|it| format(&it)).transpose()?.flatten();
    Ok(options)
}

/// How much is asked to be thought; both of the vendor's wires have these words.
pub(crate) fn effort_of(node: &Node<'_>) -> Result<Effort, Refusal> {
    let word = one_of(node, &["none", "minimal", "low", "medium", "high", "xhigh", "max"])?;
    Ok(match word {
        "none" => Effort::Off,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => Effort::Max,
    })
}

/// Checks the cache key; both of the vendor's wires have it.
pub(crate) fn cache_key(root: &Node<'_>) -> Result<(), Refusal> {
    let Some(key) = root.field("prompt_cache_key") else { return Ok(()) };
    if key.text()?.len() > MAX_CACHE_KEY {
        let message = format!(
            "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length {MAX_CACHE_KEY}, but \
             got a string with length {} instead.",
            key.text()?.len()
        );
        return Err(Refusal::invalid(message).param("prompt_cache_key").code("string_above_max_length"));
    }
    Ok(())
}

/// A schema of these fields; both of the vendor's wires have them, in different places.
pub(crate) fn schema_format(node: &Node<'_>) -> Result<Format, Refusal> {
    let name = node.need("name")?.word(strict::MAX_NAME)?;
    let schema = node.need("schema")?;
    schema.object()?;
    if node.field("strict").is_some_and(|strict| strict.value == true) {
        strict::check(schema.value, "response_format", name, &schema.path)?;
    }
    Ok(Format::new(name, schema.value.clone()))
}

/// A field that is true or false.
pub(crate) fn flag(root: &Node<'_>, name: &str) -> Result<Option<bool>, Refusal> {
    let Some(node) = root.field(name) else { return Ok(None) };
    node.value.as_bool().map(Some).ok_or_else(|| node.refuse("Invalid type. Expected a boolean"))
}

/// Which tool of these must be called, if a named one must.
pub(crate) fn named(name: &Node<'_>, tools: &[ToolDecl]) -> Result<ToolChoice, Refusal> {
    let word = name.text()?;
    if tools.iter().any(|tool| tool.name.as_str() == word) {
        return Ok(ToolChoice::Named(word.into()));
    }
    Err(Refusal::invalid(format!("Tool choice '{word}' not found in 'tools' parameter.")).param("tool_choice"))
}

/// The word that must stand here.
pub(crate) fn one_of<'a>(node: &Node<'a>, words: &[&str]) -> Result<&'a str, Refusal> {
    let word = node.text()?;
    if words.contains(&word) {
        return Ok(word);
    }
    let supported: Vec<String> = words.iter().map(|it| format!("'{it}'")).collect();
    let message = format!("Invalid value: '{word}'. Supported values are: {}.", supported.join(", "));
    Err(Refusal::invalid(message).param(node.path.clone()).code("invalid_value"))
}

fn choice(root: &Node<'_>, tools: &[ToolDecl]) -> Result<ToolChoice, Refusal> {
    let Some(choice) = root.field("tool_choice") else { return Ok(ToolChoice::Auto) };
    if choice.value.is_string() {
        return word_choice(&choice, root.field("tools").is_some());
    }
    match choice.need("type")?.text()? {
        "function" => named(&choice.need("name")?, tools),
        // The choice of a tool that runs at the vendor.
        _ => Ok(ToolChoice::Required),
    }
}

/// A choice that is one word.
pub(crate) fn word_choice(choice: &Node<'_>, has_tools: bool) -> Result<ToolChoice, Refusal> {
    match one_of(choice, &["none", "auto", "required"])? {
        "required" if !has_tools => {
            let message = "Tool choice 'required' must be specified with 'tools' parameter.";
            Err(Refusal::invalid(message).param("tool_choice"))
        }
        "required" => Ok(ToolChoice::Required),
        "none" => Ok(ToolChoice::None),
        _ => Ok(ToolChoice::Auto),
    }
}

fn format(node: &Node<'_>) -> Result<Option<Format>, Refusal> {
    match one_of(&node.need("type")?, &["text", "json_object", "json_schema"])? {
        "json_schema" => schema_format(node).map(Some),
        _ => Ok(None),
    }
}
