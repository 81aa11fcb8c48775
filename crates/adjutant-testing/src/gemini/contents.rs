//! Reads the contents of the Gemini wire, and pairs calls with their responses.
//!
//! Signatures are required only in the current turn: after the last user content that is not a function response.
//!
//! Source: Gemini API guide "Thought signatures", section "Validation", August 2026.

use adjutant_llm::{
    Audio, Block, CallResult, Content, Document, Image, Source, Status, Thinking, UserMessage,
};
use serde_json::{Map, Value};

use super::signs_calls;
use crate::{
    history::{self, History},
    issued::{self, Issued},
    node::Node,
    refusal::Refusal,
    wire::Wire,
};

/// The text that the vendor takes in the place of a signature of another model.
const SENTINEL: &str = "skip_thought_signature_validator";
/// The error message for calls and responses that do not pair.
const UNEQUAL: &str = "Please ensure that the number of function response parts is equal to the number of function \
                       call parts of the function call turn.";
/// The fields of which a part may hold one.
const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

/// The contents of a request, read so far.
pub(super) struct Reading<'a> {
    issued: &'a Issued,
    model: &'a str,
    history: History,
    /// The calls that wait for their responses: our wire id, the vendor's id, and the name.
    waiting: Vec<(String, Option<&'a str>, &'a str)>,
    calls: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(model: &'a str, issued: &'a Issued) -> Self {
        Self {
            issued,
            model,
            history: History::new(model),
            waiting: Vec::new(),
            calls: 0,
        }
    }

    pub(super) fn read(mut self, contents: &[Node<'a>]) -> Result<History, Refusal> {
        let current = contents.iter().rposition(is_prompt).unwrap_or_default();
        for (at, content) in contents.iter().enumerate() {
            let parts = content
                .field("parts")
                .map(|it| it.items())
                .transpose()?
                .unwrap_or_default();
            if parts.is_empty() {
                return Err(Refusal::invalid(format!(
                    "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n"
                )));
            }
            parts.iter().try_for_each(check_part)?;
            match content.field("role").map(|it| it.text()).transpose()? {
                Some("user") | None => self.user(&parts)?,
                Some("model") if at == 0 => {
                    return Err(Refusal::invalid(
                        "Please ensure that the first content has the role 'user'.",
                    ));
                }
                Some("model") => {
                    let after_user = contents
                        .get(at - 1)
                        .is_some_and(|before| before.value["role"] != "model");
                    self.model(&parts, after_user, at > current)?;
                }
                Some(_) => return Err(Refusal::invalid("Please use a valid role: user, model.")),
            }
        }
        if !self.waiting.is_empty() {
            return Err(Refusal::invalid(UNEQUAL));
        }
        Ok(self.history)
    }

    fn user(&mut self, parts: &[Node<'a>]) -> Result<(), Refusal> {
        let responses: Vec<Node<'a>> = parts
            .iter()
            .filter_map(|part| part.field("functionResponse"))
            .collect();
        if responses.len() != self.waiting.len() {
            return Err(Refusal::invalid(if self.waiting.is_empty() {
                "Please ensure that function response turn comes immediately after a function call turn."
            } else {
                UNEQUAL
            }));
        }
        for (response, (wire_id, id, name)) in
            responses.iter().zip(std::mem::take(&mut self.waiting))
        {
            self.response(response, &wire_id, id, name)?;
        }
        // Each call got its response above.
        let _ = self.history.close();
        let rest = parts
            .iter()
            .filter(|part| part.field("functionResponse").is_none());
        let content = rest.map(content).collect::<Result<Vec<_>, _>>()?;
        if !content.is_empty() {
            self.history.user(UserMessage::from(content));
        }
        Ok(())
    }

    fn response(
        &mut self,
        node: &Node<'a>,
        wire_id: &str,
        id: Option<&str>,
        name: &str,
    ) -> Result<(), Refusal> {
        let told = node.need("name")?.text()?;
        if told != name {
            let message = format!(
                "Please ensure that the function response name '{told}' matches the function call name '{name}'."
            );
            return Err(Refusal::invalid(message));
        }
        let told = node.field("id").map(|it| it.text()).transpose()?;
        if told.is_some() && told != id {
            return Err(
                node.refuse("the id of the function response is not that of its function call")
            );
        }
        let response = node.need("response")?;
        let mut result = result(response.object()?);
        for part in node
            .field("parts")
            .map(|it| it.items())
            .transpose()?
            .unwrap_or_default()
        {
            result.content.push(content(&part)?);
        }
        // The id is one of the open ones, each once.
        let _ = self.history.result(wire_id, result);
        Ok(())
    }

    fn model(
        &mut self,
        parts: &[Node<'a>],
        after_user: bool,
        current: bool,
    ) -> Result<(), Refusal> {
        if !self.waiting.is_empty() {
            return Err(Refusal::invalid(UNEQUAL));
        }
        let mut said = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let signature = self.signature(part)?;
            if let Some(call) = part.field("functionCall") {
                if !after_user {
                    return Err(Refusal::invalid(
                        "Please ensure that function call turn comes immediately after a user turn or after a \
                         function response turn.",
                    ));
                }
                let first = self.waiting.is_empty();
                if first && current && signature.is_none() && signs_calls(self.model) {
                    return Err(refuse_unsigned(call.need("name")?.text()?, at + 1));
                }
                said.push(self.call(&call, said.len())?);
            } else {
                said.push(block(part, signature)?);
            }
        }
        self.history.reply(said);
        Ok(())
    }

    fn call(&mut self, call: &Node<'a>, at: usize) -> Result<Block, Refusal> {
        let name = call.need("name")?.text()?;
        let args = match call.field("args") {
            Some(args) => Value::Object(args.object()?.clone()),
            None => Value::Object(Map::new()),
        };
        let id = call.field("id").map(|it| it.text()).transpose()?;
        let wire_id = format!("call_{}", self.calls);
        self.calls += 1;
        let block = history::call(self.history.call_id(at), &wire_id, name, args.to_string());
        self.waiting.push((wire_id, id, name));
        Ok(block)
    }

    /// The signature of a part, checked.
    fn signature(&self, part: &Node<'a>) -> Result<Option<&'a str>, Refusal> {
        let Some(node) = part.field("thoughtSignature") else {
            return Ok(None);
        };
        let signature = node.text()?;
        if signature == SENTINEL {
            return Ok(Some(signature));
        }
        if signature.is_empty() || !issued::is_base64(signature) {
            let message = format!(
                "Invalid value at '{}' (TYPE_BYTES), Base64 decoding failed",
                node.path
            );
            return Err(Refusal::invalid(message));
        }
        if !self.issued.accepts(Wire::Gemini, self.model, signature) {
            return Err(Refusal::invalid("Corrupted thought signature."));
        }
        Ok(Some(signature))
    }
}

/// True if a content begins a turn: it is the user's and holds more than responses.
fn is_prompt(content: &Node<'_>) -> bool {
    let parts = content.value["parts"].as_array();
    content.value["role"] != "model"
        && parts.is_some_and(|parts| {
            parts
                .iter()
                .any(|part| part.get("functionResponse").is_none())
        })
}

fn refuse_unsigned(name: &str, position: usize) -> Refusal {
    Refusal::invalid(format!(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
         correctly, and missing thought_signature may lead to degraded model performance. Additional data, function \
         call `default_api:{name}` , position {position}. Please refer to \
         https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    ))
}

/// Checks that a part holds one thing, and no text that is empty without a reason.
fn check_part(part: &Node<'_>) -> Result<(), Refusal> {
    part.object()?;
    let held = DATA
        .iter()
        .filter(|name| part.field(name).is_some())
        .count();
    let empty = part.value["text"] == "" && part.field("thoughtSignature").is_none();
    if held == 1 && !empty {
        return Ok(());
    }
    Err(part.refuse("required oneof field 'data' must have one initialized field"))
}

fn block(part: &Node<'_>, signature: Option<&str>) -> Result<Block, Refusal> {
    let Some(text) = part.field("text") else {
        return match part
            .field("functionResponse")
            .or_else(|| part.field("fileData"))
        {
            Some(_) => Err(part.refuse("the role 'model' cannot say this")),
            None => Ok(Block::Opaque {
                issuer: "google".into(),
                value: part.value.clone(),
            }),
        };
    };
    if part.value["thought"] != true {
        return Ok(Block::text(text.text()?));
    }
    let mut thinking = Thinking::new(text.text()?);
    thinking.signature = signature.map(Into::into);
    Ok(Block::Thinking(thinking))
}

fn content(part: &Node<'_>) -> Result<Content, Refusal> {
    if let Some(text) = part.field("text") {
        return Ok(Content::text(text.text()?));
    }
    let (data, source) = match (part.field("inlineData"), part.field("fileData")) {
        (Some(data), _) => {
            let node = data.need("data")?;
            if !issued::is_base64(node.words()?) {
                let message = format!(
                    "Invalid value at '{}' (TYPE_BYTES), Base64 decoding failed",
                    node.path
                );
                return Err(Refusal::invalid(message));
            }
            (
                data,
                Source::Base64 {
                    data: node.text()?.into(),
                },
            )
        }
        (None, Some(data)) => {
            let url = data.need("fileUri")?.words()?.into();
            (data, Source::Url { url })
        }
        (None, None) => return Err(part.refuse("the role 'user' cannot say this")),
    };
    let media_type = match data.field("mimeType") {
        Some(node) => node.words()?,
        None if data.field("fileUri").is_some() => "application/octet-stream",
        None => data.need("mimeType")?.words()?,
    };
    if media_type.starts_with("image/") {
        return Ok(Content::Image(Image {
            media_type: media_type.into(),
            source,
        }));
    }
    if media_type.starts_with("audio/") {
        return Ok(Content::Audio(Audio {
            media_type: media_type.into(),
            source,
        }));
    }
    let name = data
        .field("displayName")
        .map(|it| it.text())
        .transpose()?
        .map(Into::into);
    Ok(Content::Document(Document {
        media_type: media_type.into(),
        name,
        source,
    }))
}

/// A result: `output` and `error` have a meaning, everything else is its own text.
fn result(response: &Map<String, Value>) -> CallResult {
    let said = |name: &str| response.get(name).and_then(Value::as_str);
    match (said("output").or(said("result")), said("error")) {
        (Some(text), _) => CallResult::ok(text),
        (None, Some(text)) => CallResult::new(Status::Failed, text),
        (None, None) => CallResult::ok(Value::Object(response.clone()).to_string()),
    }
}
