//! Reads a request of the Messages wire, and refuses what the vendor refuses.

use adjutant_llm::{Options, Request, ToolDecl, UserMessage};
use serde_json::Value;

use super::{
    binding,
    blocks::{self, ReplyBlock},
    rules,
};
use crate::{
    history::{History, Misplaced},
    issued::Issued,
    node::Node,
    prefix::Prefix,
    refusal::Refusal,
    wire::Asked,
};

/// The largest length of the name of a tool.
pub(super) const MAX_TOOL_NAME: usize = 128;

/// Reads the body of a request.
pub(crate) fn decode(body: &Value, issued: &Issued) -> Result<Asked, Refusal> {
    let root = Node::root(body);
    let model = root.need("model")?.text()?;
    if model.is_empty() {
        return Err(root
            .need("model")?
            .refuse("String should have at least 1 character"));
    }
    let options = options(&root)?;
    rules::check_cache(&root)?;
    let system = system(&root)?;
    let tools = tools(&root)?;
    let options = rules::options(&root, &tools, options)?;
    let mut request = Request::new().options(options).system(system).tools(tools);
    let messages = root.need("messages")?.items()?;
    request.entries = conversation(model, &messages, issued.binds())?.finish();
    rules::check_signatures(&messages, model, issued)?;
    let prefix = match issued.binds() {
        true => binding::check(&root, &messages, issued)?,
        false => Prefix::default(),
    };
    if rules::thinks(&root) {
        rules::check_order(&messages)?;
    }
    if root
        .field("thinking")
        .is_some_and(|thinking| thinking.value["type"] == "enabled")
    {
        thinks_first(&messages)?;
    }
    Ok(Asked {
        request,
        model: model.to_owned(),
        include_usage: true,
        prefix,
    })
}

fn options(root: &Node<'_>) -> Result<Options, Refusal> {
    let mut options = Options {
        max_output_tokens: Some(root.need("max_tokens")?.count()?),
        ..Options::default()
    };
    if let Some(temperature) = root.field("temperature") {
        options.temperature = Some(temperature.within(0.0, 1.0)?);
    }
    options.top_p = root
        .field("top_p")
        .map(|it| it.within(0.0, 1.0))
        .transpose()?;
    for stop in root
        .field("stop_sequences")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        let text = stop.text()?;
        if text.trim().is_empty() {
            return Err(stop.refuse("each stop sequence must contain non-whitespace"));
        }
        options.stop.push(text.into());
    }
    Ok(options)
}

fn system(root: &Node<'_>) -> Result<String, Refusal> {
    let Some(system) = root.field("system") else {
        return Ok(String::new());
    };
    if let Some(text) = system.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut texts = Vec::new();
    for block in system.items()? {
        if block.need("type")?.text()? != "text" {
            return Err(block.refuse("Input should be a text block"));
        }
        texts.push(block.need("text")?.words()?);
    }
    Ok(texts.join("\n\n"))
}

fn tools(root: &Node<'_>) -> Result<Vec<ToolDecl>, Refusal> {
    let mut tools: Vec<ToolDecl> = Vec::new();
    for tool in root
        .field("tools")
        .map(|it| it.items())
        .transpose()?
        .unwrap_or_default()
    {
        // A tool of another type runs at the vendor; it has no schema and is not for us.
        if tool
            .field("type")
            .is_some_and(|kind| kind.value != "custom")
        {
            continue;
        }
        let name = tool.need("name")?.word(MAX_TOOL_NAME)?;
        if tools.iter().any(|tool| tool.name.as_str() == name) {
            return Err(Refusal::invalid("tools: Tool names must be unique."));
        }
        let schema = tool.need("input_schema")?;
        schema.object()?;
        let kind = schema.need("type")?;
        if kind.text()? != "object" {
            return Err(kind.refuse("Input should be 'object'"));
        }
        let description = tool
            .field("description")
            .map(|it| it.text())
            .transpose()?
            .unwrap_or_default();
        let schema = schema.value.clone().into();
        tools.push(ToolDecl {
            name: name.into(),
            description: description.into(),
            schema,
        });
    }
    Ok(tools)
}

fn conversation(
    model: &str,
    messages: &[Node<'_>],
    takes_system: bool,
) -> Result<History, Refusal> {
    if messages.is_empty() {
        return Err(
            Refusal::invalid("messages: at least one message is required").param("messages"),
        );
    }
    let mut history = History::new(model);
    let mut ids: Vec<&str> = Vec::new();
    let mut may_end = true;
    for (at, message) in messages.iter().enumerate() {
        match message.need("role")?.text()? {
            "user" => {
                user(&mut history, message)?;
                may_end = true;
            }
            "assistant" if at == 0 => {
                return Err(Refusal::invalid(
                    "messages: first message must use the \"user\" role",
                ));
            }
            "assistant" => {
                check_results(&mut history, message)?;
                may_end = assistant(&mut history, message, &mut ids)?;
            }
            "system" if takes_system => {
                binding::system_message(messages, at)?;
            }
            "system" => return Err(message.refuse("role 'system' is not supported on this model")),
            _ => {
                return Err(message
                    .need("role")?
                    .refuse("Input should be 'user' or 'assistant'"));
            }
        }
    }
    if let Some(last) = messages.last() {
        check_results(&mut history, last)?;
    }
    if !may_end {
        let prefill = "This model does not support assistant message prefill. \
                       The conversation must end with a user message.";
        return Err(Refusal::invalid(prefill));
    }
    Ok(history)
}

/// Checks that every call of the reply before has its result.
fn check_results(history: &mut History, before: &Node<'_>) -> Result<(), Refusal> {
    history.close().map_err(|missing| {
        before.refuse(format!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must \
             have a corresponding `tool_result` block in the next message.",
            missing.join(", ")
        ))
    })
}

fn user(history: &mut History, message: &Node<'_>) -> Result<(), Refusal> {
    let mut content = Vec::new();
    for block in blocks::message_blocks(message)? {
        if block
            .value
            .get("type")
            .is_some_and(|kind| kind == "tool_result")
        {
            if !content.is_empty() {
                return Err(block.refuse(
                    "`tool_result` blocks must come before all other content of the message",
                ));
            }
            result(history, &block)?;
        } else {
            content.push(blocks::content(&block)?);
        }
    }
    check_results(history, message)?;
    if !content.is_empty() {
        history.user(UserMessage::from(content));
    }
    Ok(())
}

fn result(history: &mut History, block: &Node<'_>) -> Result<(), Refusal> {
    let id = block.need("tool_use_id")?;
    let wire_id = id.word(blocks::MAX_CALL_ID)?;
    history.result(wire_id, blocks::result(block)?).map_err(|misplaced| match misplaced {
        Misplaced::NoCall => block.refuse(format!(
            "unexpected `tool_use_id` found in `tool_result` blocks: {wire_id}. Each `tool_result` block must have a \
             corresponding `tool_use` block in the previous message."
        )),
        Misplaced::Twice => block.refuse(format!(
            "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {wire_id}"
        )),
    })
}

/// Reads a reply; returns whether the conversation may end with it.
fn assistant<'a>(
    history: &mut History,
    message: &Node<'a>,
    ids: &mut Vec<&'a str>,
) -> Result<bool, Refusal> {
    let mut said = Vec::new();
    let mut paused = false;
    for (at, block) in blocks::message_blocks(message)?.iter().enumerate() {
        match blocks::read_reply_block(block, history.call_id(at))? {
            ReplyBlock::Block(block) => said.push(block),
            ReplyBlock::Call(id, call) => {
                if ids.contains(&id) {
                    return Err(block.refuse("`tool_use` ids must be unique"));
                }
                ids.push(id);
                said.push(call);
            }
            ReplyBlock::Opaque(block) => {
                paused = true;
                said.push(block);
            }
        }
    }
    history.reply(said);
    Ok(paused)
}

/// Checks that the reply whose results are sent begins with its thinking.
fn thinks_first(messages: &[Node<'_>]) -> Result<(), Refusal> {
    let [.., reply, last] = messages else {
        return Ok(());
    };
    let first = reply.value["content"]
        .get(0)
        .and_then(|block| block["type"].as_str())
        .unwrap_or("text");
    let sends_results = last.value["content"]
        .get(0)
        .is_some_and(|block| block["type"] == "tool_result");
    if !sends_results || matches!(first, "thinking" | "redacted_thinking") {
        return Ok(());
    }
    Err(reply.refuse(format!(
        "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final \
         `assistant` message must start with a thinking block."
    )))
}
