//! Converts contents in both directions: prompts for the model, and messages and results for the editor.

use std::sync::Arc;

use adjutant_llm::{Content, Source, UserMessage};
use serde_json::{Value, json};

use super::link::RpcFault;

/// The message of a prompt's blocks.
pub(super) fn message(blocks: &Value) -> Result<UserMessage, RpcFault> {
    let blocks = blocks
        .as_array()
        .ok_or_else(|| RpcFault::params("a prompt is a list of blocks"))?;
    Ok(blocks
        .iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?
        .into())
}

fn read(block: &Value) -> Result<Content, RpcFault> {
    let text = |value: &Value, what: &str| {
        let text = value.as_str().map(Arc::<str>::from);
        text.ok_or_else(|| RpcFault::params(format!("a block of a prompt without its {what}")))
    };
    match block["type"].as_str().unwrap_or_default() {
        "text" => Ok(Content::Text {
            text: text(&block["text"], "text")?,
        }),
        "image" => {
            let source = Source::Base64 {
                data: text(&block["data"], "data")?,
            };
            let media_type = text(&block["mimeType"], "mimeType")?;
            if !media_type.starts_with("image/") {
                return Err(RpcFault::params(
                    "a block of type \"image\" with another `mimeType`",
                ));
            }
            file("a block of the type \"image\"", &media_type, None, source)
        }
        "resource_link" => {
            let (name, uri) = (text(&block["name"], "name")?, text(&block["uri"], "uri")?);
            Ok(Content::text(format!("[{name}]({uri})")))
        }
        "resource" => {
            let resource = &block["resource"];
            let uri = text(&resource["uri"], "uri")?;
            if let Some(content) = resource["text"].as_str() {
                return Ok(Content::text(format!(
                    "<resource uri=\"{uri}\">\n{content}\n</resource>"
                )));
            }
            let source = Source::Base64 {
                data: text(&resource["blob"], "text or blob")?,
            };
            let media_type = resource["mimeType"]
                .as_str()
                .unwrap_or("application/octet-stream");
            file(
                &format!(
                    "the resource {:?}",
                    uri.chars().take(80).collect::<String>()
                ),
                media_type,
                Some(uri),
                source,
            )
        }
        other => Err(RpcFault::params(format!(
            "unsupported block type in a prompt: {other:?}"
        ))),
    }
}

fn file(
    part: &str,
    media_type: &str,
    name: Option<Arc<str>>,
    source: Source,
) -> Result<Content, RpcFault> {
    crate::file::content(part, media_type, name, source)
        .map_err(|error| RpcFault::params(error.to_string()))
}

/// A content as a block for the editor.
pub(super) fn block(content: &Content) -> Value {
    let (kind, media_type, source) = match content {
        Content::Text { text } => return text_block(text),
        Content::Image(it) => ("image", &it.media_type, &it.source),
        Content::Audio(it) => ("audio", &it.media_type, &it.source),
        Content::Document(it) => ("document", &it.media_type, &it.source),
        _ => return text_block("[a content of another kind]"),
    };
    match source {
        Source::Url { url } => {
            json!({"type": "resource_link", "name": kind, "uri": url, "mimeType": media_type})
        }
        Source::Base64 { .. } if kind == "document" => {
            text_block(&format!("[a document: {media_type}]"))
        }
        Source::Base64 { data } => json!({"type": kind, "data": data, "mimeType": media_type}),
        _ => text_block(&format!("[{kind}: {media_type}]")),
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Contents as those of a call.
pub(super) fn encode_call_content<'a>(
    contents: impl IntoIterator<Item = &'a Content>,
) -> Vec<Value> {
    contents
        .into_iter()
        .map(|content| json!({"type": "content", "content": block(content)}))
        .collect()
}
