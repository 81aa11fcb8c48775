//! The tool `recall`: reads the result of an earlier call from the history, a page at a time.

use adjutant_llm::{CallId, CallResult};
use adjutant_tool::{
    CallContext, Conversation, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::clip::clip;

pub(super) const NAME: &str = "recall";
/// The default number of characters of a page.
const PAGE_CHARS: usize = 8_000;
/// The largest number of characters of a page.
const MAX_PAGE_CHARS: usize = 20_000;

#[derive(Deserialize)]
struct Args {
    id: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

pub(super) fn tool() -> impl ErasedTool + 'static {
    let description = "Shows the result of an earlier call that was taken out of the conversation, a page at a time.";
    let schema = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "The id that stands where the result was." },
            "offset": { "type": "integer", "minimum": 0, "description": "The first character to show; 0 without it." },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MAX_PAGE_CHARS,
                "description": format!("How many characters to show; {PAGE_CHARS} without it."),
            },
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        title: Some("Recall a result".into()),
        replay: Replay::Pure,
        ..ToolSpec::new(NAME, description, schema)
    };
    tool_fn(spec, |args, cx| async move { recall(args, &cx) })
}

fn recall(args: Value, cx: &CallContext) -> Result<CallResult, ToolError> {
    let wrong = |message: String| ToolError::new(ToolErrorKind::InvalidArguments, message);
    let args: Args = serde_json::from_value(args).map_err(|error| wrong(error.to_string()))?;
    let id: CallId = args
        .id
        .trim()
        .parse()
        .map_err(|error: adjutant_llm::CallIdError| wrong(error.to_string()))?;
    let conversation = cx
        .get::<Conversation>()
        .ok_or_else(|| ToolError::failed("there is no conversation to read"))?;
    let result = conversation
        .result(&id)
        .ok_or_else(|| ToolError::failed(format!("no call {id} has a result")))?;
    page(
        &result.text(),
        args.offset,
        args.limit.unwrap_or(PAGE_CHARS).clamp(1, MAX_PAGE_CHARS),
    )
    .map_err(wrong)
}

fn page(text: &str, offset: usize, limit: usize) -> Result<CallResult, String> {
    let whole = text.chars().count();
    if offset > 0 && offset >= whole {
        return Err(format!(
            "the result has {whole} characters: none stands at {offset}"
        ));
    }
    let rest = &text[clip(text, offset).len()..];
    let shown = clip(rest, limit);
    if offset == 0 && shown.len() == text.len() {
        return Ok(CallResult::ok(shown));
    }
    let end = offset + shown.chars().count();
    let more = if end < whole {
        format!("; offset {end} shows more")
    } else {
        String::new()
    };
    Ok(CallResult::ok(format!(
        "{shown}\n[characters {offset} to {end} of {whole}{more}]"
    )))
}
