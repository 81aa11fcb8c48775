//! Entries and requests as bytes of the Anthropic Messages API. Pure.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use adjutant_llm::{
    Cache, Call, Document, Effort, Entry, Error, FinishReason, ModelInfo, Options, Request, Source,
    Thinking, ToolChange, Warning, WarningKind,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    head::head,
    wire::{self, Part, Tool},
};
use crate::{
    call_ids::{TheirIds, WireId, is_plain},
    host::{Remedy, Site},
    pieces::{NO_AUDIO, Piece, media_type, warn_changed},
    projection::{self, ProjectedEntry, ProjectedReply, ProjectedResult},
    segments::{Encode, Messages, Role, Tail, write},
    strict,
    text::Few,
    tool_names::wire_name,
};

/// The largest number of characters of an id that goes back.
const MAX_ID: usize = 128;

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    pub(super) info: Arc<ModelInfo>,
    pub(super) caching: Caching,
    pub(super) site: Site,
    pub(super) controls: Controls,
}

/// True while the server is not known to refuse the settings for bound thinking; shared by the clones of a model.
#[derive(Clone)]
pub(super) struct Controls(Arc<AtomicBool>);

impl Default for Controls {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl fmt::Debug for Controls {
    /// The name of kept encodings leaves them out: the head and the entries are written again when they change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controls")
    }
}

impl Encoder {
    /// Returns true if requests let the API drop thinking that no longer fits, and change tools by messages.
    pub(super) fn asks_to_drop(&self) -> bool {
        self.info.thinking_binding && self.controls.0.load(Ordering::Relaxed)
    }

    /// Notes that the server refuses these settings; returns whether they were sent until now.
    fn stop_asking(&self) -> bool {
        self.info.thinking_binding && self.controls.0.swap(false, Ordering::Relaxed)
    }
}

/// The texts of refusals by servers that do not know the settings for bound thinking: the field, the beta, or their mode.
///
/// Source: "Preserved thinking" and the error pages of platform.claude.com and docs.aws.amazon.com/bedrock, 2026-11:
/// "block_binding: Extra inputs are not permitted", "invalid beta flag", "Unexpected value(s) for the `anthropic-beta` header".
const UNKNOWN_SETTINGS: [&str; 5] = [
    "block_binding",
    "thinking-binding-controls",
    "anthropic-beta",
    "beta flag",
    "adaptive",
];

/// Returns how a request that the API refused may be accepted: without the settings for bound thinking, or without the
/// thinking from the block on that the refusal names.
///
/// Source: "Preserved thinking", platform.claude.com, 2026-11: match the clause "Invalid `signature` in `thinking` block"; the
/// settings do not help if the signature itself is invalid.
pub(super) fn remedy(wire: &Encoder, refusal: &Error) -> Option<Remedy> {
    let details = refusal.details();
    let text = details
        .body
        .as_deref()
        .filter(|_| details.status == Some(400))?;
    if text.contains("Invalid `signature` in `") {
        if text.contains("bound to a different conversation") {
            wire.stop_asking();
        }
        let place = text
            .split_once("messages.")
            .and_then(|(_, rest)| rest.split_once('.'));
        let message = place.and_then(|(index, _)| index.parse().ok()).unwrap_or(0);
        return Some(Remedy {
            thinking_from: Some(message),
            warning: Warning {
                kind: WarningKind::ThinkingDropped,
                message: format!(
                    "thinking of earlier replies is left out from messages.{message} on: the API refused its signature"
                )
                .into(),
            },
        });
    }
    let is_unknown = UNKNOWN_SETTINGS.iter().any(|it| text.contains(it));
    (is_unknown && wire.stop_asking()).then(|| Remedy {
        thinking_from: None,
        warning: Warning {
            kind: WarningKind::OptionDropped,
            message: format!(
                "requests to {} leave out `block_binding`: the server refuses it",
                wire.info.id
            )
            .into(),
        },
    })
}

/// The use of the prompt cache in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// The ends of the tools, of the system prompt, of the request before this one, and of this one are marked: four
    /// marks, which is what the API takes. It looks back 20 blocks from a mark, so the third one meets what the request
    /// before has written, whatever came since. Source: prompt caching guide, 2026-08.
    Marks,
    /// Nothing is sent.
    Off,
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        head(self, request, out, warnings);
        let is_theirs = request.options.extra.contains_key("cache_control");
        if self.caching == Caching::Off && request.options.cache == Cache::Long && !is_theirs {
            let text = "cache was dropped: the prompt cache is not marked at this base URL";
            warnings.push(Warning {
                kind: WarningKind::OptionDropped,
                message: text.into(),
            });
        }
        Messages::None
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::project_entry(entry, &self.info, warnings) {
            ProjectedEntry::Nothing => {}
            ProjectedEntry::User(pieces) => message(tail, Role::User, &content(pieces, warnings)),
            ProjectedEntry::Turn(said) => turn(said, entry, tail, warnings),
        }
        if let Entry::User(user) = entry
            && let Some(change) = user.tools.as_ref().filter(|_| self.asks_to_drop())
        {
            self.change_tools(change, &mut tail.pending, warnings);
        }
    }

    /// Without the settings, and with `disabled`, which excludes them, a block that no longer fits refuses the request.
    fn checks_thinking(&self, request: &Request) -> bool {
        let options = &request.options;
        let is_off = || match options.extra.get("thinking") {
            Some(theirs) => theirs["type"] == "disabled",
            None => options.thinking.and_then(|it| self.info.effort(it)) == Some(Effort::Off),
        };
        self.info.thinking_binding && (!self.asks_to_drop() || is_off())
    }

    fn mark(&self, options: &Options) -> Option<&'static [u8]> {
        match (self.caching, options.cache) {
            (Caching::Off, _) | (_, Cache::Off) => None,
            // The form of the vendor's own, chosen by the caller.
            _ if options.extra.contains_key("cache_control") => None,
            (Caching::Marks, Cache::Long) => {
                Some(br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#)
            }
            (Caching::Marks, _) => Some(br#","cache_control":{"type":"ephemeral"}"#),
        }
    }
}

impl Encoder {
    /// Writes a message of the system that adds and removes tools.
    ///
    /// It must follow a message of the user, and be followed by one of the model or by nothing, so that it waits until one
    /// of the model is written. Definitions are accepted at the vendor's own site, elsewhere references only. Source:
    /// "Mid-conversation system messages and tool changes", platform.claude.com, 2026-11.
    #[cold]
    fn change_tools(&self, change: &ToolChange, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) {
        let reference = |name: &str| json!({"type": "tool_reference", "name": name});
        let addition = |tool: Value| json!({"type": "tool_addition", "tool": tool});
        let definition =
            |tool: Value| addition(json!({"type": "tool_definition", "definition": tool}));
        let is_own = self.site == Site::Own;
        let is_theirs = *change.provider == *self.info.provider();
        let mut blocks: Vec<Value> = Vec::new();
        blocks.extend(change.added.iter().map(|tool| match is_own {
            true => definition(json!(Tool::new(tool, &strict::for_tool(&tool.schema)))),
            false => addition(reference(&wire_name(tool.name.as_str()))),
        }));
        if is_own && is_theirs {
            blocks.extend(change.server_tools.iter().cloned().map(definition));
        } else if is_theirs && !change.server_tools.is_empty() {
            warnings.push(Warning {
                kind: WarningKind::OptionDropped,
                message: "server_tools were dropped: they cannot be added to a conversation at this base URL"
                    .into(),
            });
        }
        let removed_server_tools = change.removed_server_tools.iter().filter(|_| is_theirs);
        blocks.extend(change.removed.iter().chain(removed_server_tools).map(
            |name| json!({"type": "tool_removal", "tool": reference(&wire_name(name.as_str()))}),
        ));
        if !blocks.is_empty() {
            out.push(b',');
            write(out, &json!({"role": "system", "content": blocks}));
        }
    }
}

/// Writes a reply and the results of its calls. If the message of a paused reply is the last one, the model continues
/// it. Any other reply at the end is up to the caller; models since Opus 4.7 refuse to continue it.
fn turn(said: ProjectedReply<'_>, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
    let mut parts = if is_open(entry) {
        said.parts
    } else {
        drop_unanswered(said.parts)
    };
    let is_thinking =
        |it: &projection::ReplyPart<'_>| matches!(it, projection::ReplyPart::Thinking(_));
    if let Entry::Turn(turn) = entry
        && parts.iter().any(is_thinking)
        && !tail.takes_thinking_of(turn.reply())
    {
        parts.retain(|part| !is_thinking(part));
        warn_thinking_dropped(warnings);
    }
    let related = said.related;
    let mut id = |call| call_id(call, related, &mut tail.their_ids);
    let parts = parts.into_iter().filter_map(|it| part(it, &mut id));
    let mut parts: Vec<_> = parts.collect();
    keep_separators(&mut parts);
    if parts.iter().all(is_thought) {
        return;
    }
    message(tail, Role::Model, &parts);
    if !said.results.is_empty() {
        let mut media = Vec::new();
        let mut parts: Vec<_> = said
            .results
            .into_iter()
            .map(|it| {
                let id = call_id(it.call, related, &mut tail.their_ids);
                result(it, id, &mut media, warnings)
            })
            .collect();
        parts.append(&mut media);
        message(tail, Role::User, &parts);
    }
}

/// True if results of the provider's own tools are still missing: it sends them when its pause ends, or directly
/// after our results.
///
/// When its entry is written, it is unknown whether they will follow, and sent bytes never change. So a paused reply
/// that was not continued keeps its open calls, and the API refuses that history: a caller that does not continue
/// after a pause must omit the reply.
///
/// Source: Anthropic on server tools together with client tools, anthropic-sdk-typescript thread 1090, 2026-06.
fn is_open(entry: &Entry) -> bool {
    matches!(entry, Entry::Turn(turn) if turn.reply().stop == FinishReason::Paused || turn.reply().calls().next().is_some())
}

/// The parts without calls of the provider's own tools that never got a result; the API refuses them.
fn drop_unanswered(parts: Vec<projection::ReplyPart<'_>>) -> Vec<projection::ReplyPart<'_>> {
    let id_of = |part: &projection::ReplyPart<'_>, name: &str| match part {
        projection::ReplyPart::Opaque(value) => {
            value.get(name).and_then(Value::as_str).map(str::to_owned)
        }
        _ => None,
    };
    let results: Vec<_> = parts
        .iter()
        .filter_map(|part| id_of(part, "tool_use_id"))
        .collect();
    let is_answered = |part: &projection::ReplyPart<'_>| match part {
        projection::ReplyPart::Opaque(value) if kind(value).ends_with("tool_use") => {
            id_of(part, "id").is_none_or(|id| results.contains(&id))
        }
        _ => true,
    };
    parts.into_iter().filter(is_answered).collect()
}

/// The id of a call and of its result. Source: the error "String should match pattern '^[a-zA-Z0-9_-]+$'", 2026-11.
fn call_id<'a>(call: &'a Call, related: bool, ids: &mut TheirIds) -> WireId<'a> {
    let theirs = related.then(|| ids.get(call, |id| is_plain(id, MAX_ID)));
    theirs
        .flatten()
        .map_or(WireId::Ours(call.id), WireId::Theirs)
}

/// Returns the result of a call. The media of an error go behind all results: "all content must be type `text` if
/// `is_error` is true". Source: the API's answer, anthropics/claude-agent-sdk-python 248, 2026-11.
fn result<'a>(
    answer: ProjectedResult<'a>,
    tool_use_id: WireId<'a>,
    media: &mut Vec<Part<'a>>,
    warnings: &mut Vec<Warning>,
) -> Part<'a> {
    let mut content = content(answer.pieces, warnings);
    if answer.is_error {
        media.extend(content.extract_if(.., |part| !matches!(part, Part::Text { .. })));
    }
    if content.is_empty() && answer.is_error {
        // "content cannot be empty if `is_error` is true". Source: claude-agent-sdk-python 248.
        content.push(text("the call failed"));
    }
    Part::ToolResult {
        tool_use_id,
        content,
        is_error: answer.is_error,
    }
}

fn part<'a>(
    part: projection::ReplyPart<'a>,
    call_id: &mut dyn FnMut(&'a Call) -> WireId<'a>,
) -> Option<Part<'a>> {
    match part {
        projection::ReplyPart::Text { text, extra } => {
            let citations = extra.get("citations");
            Some(Part::Text { text, citations })
        }
        projection::ReplyPart::Thinking(thinking) => replay_thinking(thinking),
        projection::ReplyPart::Call { call, args, extra } => Some(Part::ToolUse {
            id: call_id(call),
            name: wire_name(call.name.as_str()),
            input: args,
            caller: extra.get("caller"),
        }),
        projection::ReplyPart::Opaque(value) => Some(Part::Opaque(value)),
    }
}

/// Warns once of thinking that is not sent.
fn warn_thinking_dropped(warnings: &mut Vec<Warning>) {
    let warning = Warning {
        kind: WarningKind::ThinkingDropped,
        message: "thinking of earlier replies is left out: the conversation before it has changed, or the API refused it".into(),
    };
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// Removes blank texts, which the API always refuses, unless the API itself has put them between two blocks of
/// thinking: without them, the later block no longer matches.
fn keep_separators(parts: &mut Vec<Part<'_>>) {
    let is_thought_at = |at: usize| parts.get(at).is_some_and(is_thought);
    let is_kept: Vec<bool> = (0..parts.len())
        .map(|at| match &parts[at] {
            Part::Text { text, .. } if text.trim().is_empty() => {
                at.checked_sub(1).is_some_and(is_thought_at) && is_thought_at(at + 1)
            }
            _ => true,
        })
        .collect();
    let mut is_kept = is_kept.into_iter();
    parts.retain(|_| is_kept.next().unwrap_or(true));
}

fn content<'a>(pieces: Few<Piece<'a>>, warnings: &mut Vec<Warning>) -> Vec<Part<'a>> {
    let part = |piece| match piece {
        Piece::Text(it) => text(it),
        Piece::Image(image) => Part::Image {
            source: source(media_type(&image.media_type), &image.source),
        },
        Piece::Document(it) => document(it, warnings),
        // The wire's own models take none, so that there is a note in its place already.
        Piece::Audio(_) => text(NO_AUDIO),
    };
    pieces.into_iter().map(part).collect()
}

/// Writes a message, and records the place for a mark: in its last block, before the ends of the block, the message
/// and the list.
fn message(tail: &mut Tail, role: Role, content: &[Part<'_>]) {
    if role == Role::Model && !tail.pending.is_empty() {
        if tail.last != Some(Role::User) {
            message(tail, Role::User, &[text("[The tools have changed.]")]);
        }
        tail.flush();
    }
    let start = tail.out.len();
    tail.out.extend_from_slice(match role {
        Role::Model => br#",{"role":"assistant","content":["#,
        Role::User | Role::Tool => br#",{"role":"user","content":["#,
    });
    tail.bind(start);
    for (at, part) in content.iter().enumerate() {
        if at > 0 {
            tail.out.push(b',');
        }
        let start = tail.out.len();
        write(&mut tail.out, part);
        if !is_thought(part) {
            tail.bind(start);
        }
    }
    tail.out.extend_from_slice(b"]}");
    tail.messages += 1;
    tail.last = Some(role);
    if content.last().is_some_and(takes_mark) {
        tail.markable = Some(tail.out.len() - "}]}".len());
    }
}

/// True if a block can be marked. Source: prompt caching guide, "what cannot be cached", and the block types of
/// anthropic-sdk-python, 2026-09.
fn takes_mark(part: &Part<'_>) -> bool {
    match part {
        Part::Thinking { .. } | Part::RedactedThinking { .. } => false,
        Part::Opaque(value) => {
            let kind = kind(value);
            let is_known = kind.ends_with("tool_use") || kind.ends_with("tool_result");
            is_known || matches!(kind, "compaction" | "container_upload")
        }
        Part::Text { .. } | Part::Image { .. } | Part::Document { .. } => true,
        Part::ToolUse { .. } | Part::ToolResult { .. } => true,
    }
}

fn is_thought(part: &Part<'_>) -> bool {
    matches!(part, Part::Thinking { .. } | Part::RedactedThinking { .. })
}

fn kind(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn text(text: &str) -> Part<'_> {
    Part::Text {
        text: Cow::Borrowed(text),
        citations: None,
    }
}

/// Thinking goes back exactly as it came; without its signature it is never valid.
fn replay_thinking(thinking: &Thinking) -> Option<Part<'_>> {
    let signature = thinking.signature.as_deref().filter(|it| !it.is_empty())?;
    Some(if thinking.redacted {
        Part::RedactedThinking { data: signature }
    } else {
        Part::Thinking {
            thinking: &thinking.text,
            signature,
        }
    })
}

fn source<'a>(media_type: &'a str, source: &'a Source) -> wire::Source<'a> {
    match source {
        Source::Url { url } => wire::Source::Url { url },
        Source::Base64 { data } => wire::Source::Base64 { media_type, data },
        _ => wire::Source::Text {
            media_type: "text/plain",
            data: String::new(),
        },
    }
}

/// A document; plain text has its own form, because the API does not accept it as base64.
fn document<'a>(document: &'a Document, warnings: &mut Vec<Warning>) -> Part<'a> {
    let title = document.name.as_deref();
    let Source::Base64 { data } = &document.source else {
        return Part::Document {
            source: source(&document.media_type, &document.source),
            title,
        };
    };
    if !document.media_type.starts_with("text/") {
        return Part::Document {
            source: source(&document.media_type, &document.source),
            title,
        };
    }
    match STANDARD
        .decode(&**data)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
    {
        Some(data) => Part::Document {
            source: wire::Source::Text {
                media_type: "text/plain",
                data,
            },
            title,
        },
        None => {
            const UNREADABLE: &str = "[document omitted: its text cannot be decoded]";
            warn_changed(warnings, UNREADABLE);
            text(UNREADABLE)
        }
    }
}
