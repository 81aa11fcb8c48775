//! Requests as bytes. Pure.

use std::borrow::Cow;

use adjutant_llm::{Cache, Effort, Entry, ModelInfo, Request, Source, ToolChoice, Warning};
use adjutant_providers::wire::{
    Effective, Encode, Few, Messages, Piece, ProjectedEntry, ProjectedReply, ReplyPart, Tail,
    effective, extra, member, project_entry, warn, warn_changed, wire_name, write,
};
use serde_json::{Map, Value, json};

use crate::wire::{Call, Declaration, Function, Message, Tool};

/// Extra fields that would contradict the request.
const RESERVED: [&str; 4] = ["model", "messages", "stream", "tools"];
const NO_ADDRESSES: &str = "[image omitted: Ollama fetches no addresses]";
const NO_OTHERS: &str = "[file omitted: Ollama takes pictures only]";

/// Ollama's native chat, for one model.
#[derive(Debug, Clone)]
pub struct Ollama {
    info: ModelInfo,
}

impl Ollama {
    /// The wire of this model.
    pub fn new(info: &ModelInfo) -> Self {
        let mut info = info.clone();
        (info.inputs.documents, info.inputs.audio) = (false, false);
        Self { info }
    }

    /// The parameters of the model; the caller's own ones take precedence.
    fn parameters(&self, request: &Request, options: &Effective<'_>) -> Map<String, Value> {
        // Without it, what does not fit a smaller window is cut off in silence.
        let mut all = Map::from_iter([("num_ctx".to_owned(), self.info.context_window.into())]);
        let mut set = |name: &str, value: Option<Value>| {
            all.extend(value.map(|value| (name.to_owned(), value)))
        };
        set("num_predict", options.max_output_tokens.map(Value::from));
        set("temperature", options.temperature.map(Value::from));
        set("top_p", options.top_p.map(Value::from));
        set("seed", options.seed.map(Value::from));
        set(
            "stop",
            (!options.stop.is_empty()).then(|| json!(options.stop)),
        );
        let own = request
            .options
            .extra
            .get("options")
            .and_then(Value::as_object);
        all.extend(
            own.into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        all
    }

    /// The wire value of an effort: models with several levels get one, all others only whether to think.
    fn think(&self, effort: Effort) -> Value {
        let levels = self
            .info
            .efforts
            .iter()
            .filter(|it| **it != Effort::Off)
            .count();
        match effort {
            Effort::Off => false.into(),
            _ if levels < 2 => true.into(),
            Effort::Minimal | Effort::Low => "low".into(),
            Effort::Medium => "medium".into(),
            _ => "high".into(),
        }
    }

    fn warn(&self, options: &Effective<'_>, request: &Request, warnings: &mut Vec<Warning>) {
        let forced = matches!(
            options.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        );
        let asked = [
            (forced, "tool_choice"),
            (options.sequential_calls, "sequential_calls"),
            (request.options.cache == Cache::Long, "cache"),
            (!request.options.server_tools.is_empty(), "server_tools"),
        ];
        for (_, what) in asked.into_iter().filter(|(asked, _)| *asked) {
            warn(
                warnings,
                format!("{what} was dropped: Ollama has no word for it"),
            );
        }
    }

    fn user<'a>(&self, pieces: &Few<Piece<'a>>, warnings: &mut Vec<Warning>) -> Message<'a> {
        let mut message = Message {
            role: "user",
            ..Message::default()
        };
        let mut say = |text: &'a str| match &mut message.content {
            empty if empty.is_empty() => *empty = Cow::Borrowed(text),
            said => said.to_mut().extend(["\n", text]),
        };
        for piece in pieces.iter() {
            let omitted = match piece {
                Piece::Text(text) => {
                    say(text);
                    continue;
                }
                Piece::Image(image) => match &image.source {
                    Source::Base64 { data } => {
                        message.images.push(data);
                        continue;
                    }
                    _ => NO_ADDRESSES,
                },
                _ => NO_OTHERS,
            };
            warn_changed(warnings, omitted);
            say(omitted);
        }
        message
    }

    fn turn(&self, said: &ProjectedReply<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        let mut message = Message {
            role: "assistant",
            ..Message::default()
        };
        for part in &said.parts {
            match part {
                ReplyPart::Text { text, .. } => message.content.to_mut().push_str(text),
                ReplyPart::Thinking(thinking) => message.thinking.to_mut().push_str(&thinking.text),
                ReplyPart::Call { call, args, .. } => message.tool_calls.push(Call {
                    id: call_id(call),
                    function: Function {
                        name: wire_name(call.name.as_str()),
                        arguments: *args,
                    },
                }),
                ReplyPart::Opaque(_) => {}
            }
        }
        if message.content.is_empty() && message.tool_calls.is_empty() {
            return;
        }
        tail.push(&message);
        for result in said.results.iter() {
            let tool_name = Some(wire_name(result.call.name.as_str()));
            let answer = self.user(&result.pieces, warnings);
            tail.push(&Message {
                role: "tool",
                tool_name,
                tool_call_id: Some(call_id(result.call)),
                ..answer
            });
        }
    }
}

impl Encode for Ollama {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        let options = effective(&self.info, &request.options, warnings);
        self.warn(&options, request, warnings);
        out.extend_from_slice(b"{\"model\":");
        write(out, self.info.name());
        member(out, "stream", &true);
        member(out, "options", &self.parameters(request, &options));
        if let Some(effort) = options.thinking {
            member(out, "think", &self.think(effort));
        }
        if let Some(format) = &request.options.format {
            member(out, "format", &format.schema);
        }
        for (name, value) in extra(&request.options, &RESERVED, warnings) {
            // Those went into the parameters.
            if name != "options" {
                member(out, name, value);
            }
        }
        if !request.tools.is_empty() && *options.tool_choice != ToolChoice::None {
            let tools = request.tools.iter().map(|it| Tool {
                kind: "function",
                function: Declaration {
                    name: wire_name(it.name.as_str()),
                    description: &it.description,
                    parameters: &it.schema,
                },
            });
            member(out, "tools", &tools.collect::<Vec<_>>());
        }
        out.extend_from_slice(b",\"messages\":[");
        if request.system.trim().is_empty() {
            return Messages::None;
        }
        write(
            out,
            &Message {
                role: "system",
                content: Cow::Borrowed(&request.system),
                ..Message::default()
            },
        );
        Messages::Some
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match project_entry(entry, &self.info, warnings) {
            ProjectedEntry::Nothing => {}
            ProjectedEntry::User(pieces) => tail.push(&self.user(&pieces, warnings)),
            ProjectedEntry::Turn(said) => self.turn(&said, tail, warnings),
        }
    }
}

/// The id that the server gave a call, or ours if it gave none.
fn call_id(call: &adjutant_llm::Call) -> Cow<'_, str> {
    match &call.wire_id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(call.id.to_string()),
    }
}
