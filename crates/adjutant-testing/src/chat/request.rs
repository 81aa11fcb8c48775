//! Reads a request of the Chat Completions wire, and refuses what the vendor and strict servers refuse.

use adjutant_llm::{Block, CallResult, Content, Origin, Request, Status, Thinking, UserMessage};
use serde_json::Value;

use super::{options, parts};
use crate::{
    history::{self, History, Misplaced},
    node::Node,
    prefix::Prefix,
    refusal::Refusal,
    strict::MAX_NAME,
    wire::Asked,
};

/// The largest length of the id of a call.
const MAX_CALL_ID: usize = 40;

/// Reads the body of a request.
pub(crate) fn decode(body: &Value) -> Result<Asked, Refusal> {
    let root = Node::root(body);
    let model = match root.field("model") {
        Some(model) if model.value != "" => model.text()?,
        _ => return Err(Refusal::invalid("you must provide a model parameter")),
    };
    let Some(messages) = root.field("messages") else {
        return Err(Refusal::invalid("Missing required parameter: 'messages'.")
            .param("messages")
            .code("missing_required_parameter"));
    };
    let tools = options::tools(&root)?;
    let options = options::options(&root, &tools)?;
    let mut request = Request::new().options(options).tools(tools);
    let (system, history) = conversation(model, &messages.items()?)?;
    request = request.system(system);
    request.entries = history.finish();
    let include_usage = root
        .field("stream_options")
        .and_then(|it| it.field("include_usage"));
    let include_usage = include_usage.is_some_and(|it| it.value == true);
    Ok(Asked {
        request,
        model: model.to_owned(),
        include_usage,
        prefix: Prefix::default(),
    })
}

/// The system prompt before the first message, and the conversation.
fn conversation(model: &str, messages: &[Node<'_>]) -> Result<(String, History), Refusal> {
    if messages.is_empty() {
        return Err(Refusal::invalid("[] is too short - 'messages'").param("messages"));
    }
    let mut system: Vec<String> = Vec::new();
    let mut history = History::new(model);
    let mut begun = false;
    for message in messages {
        let role = message.need("role")?;
        if role.text()? != "tool" {
            check_results(&mut history, message)?;
        }
        match role.text()? {
            "system" | "developer" if !begun => {
                system.push(parts::texts(&message.need("content")?)?)
            }
            "system" | "developer" => {
                let origin = Origin::Reminder {
                    by: "system".into(),
                };
                history.user(UserMessage {
                    origin,
                    ..UserMessage::text(parts::texts(&message.need("content")?)?)
                });
            }
            "user" => history.user(UserMessage::from(parts::contents(
                &message.need("content")?,
            )?)),
            "assistant" => assistant(&mut history, message)?,
            "tool" => result(&mut history, message)?,
            other => {
                return Err(role.refuse(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and \
                     'developer'."
                )));
            }
        }
        begun |= !matches!(role.text()?, "system" | "developer");
    }
    if let Some(last) = messages.last() {
        check_results(&mut history, last)?;
    }
    Ok((system.join("\n\n"), history))
}

/// Checks that every call of the reply before has its result.
fn check_results(history: &mut History, message: &Node<'_>) -> Result<(), Refusal> {
    history.close().map_err(|missing| {
        Refusal::invalid(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            missing.join(", ")
        ))
        .param(format!("{}.role", message.path))
    })
}

fn assistant(history: &mut History, message: &Node<'_>) -> Result<(), Refusal> {
    let mut said = Vec::new();
    let reasoning = message
        .field("reasoning_content")
        .map(|it| it.text())
        .transpose()?
        .unwrap_or_default();
    if !reasoning.is_empty() {
        said.push(Block::Thinking(Thinking {
            text: reasoning.into(),
            signature: None,
            redacted: false,
            extra: Default::default(),
        }));
    }
    let calls = message
        .field("tool_calls")
        .map(|it| it.items())
        .transpose()?;
    if calls.as_ref().is_some_and(Vec::is_empty) {
        return Err(message.refuse("[] is too short - 'tool_calls'"));
    }
    match message.field("content") {
        Some(content) if calls.is_some() && content.value == "" => {}
        Some(content) => said.push(Block::text(parts::texts(&content)?)),
        None if calls.is_some() || message.field("refusal").is_some() => {}
        None => {
            let path = format!("{}.content", message.path);
            let missing = "Invalid value for 'content': expected a string, got null.";
            return Err(Refusal::invalid(missing).param(path));
        }
    }
    let mut ids = Vec::new();
    for call in calls.unwrap_or_default() {
        let id = call.need("id")?.word(MAX_CALL_ID)?;
        if ids.contains(&id) {
            return Err(call.refuse("the ids of tool calls must be unique"));
        }
        ids.push(id);
        let block = read_call(history, said.len(), &call, id)?;
        said.push(block);
    }
    history.reply(said);
    Ok(())
}

fn read_call(history: &History, at: usize, call: &Node<'_>, id: &str) -> Result<Block, Refusal> {
    if call.need("type")?.text()? != "function" {
        return Err(call.refuse("Invalid value. Supported values are: 'function'."));
    }
    let function = call.need("function")?;
    let name = function.need("name")?.word(MAX_NAME)?;
    let arguments = function.need("arguments")?;
    // The vendor itself takes any text; the servers that speak its wire parse the arguments of the history.
    match serde_json::from_str(arguments.text()?) {
        Ok(Value::Object(_)) => Ok(history::call(
            history.call_id(at),
            id,
            name,
            arguments.text()?,
        )),
        Ok(_) | Err(_) => Err(arguments.refuse("expected the text of a JSON object")),
    }
}

fn result(history: &mut History, message: &Node<'_>) -> Result<(), Refusal> {
    let id = message.need("tool_call_id")?;
    let content = message.need("content")?;
    let text = if content.value == "" {
        String::new()
    } else {
        parts::texts(&content)?
    };
    let mut result = CallResult::new(Status::Ok, "");
    result.content = vec![Content::text(text)];
    history.result(id.word(MAX_CALL_ID)?, result).map_err(|misplaced| {
        let path = format!("{}.role", message.path);
        match misplaced {
            Misplaced::NoCall => Refusal::invalid(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                 'tool_calls'.",
            ),
            Misplaced::Twice => Refusal::invalid("Duplicate value for 'tool_call_id'."),
        }
        .param(path)
    })
}
