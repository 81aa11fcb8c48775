//! Reads the content blocks of the Messages wire.

use adjutant_llm::{Block, CallId, CallResult, Content, Document, Image, Source, Status, Thinking};

use crate::{history, node::Node, refusal::Refusal};

use super::request::MAX_TOOL_NAME;

/// The largest length of the id of a call.
pub(super) const MAX_CALL_ID: usize = 64;
/// The vendor's own blocks, which only it understands.
const VENDORS_OWN: [&str; 5] = [
    "server_tool_use",
    "mcp_tool_use",
    "container_upload",
    "compaction",
    "fallback",
];

/// A block of a reply.
pub(super) enum ReplyBlock<'a> {
    Block(Block),
    /// The id on the wire, and the call.
    Call(&'a str, Block),
    /// A block of a tool that runs at the vendor: a paused reply may end with it.
    Opaque(Block),
}

/// The blocks of a message; a plain string is one text block.
pub(super) fn message_blocks<'a>(message: &Node<'a>) -> Result<Vec<Node<'a>>, Refusal> {
    let content = message.need("content")?;
    if content.value.is_string() {
        content.words()?;
        return Ok(vec![content]);
    }
    let blocks = objects(&content)?;
    if blocks.is_empty() {
        return Err(message.refuse("all messages must have non-empty content"));
    }
    Ok(blocks)
}

/// The blocks of a list, each an object.
fn objects<'a>(list: &Node<'a>) -> Result<Vec<Node<'a>>, Refusal> {
    let blocks = list.items()?;
    blocks
        .iter()
        .try_for_each(|block| block.object().map(|_| ()))?;
    Ok(blocks)
}

/// A block of a user message, or of a tool result; a string is a text block.
pub(super) fn content(block: &Node<'_>) -> Result<Content, Refusal> {
    if let Some(text) = block.value.as_str() {
        return Ok(Content::text(text));
    }
    match block.need("type")?.text()? {
        "text" => Ok(Content::text(block.need("text")?.words()?)),
        "image" => {
            let (media_type, source) = source(&block.need("source")?, "image/*")?;
            Ok(Content::Image(Image {
                media_type: media_type.into(),
                source,
            }))
        }
        "document" => {
            let (media_type, source) = source(&block.need("source")?, "application/pdf")?;
            let name = block
                .field("title")
                .map(|it| it.text())
                .transpose()?
                .map(Into::into);
            Ok(Content::Document(Document {
                media_type: media_type.into(),
                name,
                source,
            }))
        }
        other => Err(refuse_tag(block, other)),
    }
}

/// The result of a call.
pub(super) fn result(block: &Node<'_>) -> Result<CallResult, Refusal> {
    let failed = block.field("is_error").is_some_and(|it| it.value == true);
    let mut result = CallResult::ok("");
    if failed {
        result.status = Status::Failed;
    }
    result.content = match block.field("content") {
        None => Vec::new(),
        Some(text) if text.value.is_string() => vec![Content::text(text.text()?)],
        Some(list) => objects(&list)?
            .iter()
            .map(content)
            .collect::<Result<_, _>>()?,
    };
    if failed && result.content.iter().any(|it| it.as_text().is_none()) {
        return Err(block.refuse("all content must be type \"text\" if \"is_error\" is true"));
    }
    Ok(result)
}

/// A block of a reply.
pub(super) fn read_reply_block<'a>(
    block: &Node<'a>,
    id: CallId,
) -> Result<ReplyBlock<'a>, Refusal> {
    if let Some(text) = block.value.as_str() {
        return Ok(ReplyBlock::Block(Block::text(text)));
    }
    match block.need("type")?.text()? {
        "text" => Ok(ReplyBlock::Block(Block::text(block.need("text")?.words()?))),
        "thinking" => {
            let text = block.need("thinking")?.text()?.into();
            let signature = block.need("signature")?;
            if signature.text()?.is_empty() {
                return Err(block.refuse("Invalid `signature` in `thinking` block"));
            }
            let signature = Some(signature.text()?.into());
            Ok(ReplyBlock::Block(Block::Thinking(Thinking {
                text,
                signature,
                redacted: false,
                extra: Default::default(),
            })))
        }
        "redacted_thinking" => {
            let signature = Some(block.need("data")?.words()?.into());
            Ok(ReplyBlock::Block(Block::Thinking(Thinking {
                text: "".into(),
                signature,
                redacted: true,
                extra: Default::default(),
            })))
        }
        "tool_use" => {
            let wire_id = block.need("id")?.word(MAX_CALL_ID)?;
            let name = block.need("name")?.word(MAX_TOOL_NAME)?;
            let input = block.need("input")?;
            input.object()?;
            Ok(ReplyBlock::Call(
                wire_id,
                history::call(id, wire_id, name, input.value.to_string()),
            ))
        }
        other
            if VENDORS_OWN.contains(&other)
                || (other.ends_with("_tool_result") && other != "tool_result") =>
        {
            Ok(ReplyBlock::Opaque(Block::Opaque {
                issuer: "anthropic".into(),
                value: block.value.clone(),
            }))
        }
        other => Err(refuse_tag(block, other)),
    }
}

fn refuse_tag(block: &Node<'_>, kind: &str) -> Refusal {
    block.refuse(format!(
        "Input tag '{kind}' found using 'type' does not match any of the expected tags"
    ))
}

fn source(node: &Node<'_>, media_type: &str) -> Result<(String, Source), Refusal> {
    match node.need("type")?.text()? {
        "base64" => {
            let data = node.need("data")?.words()?.into();
            Ok((
                node.need("media_type")?.words()?.to_owned(),
                Source::Base64 { data },
            ))
        }
        "url" => Ok((
            media_type.to_owned(),
            Source::Url {
                url: node.need("url")?.words()?.into(),
            },
        )),
        other => Err(refuse_tag(node, other)),
    }
}
