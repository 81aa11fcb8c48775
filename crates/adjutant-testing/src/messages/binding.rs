//! Preserved thinking: a signed block is accepted behind the system prompt, tools and messages that it was made behind.
//!
//! Source: "Preserved thinking" and "Mid-conversation system messages and tool changes", platform.claude.com, 2026-11.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::{issued::Issued, node::Node, prefix::Prefix, refusal::Refusal};

/// Refuses thinking behind another prefix, unless the request sets `drop_block`, and returns the prefix of the answer.
pub(super) fn check(
    root: &Node<'_>,
    messages: &[Node<'_>],
    issued: &Issued,
) -> Result<Prefix, Refusal> {
    let mut prefix = DefaultHasher::new();
    texts(root.value.get("system")).join("").hash(&mut prefix);
    let listed = root.value.get("tools").and_then(Value::as_array);
    let is_loaded = |tool: &&Value| tool.get("defer_loading") != Some(&Value::Bool(true));
    let loaded = listed.into_iter().flatten().filter(is_loaded);
    let mut tools: Vec<String> = loaded.map(strip_marks).collect();
    tools.sort_unstable();
    tools.hash(&mut prefix);
    let drops = root.value["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    let (mut role, mut previous, mut is_broken) = ("", None, false);
    for message in messages {
        let behind = prefix.finish();
        let speaker = message.value["role"].as_str().unwrap_or_default();
        if speaker != role {
            speaker.hash(&mut prefix);
            role = speaker;
        }
        let Some(blocks) = message.value["content"].as_array() else {
            texts(message.value.get("content")).hash(&mut prefix);
            continue;
        };
        for block in blocks {
            let seal = block.get("signature").or(block.get("data"));
            let Some(seal) = seal.and_then(Value::as_str).filter(|_| is_thought(block)) else {
                match block.get("text").filter(|_| block["type"] == "text") {
                    Some(text) => texts(Some(text)).hash(&mut prefix),
                    None => strip_marks(block).hash(&mut prefix),
                }
                continue;
            };
            is_broken |= !issued.is_bound(seal, behind, previous);
            previous = Some(seal);
            if is_broken && !drops {
                return Err(message.refuse(
                    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the \
                     block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
                ));
            }
            issued.count_thinking(is_broken);
        }
    }
    Ok(Prefix::new(prefix.finish(), previous))
}

/// Checks a message of the system within a conversation, and returns the tools that it defines.
pub(super) fn system_message<'a>(
    messages: &[Node<'a>],
    at: usize,
) -> Result<Vec<Node<'a>>, Refusal> {
    let role = |at: Option<usize>| {
        let message = at.and_then(|at| messages.get(at));
        message.and_then(|message| message.value["role"].as_str())
    };
    let message = &messages[at];
    let follows = matches!(role(at.checked_sub(1)), Some("user" | "system"));
    if !follows || !matches!(role(Some(at + 1)), None | Some("assistant" | "system")) {
        return Err(message.refuse(
            "a system message must follow a user message and precede an assistant message",
        ));
    }
    let mut defined = Vec::new();
    for block in super::blocks::message_blocks(message)? {
        let kind = block.need("type")?;
        match kind.text()? {
            "text" => {}
            "tool_removal" => {
                block.need("tool")?.need("name")?.text()?;
            }
            "tool_addition" => {
                let tool = block.need("tool")?;
                match tool.need("type")?.text()? {
                    "tool_definition" => defined.push(tool.need("definition")?),
                    _ => {
                        tool.need("name")?.text()?;
                    }
                }
            }
            _ => {
                return Err(
                    kind.refuse("Input should be 'text', 'tool_addition' or 'tool_removal'")
                );
            }
        }
    }
    Ok(defined)
}

fn is_thought(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// The texts of a content, which may be a text itself.
fn texts(content: Option<&Value>) -> Vec<&str> {
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(blocks)) => blocks.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

/// A value as JSON without marks of the cache.
fn strip_marks(value: &Value) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("cache_control");
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = value.clone();
    strip(&mut value);
    value.to_string()
}
