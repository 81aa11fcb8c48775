//! How a server speaks `/api/chat`, from its documents and not from the wire that is held to it.
//!
//! Source: "Chat", "Thinking", "Tool calling" and "Errors", docs.ollama.com, 2026.

use adjutant_llm::{
    Block, BlockKind, CallResult, Chunk, Content, Effort, FinishReason, Format, Image, Options,
    Reply, Request, Source, Status, Thinking, ToolChoice, ToolDecl, Usage, UserMessage,
};
use adjutant_testing::{
    Received,
    oracle::{Body, Frame, History, Oracle, Refusal, Speaker, call},
};
use serde_json::{Value, json};

/// The words for an input that is too long.
const OVERFLOW: &str = "prompt too long; exceeded max context length by 12 tokens";

#[derive(Debug)]
pub(crate) struct OllamaServer;

impl Oracle for OllamaServer {
    fn path(&self) -> &str {
        "/api/chat"
    }

    fn read(&self, received: &Received) -> Result<(Request, Box<dyn Speaker>), Refusal> {
        let body = received.json();
        let model = body["model"]
            .as_str()
            .filter(|it| !it.is_empty())
            .ok_or_else(|| bad("model is required"))?;
        if body.get("stream") == Some(&Value::Bool(false)) {
            return Err(bad("only streams are served here"));
        }
        let (system, history) = conversation(model, list(&body, "messages")?)?;
        let mut request = Request::new()
            .system(system)
            .tools(tools(&body)?)
            .options(options(&body)?);
        request.entries = history.finish();
        let head = json!({"model": model, "created_at": "2026-01-01T00:00:00Z"});
        Ok((
            request,
            Box::new(Writer {
                head,
                usage: Usage::default(),
                open: None,
            }),
        ))
    }

    fn error(&self, refusal: &Refusal) -> Value {
        json!({"error": refusal.message_or(OVERFLOW)})
    }
}

fn bad(why: impl Into<String>) -> Refusal {
    Refusal::invalid(why)
}

fn list<'a>(of: &'a Value, field: &str) -> Result<&'a [Value], Refusal> {
    match &of[field] {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => Err(bad(format!(
            "json: cannot unmarshal {field} into Go value of type []"
        ))),
    }
}

fn text<'a>(of: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    match &of[field] {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        _ => Err(bad(format!(
            "json: cannot unmarshal {field} into Go value of type string"
        ))),
    }
}

fn conversation(model: &str, messages: &[Value]) -> Result<(String, History), Refusal> {
    let (mut system, mut history) = (String::new(), History::new(model));
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role")?;
        if role != "tool" {
            answered(&mut history)?;
        }
        let mut content: Vec<Content> = Some(text(message, "content")?)
            .filter(|it| !it.is_empty())
            .map(Content::text)
            .into_iter()
            .collect();
        for image in list(message, "images")? {
            let data = image.as_str().ok_or_else(|| bad("illegal base64 data"))?;
            content.push(Content::Image(Image {
                media_type: "image/png".into(),
                source: Source::Base64 { data: data.into() },
            }));
        }
        match role {
            "system" if at == 0 => text(message, "content")?.clone_into(&mut system),
            "user" => history.user(UserMessage::from(content)),
            "assistant" => assistant(&mut history, message)?,
            "tool" => {
                let mut result = CallResult::new(Status::Ok, "");
                result.content = content;
                let id = text(message, "tool_call_id")?;
                history
                    .result(id, result)
                    .map_err(|why| bad(format!("no such call: {id} ({why:?})")))?;
            }
            other => return Err(bad(format!("invalid role: {other}"))),
        }
    }
    answered(&mut history)?;
    Ok((system, history))
}

fn answered(history: &mut History) -> Result<(), Refusal> {
    history
        .close()
        .map_err(|missing| bad(format!("calls without a result: {}", missing.join(", "))))
}

fn assistant(history: &mut History, message: &Value) -> Result<(), Refusal> {
    let mut blocks = Vec::new();
    let thinking = text(message, "thinking")?;
    blocks.extend((!thinking.is_empty()).then(|| Block::Thinking(Thinking::new(thinking))));
    let said = text(message, "content")?;
    blocks.extend((!said.is_empty()).then(|| Block::text(said)));
    for it in list(message, "tool_calls")? {
        let (name, arguments) = (text(&it["function"], "name")?, &it["function"]["arguments"]);
        if name.is_empty() || !arguments.is_object() {
            return Err(bad("json: cannot unmarshal tool_calls.function.arguments"));
        }
        blocks.push(call(
            history.call_id(blocks.len()),
            text(it, "id")?,
            name,
            arguments.to_string(),
        ));
    }
    history.reply(blocks);
    Ok(())
}

fn tools(body: &Value) -> Result<Vec<ToolDecl>, Refusal> {
    let of = |it: &Value| {
        let function = &it["function"];
        let known = it["type"] == "function" && function["parameters"]["type"] == "object";
        if !known {
            return Err(bad("a tool is a function with an object of parameters"));
        }
        let (name, description) = (
            text(function, "name")?.into(),
            text(function, "description")?.into(),
        );
        Ok(ToolDecl {
            name,
            description,
            schema: function["parameters"].clone().into(),
        })
    };
    list(body, "tools")?.iter().map(of).collect()
}

fn options(body: &Value) -> Result<Options, Refusal> {
    let asked = &body["options"];
    let mut options = Options {
        max_output_tokens: asked["num_predict"].as_u64(),
        temperature: asked["temperature"].as_f64(),
        top_p: asked["top_p"].as_f64(),
        seed: asked["seed"].as_u64(),
        stop: list(asked, "stop")?
            .iter()
            .filter_map(|it| Some(it.as_str()?.into()))
            .collect(),
        tool_choice: ToolChoice::Auto,
        ..Options::default()
    };
    options.thinking = match &body["think"] {
        Value::Null => None,
        Value::Bool(false) => Some(Effort::Off),
        Value::Bool(true) => Some(Effort::High),
        word if ["low", "medium", "high"].iter().any(|it| word == it) => Some(Effort::High),
        other => return Err(bad(format!("invalid think value: {other}"))),
    };
    let format = &body["format"];
    options.format = format
        .is_object()
        .then(|| Format::new("answer", format.clone()));
    Ok(options)
}

/// Writes the lines of one answer.
struct Writer {
    head: Value,
    usage: Usage,
    /// The block that is open, and the field that its text goes into; whether any went.
    open: Option<(u32, &'static str, bool)>,
}

impl Writer {
    fn line(&self, message: Value, end: Option<Value>, body: &mut Body) {
        let mut line = self.head.clone();
        line["message"] = message;
        line["done"] = end.is_some().into();
        let frame = if end.is_some() {
            Frame::UsageAndFinish
        } else {
            Frame::Content
        };
        if let (Some(line), Some(Value::Object(end))) = (line.as_object_mut(), end) {
            line.extend(end);
        }
        body.frame(frame, |to| {
            to.extend_from_slice(format!("{line}\n").as_bytes())
        });
    }

    fn say(&mut self, block: u32, text: &str, body: &mut Body) {
        let Some((_, field, said)) = self.open.as_mut().filter(|(open, ..)| *open == block) else {
            return;
        };
        *said = true;
        let mut message = json!({"role": "assistant", "content": ""});
        message[*field] = text.into();
        self.line(message, None, body);
    }

    fn close(&mut self, block: u32, content: &Block, body: &mut Body) {
        let whole = match content {
            Block::Text(it) => &*it.text,
            Block::Thinking(it) => &*it.text,
            _ => "",
        };
        if self.open.is_some_and(|(.., said)| !said) && !whole.is_empty() {
            self.say(block, whole, body);
        }
        self.open = None;
        let Block::Call(call) = content else { return };
        let args = if call.args.is_empty() {
            "{}"
        } else {
            &*call.args
        };
        // A call that is cut off, or is none, is not told.
        if let Ok(args @ Value::Object(_)) = serde_json::from_str(args) {
            let id = format!("call_{:08}", call.id.block);
            let made = json!([{"id": id, "function": {"name": call.name, "arguments": args}}]);
            self.line(
                json!({"role": "assistant", "content": "", "tool_calls": made}),
                None,
                body,
            );
        }
    }

    fn done(&self, reply: &Reply, body: &mut Body) {
        let usage = if reply.usage == Usage::default() {
            self.usage
        } else {
            reply.usage
        };
        let reason = if reply.stop == FinishReason::Length {
            "length"
        } else {
            "stop"
        };
        let end = json!({
            "done_reason": reply.raw_stop.as_deref().unwrap_or(reason),
            "total_duration": 1_000_000,
            "prompt_eval_count": usage.input(),
            "eval_count": usage.output,
        });
        self.line(json!({"role": "assistant", "content": ""}), Some(end), body);
    }
}

impl Speaker for Writer {
    fn chunk(&mut self, chunk: &Chunk, body: &mut Body) -> Result<(), Refusal> {
        match chunk {
            Chunk::Open {
                block,
                kind: BlockKind::Text,
            } => self.open = Some((*block, "content", false)),
            Chunk::Open {
                block,
                kind: BlockKind::Thinking,
            } => self.open = Some((*block, "thinking", false)),
            Chunk::Delta { block, text } => self.say(*block, text, body),
            Chunk::Close { block, content } => self.close(*block, content, body),
            Chunk::Usage { usage, .. } => self.usage = *usage,
            Chunk::Done(reply)
                if matches!(reply.stop, FinishReason::Refused | FinishReason::Filtered) =>
            {
                return Err(Refusal::new(500, "an open model has no word for a refusal"));
            }
            Chunk::Done(reply) => self.done(reply, body),
            _ => {}
        }
        Ok(())
    }
}
