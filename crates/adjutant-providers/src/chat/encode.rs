//! Entries and requests as bytes of the OpenAI Chat Completions API, in one dialect. Pure.

mod messages;
mod options;
mod thinking;

use std::{borrow::Cow, sync::Arc};

use adjutant_llm::{Cache, Entry, ModelInfo, Options, Request, Warning};

use super::wire::{CacheControl, Content, Message, Part};
use crate::{
    dialect::{CallIds, Dialect, SystemRole},
    projection::{self, ProjectedEntry},
    segments::{Encode, Messages, Tail, write},
};
pub(super) use messages::{AS_PART, IN_TAGS};
use options::BodyFields;

/// Extra fields that would contradict the request.
const RESERVED: [&str; 4] = ["model", "messages", "stream", "tools"];

/// Writes requests for one model.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    /// The model, within the limits of the dialect.
    info: Arc<ModelInfo>,
    dialect: Cow<'static, Dialect>,
}

impl Encoder {
    pub(super) fn new(info: &ModelInfo, dialect: Cow<'static, Dialect>) -> Self {
        let mut info = info.clone();
        info.inputs.images &= dialect.images;
        info.inputs.documents &= dialect.files;
        let mut dialect = dialect;
        // On every host, these models expect ids of one form and stop answering after others. Source:
        // `docs/tool_call_guidance.md` of MoonshotAI/Kimi-K2, and vllm-project/vllm 24478, 2025-09.
        if dialect.call_ids == CallIds::Ours
            && projection::family(info.name()).eq_ignore_ascii_case("kimi")
        {
            dialect.to_mut().call_ids = CallIds::Named;
        }
        Self {
            info: Arc::new(info),
            dialect,
        }
    }

    pub(super) fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The same in another dialect.
    pub(super) fn set_dialect(&mut self, info: &ModelInfo, dialect: Dialect) {
        *self = Self::new(info, Cow::Owned(dialect));
    }

    /// True if parts of messages are marked for the prompt cache.
    fn is_marked(&self) -> bool {
        self.dialect.cache_marks && self.info.name().starts_with("anthropic/")
    }

    /// Writes the message of the system prompt and of the text added to it.
    fn system(&self, request: &Request, added: Option<String>, out: &mut Vec<u8>) -> Messages {
        let system = request.system.trim();
        let text = match (system.is_empty(), added) {
            (true, None) => return Messages::None,
            (false, None) => Cow::Borrowed(&*request.system),
            (true, Some(added)) => Cow::Owned(added),
            (false, Some(added)) => Cow::Owned(format!("{}\n\n{added}", request.system)),
        };
        let content = match self.control(&request.options) {
            Some(control) => Content::Parts(vec![Part::Text {
                text,
                cache_control: Some(control),
            }]),
            None => Content::Text(text),
        };
        let message = match self.dialect.system {
            SystemRole::Developer if !self.info.efforts.is_empty() => {
                Message::Developer { content }
            }
            SystemRole::Developer | SystemRole::System => Message::System { content },
        };
        write(out, &message);
        Messages::Some
    }

    fn control(&self, options: &Options) -> Option<CacheControl> {
        match options.cache {
            Cache::Off => None,
            _ if !self.is_marked() => None,
            // The form of the vendor's own, chosen by the caller.
            _ if options.extra.contains_key("cache_control") => None,
            Cache::Long => Some(CacheControl {
                kind: "ephemeral",
                ttl: Some("1h"),
            }),
            _ => Some(CacheControl {
                kind: "ephemeral",
                ttl: None,
            }),
        }
    }
}

impl Encode for Encoder {
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages {
        out.extend_from_slice(b"{\"model\":");
        write(out, self.info.name());
        let is_marked = self.is_marked();
        let mut fields = BodyFields {
            dialect: &self.dialect,
            info: &self.info,
            request,
            is_marked,
            out,
            warnings,
        };
        let added = fields.write();
        out.extend_from_slice(b",\"messages\":[");
        self.system(request, added, out)
    }

    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
        match projection::project_entry(entry, &self.info, warnings) {
            ProjectedEntry::Nothing => {}
            ProjectedEntry::User(pieces) => self.user(pieces, tail, warnings),
            ProjectedEntry::Turn(said) => self.turn(said, tail, warnings),
        }
    }

    fn mark(&self, options: &Options) -> Option<&'static [u8]> {
        match self.control(options)?.ttl {
            Some(_) => Some(br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#),
            None => Some(br#","cache_control":{"type":"ephemeral"}"#),
        }
    }
}
