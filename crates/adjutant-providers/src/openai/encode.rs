//! Entries and requests as bytes of the OpenAI Responses API. Pure.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{
    Cache, Call, Effort, Entry, Format, ModelInfo, PromptCache, Request, Source, Thinking,
    ToolChoice, Warning, WarningKind,
};
use serde_json::{Map, Value, json};

use super::wire::{self, Address, File, Item, Message, Output, Tool};
use crate::{
    cache_key::{cache_control, cache_key},
    call_ids::{TheirIds, WireId, is_plain},
    driver::Auth,
    options::{self, Effective},
    pieces::{Args, NO_AUDIO, Piece, format_name, media_type, warn_changed},
    projection::{self, ProjectedEntry, ProjectedReply, ProjectedResult, ReplyPart},
    segments::{Encode, Messages, Role, Tail, member, write},
    strict,
    tool_names::wire_name,
};

/// Extra fields that would contradict the request.
const RESERVED: [&str; 7] = [
    "model",
    "input",
    "stream",
    "tools",
    "instructions",
    "previous_response_id",
    "conversation",
];
/// The name in `include` that brings the reasoning back, so that it can be sent again: nothing is stored.
///
/// Source: the reasoning guide of the Responses API, 2026-08. Models that do not think refuse it (pydantic-ai 3326).
const ENCRYPTED: &str = "reasoning.encrypted_content";
/// The smallest limit that the API takes. Source: what the pi project sends at least, 2026-08.
const MIN_OUTPUT: u64 = 16;
/// The largest number of characters that the id of an item may have. Source: what the pi project sends at most,
/// 2026-08.
const MAX_ID: usize = 64;
/// The items that a client runs itself, of tools that are given as they are: they are refused without their outputs.
///
/// Source: the error "No tool output found for function call", SamSaffron/term-llm 66, 2026-03; the kinds come from
/// openai-python, 2026-08.
const CLIENT_RUN: [&str; 6] = [
    "custom_tool_call",
    "local_shell_call",
    "computer_call",
    "shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];
const WITHOUT_OUTPUT: &str = "a call of a tool that is not ours was left out: nothing answered it";
const NO_PICTURE: &str =
    "a generated picture was left out: the API takes none back that it did not store";
const WITHOUT_REASONING: &str =
    "what the provider ran itself was left out: the reasoning that it goes with is not sent";

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    pub(super) info: Arc<ModelInfo>,
    pub(super) caching: Caching,
    /// The way in which the key is sent.
    pub(super) auth: Auth,
    /// The query of the address, with its question mark; empty for none.
    pub(super) query: Arc<str>,
}

/// The fields about the prompt cache that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Caching {
    /// Nothing: other hosts may refuse the fields.
    Off,
    /// The key of the conversation.
    Keys,
    /// The key, and the parameters that the model takes.
    Parameters,
    /// The same, with the longest time that OpenAI itself has.
    Vendor,
}

/// The state of a reply's reasoning, which decides if its items may name themselves: an id makes the API look for the
/// reasoning that came before.
///
/// The encrypted reasoning is bound to its own id, which must stay. Ids of other items are omitted unless all
/// reasoning before them is sent too. Source: the errors "encrypted content item_id did not match" and "was provided
/// without its required 'reasoning' item", and their fixes in dotnet/extensions 7629, openclaw 85277 and oh-my-pi
/// 4155, 2026.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reasoning {
    None,
    Whole,
    Gone,
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        let options = options::effective(&self.info, &request.options, warnings);
        let given = &request.options.extra;
        let own = |name: &str| !given.contains_key(name);
        out.extend_from_slice(b"{\"model\":");
        write(out, self.info.name());
        if !request.system.trim().is_empty() {
            member(out, "instructions", &request.system);
        }
        if own("store") {
            member(out, "store", &false);
        }
        member(out, "stream", &true);
        if let Some(tokens) = options
            .max_output_tokens
            .filter(|_| own("max_output_tokens"))
        {
            member(out, "max_output_tokens", &at_least(tokens, warnings));
        }
        if let Some(temperature) = options.temperature.filter(|_| own("temperature")) {
            member(out, "temperature", &temperature);
        }
        if let Some(part) = options.top_p.filter(|_| own("top_p")) {
            member(out, "top_p", &part);
        }
        if options.seed.is_some() {
            warn(
                warnings,
                "seed was dropped: the Responses API has no such option",
            );
        }
        if !options.stop.is_empty() {
            warn(
                warnings,
                "stop was dropped: the Responses API has no such option",
            );
        }
        self.caching(request, out, warnings);
        self.write_combined_fields(request, &options, out);
        for (name, value) in options::extra(&request.options, &RESERVED, warnings) {
            // The composed members are already written.
            if !["include", "reasoning", "text"].contains(&name.as_str()) {
                member(out, name, value);
            }
        }
        tools(request, &options, out);
        out.extend_from_slice(b",\"input\":[");
        Messages::None
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::project_entry(entry, &self.info, warnings) {
            ProjectedEntry::Nothing => {}
            ProjectedEntry::User(pieces) => {
                let content = pieces.iter().map(part).collect();
                let message = Message {
                    id: None,
                    role: "user",
                    content,
                    phase: None,
                    status: None,
                };
                item(tail, Role::User, &Item::Message(message));
            }
            ProjectedEntry::Turn(said) => turn(said, tail, warnings),
        }
    }
}

impl Encoder {
    fn caching(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let own = |name: &str| !request.options.extra.contains_key(name);
        let key = cache_key(request).filter(|_| self.caching != Caching::Off);
        if let Some(key) = key.filter(|_| own("prompt_cache_key")) {
            member(out, "prompt_cache_key", &key);
        }
        let (control, longest) = match self.caching {
            Caching::Vendor => (self.info.prompt_cache, Some("12h")),
            Caching::Parameters => (self.info.prompt_cache, None),
            _ => (PromptCache::Key, None),
        };
        let is_given = !own("prompt_cache_retention") || !own("prompt_cache_options");
        match cache_control(control, &request.options, longest) {
            Some((name, value)) => member(out, name, &value),
            None if request.options.cache == Cache::Long && !is_given => warn(
                warnings,
                "cache was dropped: this host or model has no parameter for a long one",
            ),
            None => {}
        }
    }

    /// Writes the fields that options and extra fields make together.
    fn write_combined_fields(&self, request: &Request, options: &Effective<'_>, out: &mut Vec<u8>) {
        let given = |name: &str| request.options.extra.get(name);
        let thinks = !self.info.efforts.is_empty();
        match given("include") {
            Some(Value::Array(asked)) if thinks && !asked.iter().any(|it| it == ENCRYPTED) => {
                let all: Vec<_> = asked.iter().cloned().chain([ENCRYPTED.into()]).collect();
                member(out, "include", &all);
            }
            Some(asked) => member(out, "include", asked),
            None if thinks => member(out, "include", &[ENCRYPTED]),
            None => {}
        }
        let reasoning = options.thinking.map(reasoning).unwrap_or_default();
        let text = request
            .options
            .format
            .as_ref()
            .map(|format| [("format".to_owned(), json_schema(format))]);
        let text = text.into_iter().flatten().collect();
        for (name, ours) in [("reasoning", reasoning), ("text", text)] {
            match (given(name), ours) {
                (Some(Value::Object(theirs)), mut ours) => {
                    ours.extend(theirs.clone());
                    member(out, name, &ours);
                }
                (Some(theirs), _) => member(out, name, theirs),
                (None, ours) if !ours.is_empty() => member(out, name, &ours),
                (None, _) => {}
            }
        }
    }
}

/// Returns the settings for thinking. Source: "Reasoning", developers.openai.com, and "Grok 4.7", docs.x.ai, 2026-11; a
/// model lists which of the values it takes.
fn reasoning(effort: Effort) -> Map<String, Value> {
    let name = match effort {
        Effort::Off => "none",
        other => other.name(),
    };
    let mut reasoning = Map::from_iter([("effort".to_owned(), name.into())]);
    if effort != Effort::Off {
        reasoning.insert("summary".to_owned(), "auto".into());
    }
    reasoning
}

/// The format of the text: strict if that does not change what the schema means.
fn json_schema(format: &Format) -> Value {
    let strict = strict::strict(&format.schema);
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| Value::clone(&format.schema));
    json!({"type": "json_schema", "name": format_name(&format.name), "schema": schema, "strict": is_strict})
}

fn tools(request: &Request, options: &Effective<'_>, out: &mut Vec<u8>) {
    let (ours, theirs) = (&request.tools, &request.options.server_tools);
    if ours.is_empty() && theirs.is_empty() {
        return;
    }
    let own = |name: &str| !request.options.extra.contains_key(name);
    if own("tool_choice") {
        match options.tool_choice {
            ToolChoice::None => member(out, "tool_choice", "none"),
            ToolChoice::Required => member(out, "tool_choice", "required"),
            ToolChoice::Named(name) => {
                member(
                    out,
                    "tool_choice",
                    &json!({"type": "function", "name": wire_name(name.as_str())}),
                );
            }
            _ => {}
        }
    }
    if options.sequential_calls && own("parallel_tool_calls") {
        member(out, "parallel_tool_calls", &false);
    }
    out.extend_from_slice(b",\"tools\":");
    let declared = ours.iter().map(|tool| {
        let (name, parameters) = (
            wire_name(tool.name.as_str()),
            strict::for_tool(&tool.schema),
        );
        Tool::Function {
            name,
            description: &tool.description,
            parameters,
            strict: false,
        }
    });
    write(
        out,
        &declared
            .chain(theirs.iter().map(Tool::Given))
            .collect::<Vec<_>>(),
    );
}

/// The items of a reply, and then the results of its calls.
fn turn(said: ProjectedReply<'_>, tail: &mut Tail, warnings: &mut Vec<Warning>) {
    let related = said.related;
    let mut id = |call| call_id(call, related, &mut tail.their_ids);
    let items = items(&said, &mut id, warnings);
    for it in &items {
        item(tail, Role::Model, it);
    }
    for answer in said.results.iter() {
        let call_id = call_id(answer.call, related, &mut tail.their_ids);
        let output = output(answer);
        item(
            tail,
            Role::Tool,
            &Item::FunctionCallOutput { call_id, output },
        );
    }
}

/// The id of a call and of its result.
fn call_id<'a>(call: &'a Call, related: bool, ids: &mut TheirIds) -> WireId<'a> {
    let theirs = related.then(|| ids.get(call, |id| is_plain(id, MAX_ID)));
    theirs
        .flatten()
        .map_or(WireId::Ours(call.id), WireId::Theirs)
}

fn items<'a>(
    said: &'a ProjectedReply<'a>,
    call_id: &mut dyn FnMut(&'a Call) -> WireId<'a>,
    warnings: &mut Vec<Warning>,
) -> Vec<Item<'a>> {
    let (mut items, mut before) = (Vec::with_capacity(said.parts.len()), Reasoning::None);
    // The author of the last message: texts of one message stay together.
    let mut speaker: Option<&Value> = None;
    for part in &said.parts {
        let named = before == Reasoning::Whole;
        let id =
            |extra: &'a Value, prefix| extra_id(extra).filter(|id| named && id.starts_with(prefix));
        match part {
            ReplyPart::Text { text, .. } if text.is_empty() => continue,
            ReplyPart::Text { text, extra } => {
                // Without an id, they have the form of another wire that recorded the turn.
                let annotations = extra
                    .get("annotations")
                    .filter(|_| extra["id"].is_string())
                    .and_then(Value::as_array)
                    .map_or(&[][..], Vec::as_slice);
                let part = wire::Part::OutputText {
                    text: Cow::Borrowed(text),
                    annotations,
                };
                let by = &extra["id"];
                match items.last_mut() {
                    Some(Item::Message(message)) if speaker == Some(by) => {
                        message.content.push(part)
                    }
                    _ => {
                        let id = id(extra, "msg");
                        let (phase, status) = (extra["phase"].as_str(), id.map(|_| "completed"));
                        items.push(Item::Message(Message {
                            id,
                            role: "assistant",
                            content: vec![part],
                            phase,
                            status,
                        }));
                        speaker = Some(by);
                    }
                }
            }
            ReplyPart::Thinking(thinking) => match replay_thinking(thinking) {
                Some(item) => {
                    items.push(item);
                    before = if before == Reasoning::Gone {
                        before
                    } else {
                        Reasoning::Whole
                    };
                }
                None => before = Reasoning::Gone,
            },
            ReplyPart::Call { call, args, extra } => items.push(Item::FunctionCall {
                id: id(extra, "fc"),
                call_id: call_id(call),
                name: wire_name(call.name.as_str()),
                arguments: arguments(args),
                namespace: extra.get("namespace"),
                caller: extra.get("caller"),
            }),
            ReplyPart::Opaque(value) => {
                let whole = said.own && before != Reasoning::Gone;
                items.extend(opaque(value, whole, &said.parts, warnings));
            }
        }
    }
    // Reasoning must not be the last item: the output after it was cut off.
    while matches!(items.last(), Some(Item::Reasoning { .. })) {
        items.pop();
    }
    items
}

/// Reasoning goes back exactly as it came; without its encrypted or readable whole it is never valid.
///
/// Models without encryption send it in `content`. Source: opencode 45032, 2026-08. Items of xAI may have no id.
/// Source: "Troubleshooting reasoning", docs.x.ai, 2026-11.
fn replay_thinking(thinking: &Thinking) -> Option<Item<'_>> {
    const NONE: &Value = &Value::Array(Vec::new());
    let extra = &*thinking.extra;
    let encrypted_content = thinking.signature.as_deref().filter(|it| !it.is_empty());
    let id = match extra.get("id") {
        None if extra.get("summary").is_some() => None,
        _ => Some(extra_id(extra)?),
    };
    let content = extra.get("content");
    let summary = extra.get("summary").unwrap_or(NONE);
    let whole = encrypted_content.is_some() || content.is_some();
    whole.then_some(Item::Reasoning {
        id,
        summary,
        content,
        encrypted_content,
    })
}

/// Returns an item that the provider ran itself, as it came, if its reasoning goes back too.
///
/// Pictures do not. Source: opencode 41123, 2026-08: refused with or without an id when nothing is stored.
fn opaque<'a>(
    value: &'a Value,
    whole: bool,
    parts: &[ReplyPart<'_>],
    warnings: &mut Vec<Warning>,
) -> Option<Item<'a>> {
    match value["type"].as_str() {
        // Replaces everything before it, whichever model wrote it.
        Some("compaction") => {}
        // Recorded on Chat Completions, which has no such item.
        Some("sources") => return None,
        Some("image_generation_call") => {
            warn_changed(warnings, NO_PICTURE);
            return None;
        }
        Some(kind) if CLIENT_RUN.contains(&kind) && !is_answered(value, parts) => {
            warn_changed(warnings, WITHOUT_OUTPUT);
            return None;
        }
        _ if !whole => {
            warn_changed(warnings, WITHOUT_REASONING);
            return None;
        }
        _ => {}
    }
    Some(Item::Opaque(value))
}

/// True if the output of an item that a client runs is next to it, as for a hosted shell.
fn is_answered(value: &Value, parts: &[ReplyPart<'_>]) -> bool {
    let ids = [&value["call_id"], &value["id"]];
    parts.iter().any(|part| {
        let ReplyPart::Opaque(other) = part else {
            return false;
        };
        let is_output = other["type"]
            .as_str()
            .is_some_and(|it| it.ends_with("_output") || it.ends_with("_response"));
        let about = [
            &other["call_id"],
            &other["approval_request_id"],
            &other["id"],
        ];
        is_output && about.iter().any(|id| id.is_string() && ids.contains(id))
    })
}

/// The id of an item, if the API accepts it.
fn extra_id(extra: &Value) -> Option<&str> {
    extra.get("id")?.as_str().filter(|id| is_plain(id, MAX_ID))
}

/// The result of a call. Source: openai-python 2.0.0, 2025-09: results may hold pictures and files.
fn output<'a>(answer: &ProjectedResult<'a>) -> Output<'a> {
    let texts: Option<Vec<_>> = answer
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Some(*text),
            Piece::Image(_) | Piece::Document(_) | Piece::Audio(_) => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Output::Text(Cow::Borrowed(*text)),
        Some(texts) => Output::Text(Cow::Owned(texts.join("\n"))),
        None => Output::Parts(answer.pieces.iter().map(part).collect()),
    }
}

fn part<'a>(piece: &Piece<'a>) -> wire::Part<'a> {
    match *piece {
        Piece::Text(text) => wire::Part::InputText { text },
        // The wire's own models take none, so that there is a note in its place already.
        Piece::Audio(_) => wire::Part::InputText { text: NO_AUDIO },
        Piece::Image(image) => wire::Part::InputImage {
            detail: "auto",
            image_url: address(media_type(&image.media_type), &image.source),
        },
        Piece::Document(document) => {
            let file = match address(&document.media_type, &document.source) {
                Address::Url(file_url) => File::Url { file_url },
                file_data @ Address::Data { .. } => File::Data {
                    filename: document.name.as_deref().unwrap_or("document"),
                    file_data,
                },
            };
            wire::Part::InputFile { file }
        }
    }
}

fn address<'a>(media_type: &'a str, source: &'a Source) -> Address<'a> {
    match source {
        Source::Url { url } => Address::Url(url),
        Source::Base64 { data } => Address::Data { media_type, data },
        _ => Address::Data {
            media_type,
            data: "",
        },
    }
}

/// The arguments of a call as the text of a JSON object.
fn arguments<'a>(args: &Args<'a>) -> Cow<'a, str> {
    match args {
        Args::Empty => Cow::Borrowed("{}"),
        Args::Object(raw) => Cow::Borrowed(raw.get()),
        invalid @ Args::Invalid(_) => {
            Cow::Owned(serde_json::to_string(invalid).unwrap_or_default())
        }
    }
}

fn at_least(tokens: u64, warnings: &mut Vec<Warning>) -> u64 {
    if tokens < MIN_OUTPUT {
        let text = format!(
            "max_output_tokens was raised from {tokens} to {MIN_OUTPUT}: the Responses API takes no less"
        );
        warn(warnings, &text);
    }
    tokens.max(MIN_OUTPUT)
}

fn warn(warnings: &mut Vec<Warning>, text: &str) {
    warnings.push(Warning {
        kind: WarningKind::OptionDropped,
        message: text.into(),
    });
}

fn item(tail: &mut Tail, role: Role, item: &Item<'_>) {
    tail.out.push(b',');
    write(&mut tail.out, item);
    tail.last = Some(role);
}
