//! The history as one model may see it: one pure pass, an entry at a time. Originals stay as they are.
//!
//! Signed content is returned only to the model that signed it. Work that a provider ran itself is returned to that
//! provider, and to others as text. Interrupted replies become text. Media that the model does not accept become a
//! note.

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{Block, Call, Entry, FinishReason, ModelInfo, Thinking, Turn, Warning};
use serde_json::Value;

use crate::{
    pieces::{Args, Piece, pieces},
    text::Few,
};

/// The maximum number of characters of a block that another provider ran.
const MAX_FOREIGN: usize = 4_000;
/// The members of such blocks that hold something to read.
const READABLE: [&str; 12] = [
    "name", "query", "queries", "code", "command", "title", "url", "text", "stdout", "stderr",
    "output", "results",
];

/// An entry as a model may see it.
#[derive(Debug)]
pub enum ProjectedEntry<'a> {
    /// Nothing.
    Nothing,
    /// A message of the user.
    User(Few<Piece<'a>>),
    /// A reply, and the results of its calls.
    Turn(ProjectedReply<'a>),
}

/// A reply as a model may see it; each call has its result.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProjectedReply<'a> {
    /// The parts of the reply, in order; never empty. Thinking is there only if the model itself thought it.
    pub parts: Vec<ReplyPart<'a>>,
    /// One for each call, in order.
    pub results: Few<ProjectedResult<'a>>,
    /// True if the reply is the model's own, so that data that only it understands goes back too.
    pub own: bool,
    /// True if a model of the same family at the same provider made it, so that the ids of its calls go back as they came.
    pub related: bool,
}

/// A part of a reply.
#[derive(Debug)]
pub enum ReplyPart<'a> {
    /// Text of the reply. It is blank only if a signature of the model may depend on it, and `extra` is `null` in the reply of
    /// another model.
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// The data that the wire's decoder kept beside it.
        extra: &'a Value,
    },
    /// The thinking of the model itself, exactly as it came.
    Thinking(&'a Thinking),
    /// A call; `extra` is `null` unless the model itself made it.
    Call {
        /// The call.
        call: &'a Call,
        /// Its arguments: the executed ones, if they are known.
        args: Args<'a>,
        /// The data that the wire's decoder kept beside it.
        extra: &'a Value,
    },
    /// A block that this provider made.
    Opaque(&'a Value),
}

/// The result of a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProjectedResult<'a> {
    /// The call.
    pub call: &'a Call,
    /// The outcome of the call; may be empty.
    pub pieces: Few<Piece<'a>>,
    /// True if the call did not end well.
    pub is_error: bool,
}

/// Returns an entry as this model may receive it; each change adds one warning.
///
/// Signed content is returned only to the model that signed it. Work that a provider ran itself is returned to it,
/// and to others as text. Interrupted replies become text. Media that the model does not accept become a note. Each
/// call has its result.
pub fn project_entry<'a>(
    entry: &'a Entry,
    info: &ModelInfo,
    warnings: &mut Vec<Warning>,
) -> ProjectedEntry<'a> {
    match entry {
        Entry::User(user) => project_pieces(pieces(&user.content, info.inputs, warnings)),
        Entry::Summary(summary) if !summary.text.trim().is_empty() => {
            let mut pieces = Few::default();
            pieces.push(Piece::Text(&summary.text));
            ProjectedEntry::User(pieces)
        }
        Entry::Turn(turn) => project_turn(turn, info, warnings),
        _ => ProjectedEntry::Nothing,
    }
}

fn project_pieces(pieces: Few<Piece<'_>>) -> ProjectedEntry<'_> {
    if pieces.is_empty() {
        ProjectedEntry::Nothing
    } else {
        ProjectedEntry::User(pieces)
    }
}

fn project_turn<'a>(
    turn: &'a Turn,
    info: &ModelInfo,
    warnings: &mut Vec<Warning>,
) -> ProjectedEntry<'a> {
    let reply = turn.reply();
    let whole = !matches!(
        reply.stop,
        FinishReason::Interrupted | FinishReason::Refused | FinishReason::Filtered
    );
    let own = whole && reply.model == info.id;
    let related = own || whole && is_related(reply.model.as_str(), info.id.as_str());
    let extra = |it: &'a adjutant_llm::Extra| if own { &**it } else { &Value::Null };
    let (mut parts, mut results) = (Vec::with_capacity(reply.blocks.len()), Few::default());
    let mut closed = turn.results().iter();
    for block in &reply.blocks {
        match &**block {
            Block::Text(said) if !said.text.trim().is_empty() => {
                parts.push(ReplyPart::Text {
                    text: Cow::Borrowed(&*said.text),
                    extra: extra(&said.extra),
                });
            }
            // A text without words may carry a signature, or separate two blocks that are bound to each other.
            Block::Text(said) if !extra(&said.extra).is_null() || own && info.thinking_binding => {
                parts.push(ReplyPart::Text {
                    text: Cow::Borrowed(&*said.text),
                    extra: extra(&said.extra),
                });
            }
            Block::Thinking(thinking) if own => parts.push(ReplyPart::Thinking(thinking)),
            Block::Call(call) => {
                let Some(result) = closed.next().filter(|_| whole) else {
                    continue;
                };
                parts.push(ReplyPart::Call {
                    call,
                    args: Args::from_call(call, result),
                    extra: extra(&call.extra),
                });
                let pieces = pieces(&result.content, info.inputs, warnings);
                results.push(ProjectedResult {
                    call,
                    pieces,
                    is_error: result.is_error(),
                });
            }
            Block::Opaque { issuer, value } if whole => {
                parts.extend(project_opaque(issuer, value, info))
            }
            _ => {}
        }
    }
    let is_silent = |part: &ReplyPart<'_>| match part {
        ReplyPart::Thinking(_) => true,
        ReplyPart::Text { text, extra } => text.trim().is_empty() && extra.is_null(),
        ReplyPart::Call { .. } | ReplyPart::Opaque(_) => false,
    };
    if parts.iter().all(is_silent) {
        return ProjectedEntry::Nothing;
    }
    ProjectedEntry::Turn(ProjectedReply {
        parts,
        results,
        own,
        related,
    })
}

/// True if two models are of one provider and one family.
fn is_related(one: &str, other: &str) -> bool {
    let (one_family, other_family) = (family(one), family(other));
    one.split('/').next() == other.split('/').next()
        && !one_family.is_empty()
        && one_family.eq_ignore_ascii_case(other_family)
}

/// The family of a model: the letters that its name starts with, without the path before it.
pub(crate) fn family(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or_default();
    let end = name.find(|it: char| !it.is_ascii_alphabetic());
    &name[..end.unwrap_or(name.len())]
}

/// A block of a provider: for that provider as it is, for others what can be read of it.
fn project_opaque<'a>(
    issuer: &Arc<str>,
    value: &'a Value,
    info: &ModelInfo,
) -> Option<ReplyPart<'a>> {
    if **issuer == *info.provider() {
        return Some(ReplyPart::Opaque(value));
    }
    let mut words = String::new();
    read(value, false, &mut words);
    let words: String = words.chars().take(MAX_FOREIGN).collect();
    let text = format!(
        "[{}: {}]",
        value.get("type").and_then(Value::as_str).unwrap_or("note"),
        words.trim()
    );
    (!words.trim().is_empty()).then_some(ReplyPart::Text {
        text: text.into(),
        extra: &Value::Null,
    })
}

/// Gathers the readable texts of a value, within bounds.
fn read(value: &Value, readable: bool, into: &mut String) {
    if into.len() > MAX_FOREIGN * 4 {
        return;
    }
    match value {
        Value::String(text) if readable => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, readable, into)),
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, value)| read(value, READABLE.contains(&name.as_str()), into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
