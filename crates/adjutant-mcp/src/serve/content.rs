//! Tools, prompts and results as the protocol has them.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{CallResult, Content, Source};
use adjutant_tool::ToolSpec;
use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model::{
    AudioContent, CallToolResult, ContentBlock, EmbeddedResource, GetPromptResult, ImageContent,
    JsonObject, Prompt, PromptArgument, PromptMessage, Resource, ResourceContents, Role, Tool,
    ToolAnnotations,
};
use serde_json::{Value, json};

/// A tool in the form for clients.
pub(super) fn tool(spec: &ToolSpec) -> Tool {
    let hints = &spec.hints;
    let mut tool = Tool::new(
        spec.name().to_string(),
        spec.decl.description.to_string(),
        object(&spec.decl.schema),
    );
    tool.title = spec.title.as_deref().map(str::to_owned);
    tool.output_schema = spec.output_schema.as_deref().map(object);
    tool.annotations = (*hints != Default::default()).then(|| {
        let title = tool.title.clone();
        ToolAnnotations::from_raw(
            title,
            hints.reads_only,
            hints.destructive,
            hints.idempotent,
            hints.open_world,
        )
    });
    tool
}

/// A schema as the protocol wants it: it names its type.
fn object(schema: &Value) -> Arc<JsonObject> {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.entry("type").or_insert_with(|| json!("object"));
    Arc::new(object)
}

/// A prompt in the form for clients, with the parameters of the tool as its arguments.
pub(super) fn prompt(spec: &ToolSpec) -> Prompt {
    let schema = &*spec.decl.schema;
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|it| it == name))
    };
    let argument = |(name, of): (&String, &Value)| {
        let mut argument = PromptArgument::new(name).with_required(required(name));
        argument.description = of["description"].as_str().map(str::to_owned);
        argument
    };
    let arguments = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(argument)
        .collect();
    let mut prompt = Prompt::new(
        spec.name().to_string(),
        Some(&*spec.decl.description),
        Some(arguments),
    );
    prompt.title = spec.title.as_deref().map(str::to_owned);
    prompt
}

/// The result of a call; its structured data is included if the tool has a schema for it.
pub(super) fn result(result: &CallResult, is_described: bool) -> CallToolResult {
    let content = result.content.iter().map(block).collect();
    if result.is_error() {
        return CallToolResult::error(content);
    }
    let mut told = CallToolResult::success(content);
    told.structured_content = Some(&result.details)
        .filter(|it| is_described && !it.is_null())
        .cloned();
    told
}

/// The messages of a prompt: each piece is a message of the user.
pub(super) fn messages(result: &CallResult, spec: &ToolSpec) -> GetPromptResult {
    let messages = result
        .content
        .iter()
        .map(|content| PromptMessage::new(Role::User, block(content)))
        .collect();
    GetPromptResult::new(messages).with_description(&*spec.decl.description)
}

fn block(content: &Content) -> ContentBlock {
    match content {
        Content::Text { text } => ContentBlock::text(&**text),
        Content::Image(it) => place("image", &it.media_type, &it.source, |data, kind| {
            ContentBlock::Image(ImageContent::new(data, kind))
        }),
        Content::Audio(it) => place("recording", &it.media_type, &it.source, |data, kind| {
            ContentBlock::Audio(AudioContent::new(data, kind))
        }),
        Content::Document(it) => {
            let name = it.name.as_deref().unwrap_or("document");
            place(name, &it.media_type, &it.source, |data, kind| {
                let uri = if name.contains("://") {
                    Cow::Borrowed(name)
                } else {
                    format!("document:///{name}").into()
                };
                ContentBlock::Resource(EmbeddedResource::new(contents(&uri, kind, data)))
            })
        }
        _ => ContentBlock::text("(content that this version cannot show)"),
    }
}

/// Local data is embedded, remote data is linked.
fn place(
    name: &str,
    kind: &str,
    source: &Source,
    here: impl Fn(&str, &str) -> ContentBlock,
) -> ContentBlock {
    match source {
        Source::Base64 { data } => here(data, kind),
        Source::Url { url } => {
            ContentBlock::ResourceLink(Resource::new(&**url, name).with_mime_type(kind))
        }
        _ => ContentBlock::text("(content at a place that this version does not know)"),
    }
}

/// The content of a resource.
pub(super) fn resource(uri: &str, content: &Content) -> Option<ResourceContents> {
    let (kind, source) = match content {
        Content::Text { text } => return Some(ResourceContents::text(&**text, uri)),
        Content::Image(it) => (&it.media_type, &it.source),
        Content::Audio(it) => (&it.media_type, &it.source),
        Content::Document(it) => (&it.media_type, &it.source),
        _ => return None,
    };
    match source {
        Source::Base64 { data } => Some(contents(uri, kind, data)),
        _ => None,
    }
}

/// Text as text, everything else as it is.
fn contents(uri: &str, kind: &str, data: &str) -> ResourceContents {
    let text = kind
        .starts_with("text/")
        .then(|| STANDARD.decode(data).ok())
        .flatten();
    match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => ResourceContents::text(text, uri),
        None => ResourceContents::blob(data, uri),
    }
    .with_mime_type(kind)
}
