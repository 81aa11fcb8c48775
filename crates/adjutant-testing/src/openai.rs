//! The common parts of OpenAI's two wires: values and fields of a request, and the rate limit headers.

use std::time::Duration;

use adjutant_llm::{Effort, Format, RateLimits, ToolChoice, ToolDecl};

use crate::{node::Node, refusal::Refusal, strict};

/// The largest length of a cache key.
const MAX_CACHE_KEY: usize = 64;

/// Reads the requested effort.
pub(crate) fn effort_of(node: &Node<'_>) -> Result<Effort, Refusal> {
    let word = one_of(
        node,
        &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    )?;
    Ok(match word {
        "none" => Effort::Off,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "xhigh" => Effort::Xhigh,
        _ => Effort::Max,
    })
}

/// Checks the cache key.
pub(crate) fn cache_key(root: &Node<'_>) -> Result<(), Refusal> {
    let Some(key) = root.field("prompt_cache_key") else {
        return Ok(());
    };
    if key.text()?.len() > MAX_CACHE_KEY {
        let message = format!(
            "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length {MAX_CACHE_KEY}, but \
             got a string with length {} instead.",
            key.text()?.len()
        );
        return Err(Refusal::invalid(message)
            .param("prompt_cache_key")
            .code("string_above_max_length"));
    }
    Ok(())
}

/// The format that these fields make; the wires have them in different places.
pub(crate) fn schema_format(node: &Node<'_>) -> Result<Format, Refusal> {
    let name = node.need("name")?.word(strict::MAX_NAME)?;
    let schema = node.need("schema")?;
    schema.object()?;
    if node
        .field("strict")
        .is_some_and(|strict| strict.value == true)
    {
        strict::check(schema.value, "response_format", name, &schema.path)?;
    }
    Ok(Format::new(name, schema.value.clone()))
}

/// A field that is true or false.
pub(crate) fn flag(root: &Node<'_>, name: &str) -> Result<Option<bool>, Refusal> {
    let Some(node) = root.field(name) else {
        return Ok(None);
    };
    node.value
        .as_bool()
        .map(Some)
        .ok_or_else(|| node.refuse("Invalid type. Expected a boolean"))
}

/// Finds the tool of these that must be called, if a named one must.
pub(crate) fn parse_tool_choice(
    name: &Node<'_>,
    tools: &[ToolDecl],
) -> Result<ToolChoice, Refusal> {
    let word = name.text()?;
    if tools.iter().any(|tool| tool.name.as_str() == word) {
        return Ok(ToolChoice::Named(word.into()));
    }
    Err(Refusal::invalid(format!(
        "Tool choice '{word}' not found in 'tools' parameter."
    ))
    .param("tool_choice"))
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

/// The word that must stand here.
pub(crate) fn one_of<'a>(node: &Node<'a>, words: &[&str]) -> Result<&'a str, Refusal> {
    let word = node.text()?;
    if words.contains(&word) {
        return Ok(word);
    }
    let supported: Vec<String> = words.iter().map(|it| format!("'{it}'")).collect();
    let message = format!(
        "Invalid value: '{word}'. Supported values are: {}.",
        supported.join(", ")
    );
    Err(Refusal::invalid(message)
        .param(node.path.clone())
        .code("invalid_value"))
}

/// The rate limit headers.
pub(crate) fn limit_headers(limits: &RateLimits) -> Vec<(&'static str, String)> {
    let mut headers = vec![("openai-version", "2020-10-01".to_owned())];
    let reset = limits.reset_after.map(duration);
    if let Some(left) = limits.requests_left {
        headers.push(("x-ratelimit-remaining-requests", left.to_string()));
        headers.extend(
            reset
                .clone()
                .map(|reset| ("x-ratelimit-reset-requests", reset)),
        );
    }
    if let Some(left) = limits.tokens_left {
        headers.push(("x-ratelimit-remaining-tokens", left.to_string()));
        headers.extend(reset.map(|reset| ("x-ratelimit-reset-tokens", reset)));
    }
    headers
}

/// The time as the vendor writes it: `90ms`, `1s`, `6m0s`.
fn duration(wait: Duration) -> String {
    match (wait.as_secs(), wait.subsec_millis()) {
        (0, millis) => format!("{millis}ms"),
        (seconds @ 1..60, 0) => format!("{seconds}s"),
        (seconds @ 1..60, millis) => format!("{seconds}.{millis:03}s"),
        (seconds, _) if seconds < 3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        (seconds, _) => format!(
            "{}h{}m{}s",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}
