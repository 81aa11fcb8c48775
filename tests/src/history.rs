//! Pieces of conversations: tools, pictures, signed thinking, and replies with their results.

use std::sync::Arc;

use adjutant::llm::{
    Call, CallResult, Content, Entry, Image, Reply, Request, Source, Thinking, ToolDecl, Turn,
};
use serde_json::json;

/// One transparent pixel, in base64.
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A picture of one pixel.
pub fn pixel() -> Content {
    Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 { data: PIXEL.into() },
    })
}

/// Thinking with this signature, which should be base64.
pub fn signed(text: &str, signature: &str) -> Thinking {
    let mut thinking = Thinking::new(text);
    thinking.signature = Some(signature.into());
    thinking
}

/// Two tools, `look` and `find`, that want a city.
pub fn tools() -> Vec<ToolDecl> {
    let schema = Arc::new(json!({
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A name."}},
        "required": ["city"],
        "additionalProperties": false,
    }));
    let tool = |name: &str, description: &str| ToolDecl {
        name: name.into(),
        description: description.into(),
        schema: Arc::clone(&schema),
    };
    vec![
        tool("look", "Looks at a city."),
        tool("find", "Finds a city."),
    ]
}

/// A reply with a result for each of its calls.
///
/// # Panics
/// If two calls have one id.
#[track_caller]
pub fn pair(reply: &Arc<Reply>, result: impl Fn(&Call) -> CallResult) -> Entry {
    let mut open = Turn::open(Arc::clone(reply));
    for call in reply.calls() {
        open.put(call.id, Arc::new(result(call)))
            .expect("each call has an id of its own");
    }
    Entry::Turn(open.close().expect("each call has a result"))
}

/// The request with a reply at its end.
#[track_caller]
pub fn answered(
    mut request: Request,
    reply: &Arc<Reply>,
    result: impl Fn(&Call) -> CallResult,
) -> Request {
    request.entries.push(pair(reply, result));
    request
}
