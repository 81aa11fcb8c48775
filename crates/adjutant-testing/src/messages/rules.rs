//! The rules of the Messages wire that go across a request: cache marks, thinking, output and tool choice.

use adjutant_llm::{Effort, Format, Options, ToolChoice, ToolDecl};
use serde_json::Value;

use crate::{issued::Issued, node::Node, refusal::Refusal, wire::Wire};

/// The largest number of cache marks that a request may have.
const MAX_CACHE_MARKS: usize = 4;
/// The smallest budget for thinking.
const MIN_BUDGET: u64 = 1_024;

/// Adds the request's settings for thinking, output and the choice of tools.
pub(super) fn options(
    root: &Node<'_>,
    tools: &[ToolDecl],
    mut options: Options,
) -> Result<Options, Refusal> {
    options.thinking = thinking(root)?;
    if let Some(output) = root.field("output_config") {
        output.object()?;
        if let Some(effort) = output.field("effort") {
            let effort = effort_of(&effort)?;
            options.thinking = options.thinking.or(Some(effort));
        }
        options.format = output.field("format").map(|it| format(&it)).transpose()?;
    }
    choice(root, tools, &mut options)?;
    let thinks = root
        .field("thinking")
        .is_some_and(|it| it.value["type"] != "disabled");
    if thinks
        && matches!(
            options.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        )
    {
        return Err(Refusal::invalid(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    if thinks
        && options
            .temperature
            .is_some_and(|temperature| temperature != 1.0)
    {
        return Err(Refusal::invalid(
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        ));
    }
    Ok(options)
}

/// True if a reply of the request thinks.
pub(super) fn thinks(root: &Node<'_>) -> bool {
    root.field("thinking")
        .is_some_and(|it| it.value["type"] == "enabled" || it.value["type"] == "adaptive")
}

/// Checks that signed content was signed here for this model.
pub(super) fn check_signatures(
    messages: &[Node<'_>],
    model: &str,
    issued: &Issued,
) -> Result<(), Refusal> {
    for message in messages {
        let Some(content) = message.field("content").filter(|it| it.value.is_array()) else {
            continue;
        };
        for block in content.items()? {
            let (field, kind) = match block.value["type"].as_str() {
                Some("thinking") => ("signature", "thinking"),
                Some("redacted_thinking") => ("data", "redacted_thinking"),
                _ => continue,
            };
            if !issued.accepts(Wire::Messages, model, block.need(field)?.text()?) {
                return Err(block.refuse(format!("Invalid `{field}` in `{kind}` block")));
            }
        }
    }
    Ok(())
}

/// Checks that each reply with calls that has thought begins with its thinking.
pub(super) fn check_order(messages: &[Node<'_>]) -> Result<(), Refusal> {
    for message in messages
        .iter()
        .filter(|message| message.value["role"] == "assistant")
    {
        let kinds: Vec<&str> = message.value["content"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|block| block["type"].as_str().unwrap_or("text"))
            .collect();
        let is_thinking = |kind: &&str| matches!(*kind, "thinking" | "redacted_thinking");
        let first = kinds.first().copied().unwrap_or("text");
        if kinds.contains(&"tool_use") && kinds.iter().any(is_thinking) && !is_thinking(&first) {
            return Err(message.refuse(format!(
                "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final \
                 `assistant` message must start with a thinking block."
            )));
        }
        if kinds.last().is_some_and(is_thinking) {
            return Err(
                message.refuse("The final block in an assistant message cannot be `thinking`.")
            );
        }
    }
    Ok(())
}

/// Checks where cache marks stand, how many there are, and how long they hold.
pub(super) fn check_cache(root: &Node<'_>) -> Result<(), Refusal> {
    let mut marked = Vec::new();
    for name in ["tools", "system"] {
        collect(root.field(name), &mut marked)?;
    }
    for message in root
        .field("messages")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        collect(message.field("content"), &mut marked)?;
    }
    // The automatic form marks the last block.
    marked.extend(root.field("cache_control").map(|_| root.clone()));
    if marked.len() > MAX_CACHE_MARKS {
        let found = marked.len();
        let limit =
            format!("A maximum of 4 blocks with cache_control may be provided. Found {found}.");
        return Err(Refusal::invalid(limit));
    }
    let mut short = false;
    for block in &marked {
        let kind = block.value["type"].as_str().unwrap_or_default();
        if matches!(kind, "thinking" | "redacted_thinking") {
            return Err(block.refuse("cache_control: Extra inputs are not permitted"));
        }
        if kind == "text" && block.value["text"] == "" {
            return Err(block.refuse("cache_control cannot be set for empty text blocks"));
        }
        let mark = block.need("cache_control")?;
        if mark.need("type")?.text()? != "ephemeral" {
            return Err(mark.refuse("Input should be 'ephemeral'"));
        }
        match mark.field("ttl").map(|it| it.text()).transpose()? {
            Some("1h") if short => {
                return Err(mark.refuse(
                    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that \
                     blocks are processed in the following order: `tools`, `system`, `messages`.",
                ));
            }
            Some("1h") => {}
            Some("5m") | None => short = true,
            Some(_) => return Err(mark.refuse("ttl: Input should be '5m' or '1h'")),
        }
    }
    Ok(())
}

/// Adds the blocks of a list that are marked, and those within them.
fn collect<'a>(list: Option<Node<'a>>, marked: &mut Vec<Node<'a>>) -> Result<(), Refusal> {
    let Some(list) = list.filter(|list| list.value.is_array()) else {
        return Ok(());
    };
    for block in list.items()? {
        collect(block.field("content"), marked)?;
        if block.field("cache_control").is_some() {
            marked.push(block);
        }
    }
    Ok(())
}

/// Reads the effort, if the switch determines it.
fn thinking(root: &Node<'_>) -> Result<Option<Effort>, Refusal> {
    let Some(thinking) = root.field("thinking") else {
        return Ok(None);
    };
    let kind = thinking.need("type")?;
    match kind.text()? {
        "disabled" => Ok(Some(Effort::Off)),
        "adaptive" => {
            if thinking.field("budget_tokens").is_some() {
                return Err(thinking.refuse("adaptive.budget_tokens: Extra inputs are not permitted"));
            }
            match thinking.field("display").map(|it| it.text()).transpose()? {
                Some("summarized" | "omitted") | None => Ok(None),
                Some(_) => Err(thinking.refuse("adaptive.display: Input should be 'summarized' or 'omitted'")),
            }
        }
        "enabled" => {
            let budget = thinking.need("budget_tokens")?;
            if budget.count()? < MIN_BUDGET {
                return Err(thinking.refuse("enabled.budget_tokens: Input should be greater than or equal to 1024"));
            }
            if budget.count()? >= root.need("max_tokens")?.count()? {
                return Err(Refusal::invalid("`max_tokens` must be greater than `thinking.budget_tokens`."));
            }
            Ok(None)
        }
        other => Err(thinking.refuse(format!(
            "Input tag '{other}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', \
             'enabled'"
        ))),
    }
}

fn effort_of(node: &Node<'_>) -> Result<Effort, Refusal> {
    match node.text()? {
        "low" => Ok(Effort::Low),
        "medium" => Ok(Effort::Medium),
        "high" => Ok(Effort::High),
        "xhigh" => Ok(Effort::Xhigh),
        "max" => Ok(Effort::Max),
        _ => Err(node.refuse("Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")),
    }
}

fn format(node: &Node<'_>) -> Result<Format, Refusal> {
    if node.need("type")?.text()? != "json_schema" {
        return Err(node.refuse("type: Input should be 'json_schema'"));
    }
    let schema = node.need("schema")?;
    let open =
        |schema: &Value| schema["type"] == "object" && schema["additionalProperties"] != false;
    if open(schema.value) {
        let message = "For 'object' type, 'additionalProperties' must be explicitly set to false";
        return Err(Refusal::invalid(format!(
            "output_config.format.schema: {message}"
        )));
    }
    Ok(Format::new("response", schema.value.clone()))
}

fn choice(root: &Node<'_>, tools: &[ToolDecl], options: &mut Options) -> Result<(), Refusal> {
    let Some(choice) = root.field("tool_choice") else {
        return Ok(());
    };
    let kind = choice.need("type")?;
    let disabled = choice.field("disable_parallel_tool_use");
    options.sequential_calls = disabled.as_ref().is_some_and(|it| it.value == true);
    options.tool_choice = match kind.text()? {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" if disabled.is_some() => {
            return Err(
                choice.refuse("none.disable_parallel_tool_use: Extra inputs are not permitted")
            );
        }
        "none" => ToolChoice::None,
        "tool" => {
            let name = choice.need("name")?.text()?;
            if !tools.iter().any(|tool| tool.name.as_str() == name) {
                return Err(Refusal::invalid(format!(
                    "Tool '{name}' not found in provided tools"
                )));
            }
            ToolChoice::Named(name.into())
        }
        other => {
            return Err(choice.refuse(format!(
                "Input tag '{other}' found using 'type' does not match any of the expected tags: 'any', 'auto', \
                 'none', 'tool'"
            )));
        }
    };
    if root.field("tools").is_none() {
        return Err(Refusal::invalid(
            "tool_choice may only be specified while providing tools.",
        ));
    }
    Ok(())
}
