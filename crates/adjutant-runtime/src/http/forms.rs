//! The accepted formats of requests, which are part of the error for an invalid request.

use std::sync::Arc;

use adjutant_llm::Schema;
use adjutant_protocols::{ag_ui::RunAgentInput, ai_sdk::ChatRequest};
use serde_json::Value;

use super::OPENAPI;
use crate::prompt::{
    Control, ForkRequest, MessagesRequest, ObjectRequest, PausesRequest, PromptRequest,
    ResumeRequest, SessionsRequest, UndoRequest,
};

/// The maximum number of faults in an error.
const MAX_FAULTS: usize = 3;
/// The maximum number of characters of each.
const MAX_FAULT: usize = 200;

/// A request with a documented format.
pub(crate) trait RequestForm {
    /// The name of its schema in the OpenAPI description; empty for a query.
    const SCHEMA: &'static str = "";
    /// The format as text.
    const FORM: &'static str;
}

impl RequestForm for PromptRequest {
    const SCHEMA: &'static str = "PromptRequest";
    const FORM: &'static str = r#"{"prompt": TEXT, "session": NAME, "timeout_ms": NUMBER}, of which `prompt` must be there"#;
}

impl RequestForm for ResumeRequest {
    const SCHEMA: &'static str = "ResumeRequest";
    const FORM: &'static str = r#"{"session": NAME, "answers": [{"pause": ID, "answer": ANSWER, "shown": DIGEST}, …]}, or {"session": NAME, "pause": ID, "answer": ANSWER, "shown": DIGEST} for one pause, where `session` and `shown` may be left out; ANSWER is {"answer": "approve"}, {"answer": "approve", "args": JSON AS TEXT}, {"answer": "approve", "for_run": true}, {"answer": "deny", "reason": TEXT}, {"answer": "give", "value": ANYTHING}, {"answer": "return", "result": RESULT}, {"answer": "extend", "by": NUMBER} or {"answer": "decline", "message": TEXT}"#;
}

impl RequestForm for ObjectRequest {
    const SCHEMA: &'static str = "ObjectRequest";
    const FORM: &'static str = r#"{"prompt": TEXT, "schema": SCHEMA, "schema_name": NAME, "schema_description": TEXT, "session": NAME}, of which `prompt` and `schema` must be there"#;
}

impl RequestForm for Control {
    const SCHEMA: &'static str = "Control";
    const FORM: &'static str = r#"{"control": "steer", "text": TEXT}, {"control": "follow_up", "text": TEXT}, {"control": "stop"}, {"control": "stop_call", "call": ID}, {"control": "prompt", "text": TEXT, "messages": [ID, …]} or {"control": "answer", "answers": [{"pause": ID, "answer": ANSWER, "shown": DIGEST}, …]}"#;
}

impl RequestForm for ForkRequest {
    const SCHEMA: &'static str = "ForkRequest";
    const FORM: &'static str = r#"{"to": NAME, "at": NUMBER, "model": NAME, "prompt": TEXT, "result": {"call": ID, "text": TEXT}}, of which `to` must be there"#;
}

impl RequestForm for UndoRequest {
    const SCHEMA: &'static str = "UndoRequest";
    const FORM: &'static str = r#"{"to": NUMBER}, where `to` may be left out"#;
}

impl RequestForm for RunAgentInput {
    const SCHEMA: &'static str = "RunAgentInput";
    const FORM: &'static str =
        "AG-UI's `RunAgentInput`, of which `threadId` and `runId` must be there";
}

impl RequestForm for ChatRequest {
    const SCHEMA: &'static str = "ChatRequest";
    const FORM: &'static str = "what `useChat` of the AI SDK sends, of which `id` must be there";
}

impl RequestForm for MessagesRequest {
    const FORM: &'static str =
        "?session=NAME&limit=1 to 1000&before=MARK OF A PAGE, each of which may be left out";
}

impl RequestForm for SessionsRequest {
    const FORM: &'static str = "?limit=1 to 1000&after=MARK OF A PAGE&search=TEXT&state=new, working, waiting, open, done, failed or aside, each of which may be left out";
}

impl RequestForm for PausesRequest {
    const FORM: &'static str =
        "?session=NAME&limit=1 to 1000&after=MARK OF A PAGE, each of which may be left out";
}

/// Returns the error for an invalid request, with the accepted format. `why` is used if the schema finds no violation.
pub(super) fn explain<T: RequestForm>(value: Option<&Value>, why: String) -> String {
    let mut faults = value
        .map(|value| faults(T::SCHEMA, value))
        .unwrap_or_default();
    if faults.is_empty() {
        faults.push(why.chars().take(MAX_FAULT).collect());
    }
    let what = if T::SCHEMA.is_empty() {
        "query"
    } else {
        "request"
    };
    format!(
        "the {what} is not as it must be: {}; hint: it is {}",
        faults.join(", "),
        T::FORM
    )
}

/// Returns the schema violations of a value.
fn faults(name: &str, value: &Value) -> Vec<String> {
    let pointer = format!("/components/schemas/{name}");
    let document = serde_json::from_str(OPENAPI).map(Arc::new).ok();
    let schema = document
        .and_then(|it| Schema::compile(it).ok())
        .and_then(|it| it.part(&pointer).ok());
    let Some(Err(violations)) = schema.map(|it| it.validate(value)) else {
        return Vec::new();
    };
    let told = violations.iter().take(MAX_FAULTS).map(|it| {
        let at = if it.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", it.path)
        };
        format!("{at}{}", it.message)
            .chars()
            .take(MAX_FAULT)
            .collect()
    });
    told.collect()
}
