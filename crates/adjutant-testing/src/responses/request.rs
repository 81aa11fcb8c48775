//! Reads a request of the Responses wire, and refuses what the vendor refuses.

use adjutant_llm::{Request, UserMessage};
use serde_json::Value;

use super::{items::Reading, options};
use crate::{
    history::History, issued::Issued, node::Node, prefix::Prefix, refusal::Refusal, wire::Asked,
};

/// Fields of Chat Completions, and their replacements here.
const MOVED: [(&str, &str); 5] = [
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
    ("reasoning_effort", "reasoning.effort"),
];

/// Reads the body of a request.
pub(crate) fn decode(body: &Value, issued: &Issued) -> Result<Asked, Refusal> {
    let root = Node::root(body);
    let model = match root.field("model") {
        Some(model) if model.value != "" => model.text()?,
        _ => return Err(missing("model")),
    };
    for (old, new) in MOVED {
        if root.field(old).is_some() {
            let message = format!(
                "Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'."
            );
            return Err(Refusal::invalid(message)
                .param(old)
                .code("unsupported_parameter"));
        }
    }
    if root.field("stop").is_some() {
        return Err(Refusal::invalid("Unknown parameter: 'stop'.")
            .param("stop")
            .code("unknown_parameter"));
    }
    if let Some(previous) = root.field("previous_response_id") {
        let message = format!(
            "Previous response with id '{}' not found.",
            previous.text()?
        );
        return Err(Refusal::invalid(message)
            .param("previous_response_id")
            .code("previous_response_not_found"));
    }
    let tools = options::tools(&root)?;
    let options = options::options(&root, &tools)?;
    let instructions = root
        .field("instructions")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or_default();
    let (said, history) = input(&root, model, issued)?;
    let mut system: Vec<String> = Some(instructions.to_owned())
        .filter(|it| !it.is_empty())
        .into_iter()
        .collect();
    system.extend(said);
    let mut request = Request::new()
        .options(options)
        .system(system.join("\n\n"))
        .tools(tools);
    request.entries = history.finish();
    Ok(Asked {
        request,
        model: model.to_owned(),
        include_usage: true,
        prefix: Prefix::default(),
    })
}

fn input(root: &Node<'_>, model: &str, issued: &Issued) -> Result<(Vec<String>, History), Refusal> {
    let Some(input) = root.field("input") else {
        return Err(missing("input"));
    };
    if let Some(text) = input.value.as_str() {
        let mut history = History::new(model);
        history.user(UserMessage::text(text));
        return Ok((Vec::new(), history));
    }
    let items = input.items()?;
    if items.is_empty() {
        return Err(Refusal::invalid(
            "Invalid 'input': empty array. Expected an array with minimum length 1.",
        )
        .param("input")
        .code("empty_array"));
    }
    Reading::new(model, issued).read(&items)
}

fn missing(name: &str) -> Refusal {
    let message = format!("Missing required parameter: '{name}'.");
    Refusal::invalid(message)
        .param(name)
        .code("missing_required_parameter")
}
