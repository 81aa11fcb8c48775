//! The result of a call in the form for a model.

use std::sync::Arc;

use adjutant_llm::{Audio, CallResult, Content, Document, Image, Schema, Source, Status};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The maximum number of bytes of a result's texts that are kept. The agent limits media when it records them.
const MAX_RESULT: usize = 4 << 20;
/// The most parts of a result that are kept.
const MAX_PARTS: usize = 256;
/// The most faults of structured content that are named.
const MAX_FAULTS: usize = 10;

/// The result of a call; `schema` is the schema of its structured content, if there is one.
pub(crate) fn result(result: CallToolResult, schema: Option<&Schema>) -> CallResult {
    let mut room = MAX_RESULT;
    let is_error = result.is_error == Some(true);
    let fault = if is_error {
        None
    } else {
        schema.and_then(|schema| fault(schema, result.structured_content.as_ref()))
    };
    let details = result.structured_content.unwrap_or_default();
    let size_of_details = if details.is_null() {
        0
    } else {
        details.to_string().len()
    };
    let is_kept = size_of_details <= MAX_RESULT;
    let details = if is_kept { details } else { Value::Null };
    room -= if is_kept { size_of_details } else { 0 };
    let mut content: Vec<Content> = fault
        .iter()
        .map(|fault| Content::text(fault.as_str()))
        .collect();
    if !is_kept {
        content.push(Content::text(format!(
            "[{size_of_details} bytes of structured content are left out: they are too many]"
        )));
    }
    let (total, mut cut) = (result.content.len(), false);
    for block in result.content.into_iter().take(MAX_PARTS) {
        let part = part(block);
        match part {
            Content::Text { text } if text.len() > room => {
                content.push(Content::text(floor(&text, room)));
                (room, cut) = (0, true);
            }
            part => {
                room -= part.as_text().map_or(0, str::len);
                content.push(part);
            }
        }
    }
    if cut || total > MAX_PARTS {
        content.push(Content::text(
            "[the rest of the result is left out: it is too long]",
        ));
    }
    if total == 0 && !details.is_null() {
        content.push(Content::text(details.to_string()));
    }
    let status = if is_error || fault.is_some() {
        Status::Failed
    } else {
        Status::Ok
    };
    if content.is_empty() {
        content.push(Content::text(if is_error {
            "it failed without a word"
        } else {
            "done"
        }));
    }
    CallResult {
        content,
        details,
        ..CallResult::new(status, "")
    }
}

/// The longest start of a text of at most `max` bytes that ends between two characters.
pub(crate) fn floor(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The validation error of structured content, for the model.
fn fault(schema: &Schema, value: Option<&Value>) -> Option<String> {
    let Some(value) = value else {
        return Some(
            "the result lacks the structured content that the server declares of this tool"
                .to_owned(),
        );
    };
    let faults = schema.validate(value).err()?;
    let listed = faults.iter().take(MAX_FAULTS).map(|fault| {
        let place = if fault.path.is_empty() {
            "(root)"
        } else {
            &fault.path
        };
        format!(
            "\n  - {}: {}",
            floor(place, 200),
            floor(&fault.message, 200)
        )
    });
    let listed: String = listed.collect();
    Some(format!(
        "the result does not fit what the server declares of this tool:{listed}"
    ))
}

/// A part of a result or a message, in the form for a model.
pub(crate) fn part(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(text.text),
        ContentBlock::Image(image) => media(&image.mime_type, image.data, "an image"),
        ContentBlock::Audio(audio) => media(&audio.mime_type, audio.data, "a recording"),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                Content::text(format!("[resource {}]\n{text}", floor(&uri, 2_048)))
            }
            ResourceContents::BlobResourceContents {
                uri,
                blob,
                mime_type,
                ..
            } => {
                let what = format!("resource {}", floor(&uri, 2_048));
                media(
                    mime_type.as_deref().unwrap_or("application/octet-stream"),
                    blob,
                    &what,
                )
            }
            _ => Content::text("[a resource of a kind that is not known]"),
        },
        ContentBlock::ResourceLink(link) => {
            let about = link
                .description
                .map(|about| format!(": {}", floor(&about, 2_048)))
                .unwrap_or_default();
            let (name, uri) = (floor(&link.name, 512), floor(&link.uri, 2_048));
            Content::text(format!("[resource {uri} ({name}){about}]"))
        }
        _ => Content::text("[content of a kind that is not known]"),
    }
}

/// An image or audio for the model, or a line that describes other data.
fn media(media_type: &str, data: String, what: &str) -> Content {
    let kind = media_type.to_ascii_lowercase();
    let is_type = kind.len() <= 127
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/.+-;= ".contains(&byte));
    let bytes = data.len();
    if !is_type {
        return Content::text(format!(
            "[{what} that cannot be read is left out: {bytes} bytes]"
        ));
    }
    let (media_type, source) = (
        Arc::<str>::from(kind.as_str()),
        Source::Base64 { data: data.into() },
    );
    match kind.split('/').next() {
        Some("image") => Content::Image(Image { media_type, source }),
        Some("audio") => Content::Audio(Audio { media_type, source }),
        // Bytes without a type may be an image: the agent reads them when it records them.
        _ if kind == "application/pdf" || kind == "application/octet-stream" => {
            Content::Document(Document {
                media_type,
                name: None,
                source,
            })
        }
        _ => Content::text(format!(
            "[{what} of type {kind} is left out: {bytes} bytes]"
        )),
    }
}
