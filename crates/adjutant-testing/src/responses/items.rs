//! Reads the input items of the Responses wire, and pairs them.

use std::collections::HashSet;

use adjutant_llm::{
    Block, CallResult, Content, Document, Image, Origin, Source, Status, Thinking, UserMessage,
};

use super::place;
use crate::{
    history::{self, History, Misplaced},
    issued::Issued,
    node::Node,
    refusal::Refusal,
    strict::MAX_NAME,
    wire::Wire,
};

/// The largest length of an id.
const MAX_ID: usize = 64;

/// The input of a request, read so far.
pub(super) struct Reading<'a> {
    issued: &'a Issued,
    model: &'a str,
    history: History,
    system: Vec<String>,
    /// The blocks of the model that are not yet in the history.
    said: Vec<Block>,
    ids: HashSet<&'a str>,
    call_ids: HashSet<&'a str>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(model: &'a str, issued: &'a Issued) -> Self {
        Self {
            issued,
            model,
            history: History::new(model),
            system: Vec::new(),
            said: Vec::new(),
            ids: HashSet::new(),
            call_ids: HashSet::new(),
        }
    }

    /// Reads all items; returns the leading system messages and the conversation.
    pub(super) fn read(mut self, items: &[Node<'a>]) -> Result<(Vec<String>, History), Refusal> {
        for (at, item) in items.iter().enumerate() {
            self.item(item)?;
            if kind(item)? == "reasoning" {
                check_next_item(item, items.get(at + 1..).unwrap_or_default())?;
            }
        }
        self.finish_reply();
        self.check_results()?;
        Ok((self.system, self.history))
    }

    fn item(&mut self, item: &Node<'a>) -> Result<(), Refusal> {
        match kind(item)? {
            "message" => self.message(item),
            "reasoning" => self.reasoning(item),
            "function_call" => self.call(item),
            "function_call_output" => self.output(item),
            "item_reference" => {
                let id = item.need("id")?.text()?;
                Err(not_found(id))
            }
            other if other.ends_with("_call") || other == "compaction" => {
                self.check_before_reply()?;
                let value = item.value.clone();
                self.said.push(Block::Opaque {
                    issuer: "openai".into(),
                    value,
                });
                Ok(())
            }
            other => Err(
                refuse(&item.need("type")?, &format!("Invalid value: '{other}'."))
                    .code("invalid_value"),
            ),
        }
    }

    fn message(&mut self, item: &Node<'a>) -> Result<(), Refusal> {
        let (role, content) = (item.need("role")?, item.need("content")?);
        match role.text()? {
            "assistant" => {
                self.id(item, "msg")?;
                self.check_before_reply()?;
                let text = texts(&content, &["output_text", "refusal"])?;
                self.said.push(Block::text(text));
            }
            "user" => {
                self.finish_reply();
                self.check_results()?;
                self.history.user(UserMessage::from(contents(&content)?));
            }
            "system" | "developer" => {
                let text = texts(&content, &["input_text"])?;
                self.finish_reply();
                self.check_results()?;
                if self.history.is_empty() {
                    self.system.push(text);
                } else {
                    let origin = Origin::Reminder {
                        by: "system".into(),
                    };
                    self.history.user(UserMessage {
                        origin,
                        ..UserMessage::text(text)
                    });
                }
            }
            other => {
                return Err(
                    refuse(&role, &format!("Invalid value: '{other}'.")).code("invalid_value")
                );
            }
        }
        Ok(())
    }

    fn reasoning(&mut self, item: &Node<'a>) -> Result<(), Refusal> {
        let id = self.id(item, "rs")?.unwrap_or("rs_unknown");
        self.check_before_reply()?;
        let mut text = Vec::new();
        for part in item.need("summary")?.items()? {
            if part.need("type")?.text()? != "summary_text" {
                return Err(refuse(
                    &part,
                    "Invalid value. Supported values are: 'summary_text'.",
                ));
            }
            text.push(part.need("text")?.text()?);
        }
        let Some(sealed) = item.field("encrypted_content") else {
            return Err(not_found(id));
        };
        if !self
            .issued
            .accepts(Wire::Responses, self.model, sealed.text()?)
        {
            let message = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be \
                 decrypted or parsed."
            );
            return Err(Refusal::invalid(message).code("invalid_encrypted_content"));
        }
        self.said.push(Block::Thinking(Thinking {
            text: text.join("\n\n").into(),
            signature: Some(sealed.text()?.into()),
            redacted: false,
            extra: Default::default(),
        }));
        Ok(())
    }

    fn call(&mut self, item: &Node<'a>) -> Result<(), Refusal> {
        self.id(item, "fc")?;
        self.check_before_reply()?;
        let call_id = call_id(item)?;
        let name = item.need("name")?.word(MAX_NAME)?;
        let arguments = item.need("arguments")?.text()?;
        if !self.call_ids.insert(call_id) {
            let message = format!(
                "Duplicate item found with call_id {call_id}. Remove duplicate items from your input."
            );
            return Err(Refusal::invalid(message).param("input"));
        }
        let id = self.history.call_id(self.said.len());
        self.said.push(history::call(id, call_id, name, arguments));
        Ok(())
    }

    fn output(&mut self, item: &Node<'a>) -> Result<(), Refusal> {
        self.finish_reply();
        let call_id = call_id(item)?;
        let output = item.need("output")?;
        let mut result = CallResult::new(Status::Ok, "");
        result.content = match output.value.as_str() {
            Some(text) => vec![Content::text(text)],
            None => contents(&output)?,
        };
        self.history.result(call_id, result).map_err(|misplaced| {
            let message = match misplaced {
                Misplaced::NoCall => {
                    format!("No tool call found for function call output with call_id {call_id}.")
                }
                Misplaced::Twice => {
                    format!("Duplicate function call output found with call_id {call_id}.")
                }
            };
            Refusal::invalid(message).param("input")
        })
    }

    /// Checks the id of an item, if it has one, and that its preceding reasoning is present.
    fn id(&mut self, item: &Node<'a>, prefix: &str) -> Result<Option<&'a str>, Refusal> {
        let Some(node) = item.field("id") else {
            return Ok(None);
        };
        let id = node.text()?;
        if !id.starts_with(prefix) {
            return Err(refuse(
                &node,
                &format!("'{id}'. Expected an ID that begins with '{prefix}'."),
            )
            .code("invalid_value"));
        }
        check_length(&node, id)?;
        node.word(MAX_ID)?;
        if let Some(reasoning) = self
            .issued
            .reasoning_of(id)
            .filter(|it| !self.ids.contains(it.as_str()))
        {
            let kind = kind(item)?;
            let message = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
            );
            return Err(Refusal::invalid(message).param("input"));
        }
        if !self.ids.insert(id) {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            );
            return Err(Refusal::invalid(message).param("input"));
        }
        Ok(Some(id))
    }

    fn finish_reply(&mut self) {
        if !self.said.is_empty() {
            self.history.reply(std::mem::take(&mut self.said));
        }
    }

    /// Results of the reply before must be whole when the next one begins.
    fn check_before_reply(&mut self) -> Result<(), Refusal> {
        if self.said.is_empty() {
            self.check_results()
        } else {
            Ok(())
        }
    }

    fn check_results(&mut self) -> Result<(), Refusal> {
        self.history.close().map_err(|missing| {
            let first = missing.first().map(String::as_str).unwrap_or_default();
            Refusal::invalid(format!("No tool output found for function call {first}."))
                .param("input")
        })
    }
}

/// Checks that an item of the model follows its reasoning.
fn check_next_item(item: &Node<'_>, rest: &[Node<'_>]) -> Result<(), Refusal> {
    for next in rest {
        match kind(next)? {
            "reasoning" => continue,
            "function_call" => return Ok(()),
            "message" if next.value["role"] == "assistant" => return Ok(()),
            other if other.ends_with("_call") || other == "compaction" => return Ok(()),
            _ => break,
        }
    }
    let id = item.value["id"].as_str().unwrap_or("rs_unknown");
    let message = format!(
        "Item '{id}' of type 'reasoning' was provided without its required following item."
    );
    Err(Refusal::invalid(message).param("input"))
}

fn kind<'a>(item: &Node<'a>) -> Result<&'a str, Refusal> {
    item.object()?;
    match item.field("type") {
        Some(kind) => kind.text(),
        None if item.field("role").is_some() => Ok("message"),
        None => item.need("type")?.text(),
    }
}

fn call_id<'a>(item: &Node<'a>) -> Result<&'a str, Refusal> {
    let node = item.need("call_id")?;
    let id = node.text()?;
    if id.is_empty() {
        return Err(refuse(
            &node,
            "empty string. Expected a string with minimum length 1.",
        )
        .code("empty_string"));
    }
    check_length(&node, id)?;
    Ok(id)
}

fn check_length(node: &Node<'_>, id: &str) -> Result<(), Refusal> {
    if id.len() <= MAX_ID {
        return Ok(());
    }
    let told = format!(
        "string too long. Expected a string with maximum length {MAX_ID}, but got a string with length {} instead.",
        id.len()
    );
    Err(refuse(node, &told).code("string_above_max_length"))
}

fn not_found(id: &str) -> Refusal {
    let message = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` \
         set to true, or remove this item from your input."
    );
    Refusal::new(404, message).param("input")
}

fn refuse(node: &Node<'_>, why: &str) -> Refusal {
    Refusal::invalid(format!("Invalid '{}': {why}", place(&node.path))).param(node.path.clone())
}

/// A string, or text parts of these types, joined.
fn texts(content: &Node<'_>, types: &[&str]) -> Result<String, Refusal> {
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut whole = String::new();
    for part in content.items()? {
        let kind = part.need("type")?;
        if !types.contains(&kind.text()?) {
            return Err(refuse_type(&kind, types));
        }
        let field = if kind.text()? == "refusal" {
            "refusal"
        } else {
            "text"
        };
        whole.push_str(part.need(field)?.text()?);
    }
    Ok(whole)
}

/// A string, or parts of any kind that a user may send.
fn contents(content: &Node<'_>) -> Result<Vec<Content>, Refusal> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![Content::text(text)]);
    }
    content.items()?.iter().map(part).collect()
}

fn part(part: &Node<'_>) -> Result<Content, Refusal> {
    let kind = part.need("type")?;
    match kind.text()? {
        "input_text" => Ok(Content::text(part.need("text")?.text()?)),
        "input_image" => {
            let (media_type, source) = source(&part.need("image_url")?, "image/*")?;
            Ok(Content::Image(Image {
                media_type: media_type.into(),
                source,
            }))
        }
        "input_file" => {
            let name = part
                .field("filename")
                .map(|it| it.text())
                .transpose()?
                .map(Into::into);
            let (media_type, source) = match part.field("file_url") {
                Some(url) => (
                    "application/pdf".to_owned(),
                    Source::Url {
                        url: url.words()?.into(),
                    },
                ),
                None => source(&part.need("file_data")?, "application/pdf")?,
            };
            Ok(Content::Document(Document {
                media_type: media_type.into(),
                name,
                source,
            }))
        }
        _ => Err(refuse_type(
            &kind,
            &["input_text", "input_image", "input_file"],
        )),
    }
}

fn source(url: &Node<'_>, media_type: &str) -> Result<(String, Source), Refusal> {
    let text = url.words()?;
    let Some(data) = text.strip_prefix("data:") else {
        return Ok((media_type.to_owned(), Source::Url { url: text.into() }));
    };
    let (media_type, data) = data
        .split_once(";base64,")
        .ok_or_else(|| refuse(url, "Expected a base64-encoded data URL.").code("invalid_value"))?;
    Ok((media_type.to_owned(), Source::Base64 { data: data.into() }))
}

fn refuse_type(kind: &Node<'_>, types: &[&str]) -> Refusal {
    let supported: Vec<String> = types.iter().map(|it| format!("'{it}'")).collect();
    let value = kind.value.as_str().unwrap_or_default();
    let message = format!(
        "Invalid value: '{value}'. Supported values are: {}.",
        supported.join(", ")
    );
    Refusal::invalid(message)
        .param(kind.path.clone())
        .code("invalid_value")
}
