//! The cached encoding of a transcript: sealed segments, a tail, and the head.
//!
//! Only new entries are encoded. The wire defines the form of entries and heads.

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::{
    Entry, ModelInfo, Options, Reply, Request, Stored, ToolDecl, Warning, WarningKind,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Serializer, Value};

use crate::{
    body::{Marks, Segmented},
    call_ids::TheirIds,
    escape::TextFormatter,
    fnv::Fnv,
    media::KeptMedia,
    strict::has_renamed_keys,
    tool_names::is_renamed,
};

/// A segment is sealed when it has at least this many bytes: few enough pieces, and little to copy.
const SEGMENT: usize = 64 * 1024;

/// The end of the messages and of the request.
const END: &[u8] = b"]}";

/// The writer of the parts of a request, for one wire. Pure.
///
/// A body is a head, the messages, and `]}`. The bytes of the messages are stored with the history: an entry is
/// encoded once, and the next request sends the stored bytes, unless its history differs.
pub trait Encode {
    /// Writes everything up to the opening bracket of the messages; messages in the head, such as the system prompt,
    /// follow it.
    fn head(&self, request: &Request, out: &mut Vec<u8>, warnings: &mut Vec<Warning>) -> Messages;

    /// Writes the messages of an entry in the form that the model may receive ([`project_entry`](crate::wire::project_entry)).
    fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>);

    /// Returns true if thinking that does not fit the conversation before it is left out of this request, because the server
    /// would refuse it. Only the thinking of models with [`ModelInfo::thinking_binding`] is compared.
    fn checks_thinking(&self, request: &Request) -> bool {
        let _ = request;
        false
    }

    /// Returns the cache mark for messages, if the wire has marks; it is inserted at the positions that entries
    /// report.
    fn mark(&self, options: &Options) -> Option<&'static [u8]> {
        let _ = options;
        None
    }
}

/// The messages that are not sealed yet; entries are written at its end.
#[derive(Debug, Default)]
pub struct Tail {
    /// The bytes.
    pub(crate) out: Vec<u8>,
    /// The sender of the last message.
    pub(crate) last: Option<Role>,
    /// The ids of vendors in the messages, sealed ones too.
    pub(crate) their_ids: TheirIds,
    /// The offset in `out` at which a mark would stand in the last message that can have one; set by the wire.
    pub(crate) markable: Option<usize>,
    /// Bytes that are sent at the end of the messages until the wire writes them before a message of the model.
    pub(crate) pending: Vec<u8>,
    /// The number of messages so far.
    pub(crate) messages: usize,
    /// The digest of the messages so far, but for their thinking, if thinking is bound to them.
    digest: Option<Fnv>,
    /// The digest of the head that thinking has to fit, if it is compared.
    head: Option<Fnv>,
    /// True if the server has refused the thinking of the entry that is written.
    is_refused: bool,
}

/// The digests of the conversation that thinking is bound to: of the head, and of the messages but for their thinking.
///
/// The head counts as its system prompt and its set of tools. Marks of the prompt cache do not count, nor does the order of
/// tools and of members. Source: "Preserved thinking", platform.claude.com, 2026-11, "What counts as an edit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    head: Fnv,
    messages: Fnv,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) body: Segmented,
    /// The changes that were made.
    pub(crate) warnings: Vec<Warning>,
    /// The digests that the thinking of the reply is bound to, if the model binds it.
    pub(crate) prefix: Option<Prefix>,
    /// The tools that are declared with other names or property keys.
    pub(crate) renamed: Arc<[ToolDecl]>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Model,
    Tool,
}

/// The messages in the head: if it contains one, a comma must follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// The head ends with the opening bracket.
    None,
    /// The head ends with a message.
    Some,
}

impl Tail {
    /// Adds a message.
    pub fn push(&mut self, message: &(impl Serialize + ?Sized)) {
        self.messages += 1;
        self.out.push(b',');
        write(&mut self.out, message);
    }

    /// Records that a mark of the prompt cache may be inserted in the last message, this many bytes before its end.
    pub fn markable(&mut self, before_end: usize) {
        self.markable = self.out.len().checked_sub(before_end);
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty() && self.pending.is_empty()
    }

    /// Writes the pending bytes: messages before one of the model.
    pub(crate) fn flush(&mut self) {
        let start = self.out.len();
        self.out.append(&mut self.pending);
        self.bind(start);
        self.messages += 1;
    }

    /// Adds the bytes from `start` on to the conversation that later thinking is bound to.
    pub(crate) fn bind(&mut self, start: usize) {
        if let Some(digest) = &mut self.digest {
            *digest = digest.with(&self.out[start..]);
        }
    }

    /// Returns true if the thinking of a reply can be sent here: the server has not refused it, and nothing before it has
    /// changed where that is compared. A reply without a digest is sent as it is.
    pub(crate) fn takes_thinking_of(&self, reply: &Reply) -> bool {
        let fits = |signed: &Arc<str>| match (self.head, self.digest) {
            (Some(head), Some(messages)) => **signed == *Prefix { head, messages }.to_string(),
            _ => true,
        };
        !self.is_refused && reply.prefix_digest.as_ref().is_none_or(fits)
    }
}

impl Prefix {
    /// Returns the digest of the part before the messages.
    fn head(request: &Request) -> Fnv {
        let declared = request
            .tools
            .iter()
            .map(|tool| serde_json::json!([tool.name, tool.description, *tool.schema]));
        let server_tools = request.options.server_tools.iter().cloned();
        let mut tools: Vec<String> = declared.chain(server_tools).filter_map(canonical).collect();
        tools.sort_unstable();
        let system = Fnv::new().with(request.system.trim());
        tools.iter().fold(system, |digest, tool| digest.with(tool))
    }
}

/// Returns a tool in one form, whatever the order of its members; nothing if it does not count before it is used.
fn canonical(mut tool: Value) -> Option<String> {
    if let Some(members) = tool.as_object_mut() {
        members.remove("cache_control");
    }
    tool.sort_all_objects();
    (tool.get("defer_loading") != Some(&Value::Bool(true))).then(|| tool.to_string())
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.head, self.messages)
    }
}

/// The encoding of one transcript for one wire and model.
///
/// Invariant: `sealed` and `tail` hold the messages of the first `count` entries, of which `last` is the last; between
/// requests, the bytes of the tail are `lent`.
#[derive(Debug, Default)]
pub(crate) struct EncodedTranscript {
    info: Option<Arc<ModelInfo>>,
    head: Option<Arc<Head>>,
    sealed: Arc<Vec<Bytes>>,
    sealed_bytes: u64,
    tail: Tail,
    /// The tail and its end, as the latest request sends them: copied only if that request is still running when the
    /// next one starts.
    lent: Arc<Vec<u8>>,
    /// The places where the messages can be marked: at the newest entry, and at the one before the newest turn. The
    /// request before ended there, so that its cache is met whatever came since.
    newest: Option<u64>,
    before_turn: Option<u64>,
    count: usize,
    last: Option<Arc<Stored>>,
    /// The entries with thinking that the server has refused.
    refused: Range<usize>,
    media: KeptMedia,
}

#[derive(Debug)]
pub(crate) struct Head {
    bytes: Bytes,
    messages: Messages,
    digest: Option<Fnv>,
    checks_thinking: bool,
    warnings: Vec<Warning>,
    renamed: Arc<[ToolDecl]>,
    system: Arc<str>,
    tools: Arc<[ToolDecl]>,
    added: Arc<[ToolDecl]>,
    options: Arc<Options>,
}

/// The heads that a model has sent lately, shared by all transcripts: agents of one kind have one head.
#[derive(Clone, Default)]
pub(crate) struct Heads(Arc<Mutex<Vec<Arc<Head>>>>);

/// The largest number of heads that are shared.
const MAX_HEADS: usize = 8;

/// Prepares a request.
pub(crate) fn encode(
    key: &str,
    info: &Arc<ModelInfo>,
    wire: &impl Encode,
    heads: &Heads,
    request: &Request,
) -> Prepared {
    let slot = request
        .entries
        .encodings()
        .slot::<Mutex<EncodedTranscript>>(key);
    lock(&slot).encode(info, wire, heads, request)
}

/// Leaves out the thinking of the replies of a request from the message with this index on, because the server has refused
/// it. It stays left out while the conversation grows.
#[cold]
pub(crate) fn refuse_thinking(
    key: &str,
    info: &Arc<ModelInfo>,
    wire: &impl Encode,
    request: &Request,
    message: usize,
) {
    let entries = &request.entries;
    let mut written = EncodedTranscript::new(info, None, 0..0);
    let is_before = |stored: &&Arc<Stored>| {
        written.entry(wire, &stored.entry, &mut Vec::new());
        written.tail.messages <= message
    };
    let from = entries.iter_from(0).take_while(is_before).count();
    let slot = entries.encodings().slot::<Mutex<EncodedTranscript>>(key);
    let mut kept = lock(&slot);
    let known = Some(kept.refused.clone()).filter(|it| !it.is_empty());
    let from = known.map_or(from, |it| it.start.min(from));
    *kept = EncodedTranscript::new(info, None, from..entries.len());
}

/// Bytes that a request sends while its transcript continues to grow.
struct Lent(Arc<Vec<u8>>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Heads {
    /// They contain prompts, which must not appear in the debug output of a model.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heads").finish_non_exhaustive()
    }
}

impl Heads {
    /// The head of this request; written if it was not sent lately.
    fn get_or_insert(&self, info: &ModelInfo, wire: &impl Encode, request: &Request) -> Arc<Head> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = heads.iter().find(|head| head.is_of(wire, request)) {
            return Arc::clone(head);
        }
        if heads.len() == MAX_HEADS {
            heads.remove(0);
        }
        let head = Arc::new(Head::new(info, wire, request));
        heads.push(Arc::clone(&head));
        head
    }
}

/// After a panic of its last user, a slot may contain half an entry, so it is cleared.
fn lock(slot: &Mutex<EncodedTranscript>) -> MutexGuard<'_, EncodedTranscript> {
    slot.lock().unwrap_or_else(|poisoned| {
        slot.clear_poison();
        let mut kept = poisoned.into_inner();
        *kept = EncodedTranscript::default();
        kept
    })
}

impl EncodedTranscript {
    /// Starts an encoding in which thinking has to fit this head, if there is one.
    fn new(info: &Arc<ModelInfo>, head: Option<Fnv>, refused: Range<usize>) -> Self {
        let tail = Tail {
            digest: info.thinking_binding.then(Fnv::new),
            head,
            ..Tail::default()
        };
        Self {
            info: Some(Arc::clone(info)),
            tail,
            refused,
            ..Self::default()
        }
    }

    fn encode(
        &mut self,
        info: &Arc<ModelInfo>,
        wire: &impl Encode,
        heads: &Heads,
        request: &Request,
    ) -> Prepared {
        let head = self.head(info, wire, heads, request);
        let compared = head.digest.filter(|_| head.checks_thinking);
        let fits = self.fits(info, request);
        if !fits || self.tail.head != compared {
            let refused = if fits { self.refused.clone() } else { 0..0 };
            *self = Self::new(info, compared, refused);
            self.head = Some(Arc::clone(&head));
        }
        self.take_back();
        if self.media.add(request.entries.iter_from(self.count), info) {
            let media = std::mem::take(&mut self.media).restart();
            *self = Self {
                head: Some(Arc::clone(&head)),
                media,
                ..Self::new(info, compared, self.refused.clone())
            };
        }
        let mut added = Vec::new();
        for stored in request.entries.iter_from(self.count) {
            self.entry(wire, &stored.entry, &mut added);
            self.count += 1;
            self.last = Some(Arc::clone(stored));
        }
        let sealed = Arc::clone(&self.sealed);
        let mut warnings = head.warnings.clone();
        warnings.extend(added);
        let empty = self.count == 0 || sealed.is_empty() && self.tail.is_empty();
        let skip = usize::from(head.messages == Messages::None && !empty);
        let marks = match wire.mark(&request.options) {
            Some(mark) => {
                let before = self.before_turn.filter(|_| self.before_turn != self.newest);
                Marks {
                    bytes: Bytes::from_static(mark),
                    at: [before, self.newest],
                }
            }
            None => Marks::default(),
        };
        let mut prefix = head.digest.zip(self.tail.digest);
        if let Some((_, messages)) = prefix.as_mut().filter(|_| !self.tail.pending.is_empty()) {
            *messages = messages.with(&self.tail.pending);
        }
        Prepared {
            body: Segmented::new(head.bytes.clone(), sealed, self.lend(), skip, marks),
            warnings,
            prefix: prefix.map(|(head, messages)| Prefix { head, messages }),
            renamed: Arc::clone(&head.renamed),
        }
    }

    /// Moves the tail and its end to a request.
    fn lend(&mut self) -> Bytes {
        self.tail.out.extend_from_slice(&self.tail.pending);
        self.tail.out.extend_from_slice(END);
        let out = std::mem::take(&mut self.tail.out);
        match Arc::get_mut(&mut self.lent) {
            Some(lent) => *lent = out,
            None => self.lent = Arc::new(out),
        }
        Bytes::from_owner(Lent(Arc::clone(&self.lent)))
    }

    /// Takes the tail back, without its end.
    fn take_back(&mut self) {
        self.tail.out = match Arc::get_mut(&mut self.lent) {
            Some(lent) => std::mem::take(lent),
            None => self.lent.to_vec(),
        };
        let end = self.tail.pending.len() + END.len();
        self.tail
            .out
            .truncate(self.tail.out.len().saturating_sub(end));
    }

    fn entry(&mut self, wire: &impl Encode, entry: &Entry, warnings: &mut Vec<Warning>) {
        if matches!(entry, Entry::Turn(_)) {
            self.before_turn = self.newest;
        }
        self.tail.is_refused = self.refused.contains(&self.count);
        match self.media.project(entry, warnings) {
            Some(entry) => wire.entry(&entry, &mut self.tail, warnings),
            None => wire.entry(entry, &mut self.tail, warnings),
        }
        if let Some(at) = self.tail.markable.take() {
            self.newest = Some(self.sealed_bytes + at as u64);
        }
        self.seal();
    }

    /// True if the kept part is a prefix of this request.
    fn fits(&self, info: &Arc<ModelInfo>, request: &Request) -> bool {
        let same_info = self
            .info
            .as_ref()
            .is_some_and(|kept| Arc::ptr_eq(kept, info) || kept == info);
        same_info
            && match (&self.last, self.count.checked_sub(1)) {
                (Some(last), Some(at)) => request
                    .entries
                    .get(at)
                    .is_some_and(|stored| Arc::ptr_eq(stored, last)),
                (None, _) | (_, None) => true,
            }
    }

    fn seal(&mut self) {
        if self.tail.out.len() >= SEGMENT {
            self.tail.out.shrink_to_fit();
            self.sealed_bytes += self.tail.out.len() as u64;
            let segment = Bytes::from(std::mem::take(&mut self.tail.out));
            Arc::make_mut(&mut self.sealed).push(segment);
        }
    }

    fn head(
        &mut self,
        info: &ModelInfo,
        wire: &impl Encode,
        heads: &Heads,
        request: &Request,
    ) -> Arc<Head> {
        let kept = self.head.take().filter(|head| head.is_of(wire, request));
        let head = kept.unwrap_or_else(|| heads.get_or_insert(info, wire, request));
        Arc::clone(self.head.insert(head))
    }
}

/// The request without the tools that are too many for the model: one tool too many refuses the whole request.
fn within_limit<'a>(
    info: &ModelInfo,
    request: &'a Request,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Request> {
    let server_tools = request.options.server_tools.len();
    let Some(most) = info.max_tools.map(|most| most.saturating_sub(server_tools)) else {
        return Cow::Borrowed(request);
    };
    if request.tools.len() <= most {
        return Cow::Borrowed(request);
    }
    let (count, id) = (request.tools.len() - most, &info.id);
    let text = format!("{count} tools were left out: {id} takes {most} tools in a request");
    warnings.push(Warning {
        kind: WarningKind::Degraded,
        message: text.into(),
    });
    let mut request = request.clone();
    request.tools = request.tools[..most].into();
    Cow::Owned(request)
}

impl Head {
    fn new(info: &ModelInfo, wire: &impl Encode, request: &Request) -> Self {
        let (mut bytes, mut warnings) = (Vec::new(), Vec::new());
        let declared = within_limit(info, request, &mut warnings);
        let messages = wire.head(&declared, &mut bytes, &mut warnings);
        let tools = request.tools.iter().chain(&*request.added);
        let renamed = tools.filter(|tool| is_renamed(tool) || has_renamed_keys(tool));
        Self {
            bytes: bytes.into(),
            messages,
            digest: info.thinking_binding.then(|| Prefix::head(request)),
            checks_thinking: wire.checks_thinking(request),
            warnings,
            renamed: renamed.cloned().collect(),
            system: Arc::clone(&request.system),
            tools: Arc::clone(&request.tools),
            added: Arc::clone(&request.added),
            options: Arc::clone(&request.options),
        }
    }

    fn is_of(&self, wire: &impl Encode, request: &Request) -> bool {
        self.checks_thinking == wire.checks_thinking(request)
            && (Arc::ptr_eq(&self.system, &request.system) || self.system == request.system)
            && (Arc::ptr_eq(&self.options, &request.options) || self.options == request.options)
            && (Arc::ptr_eq(&self.tools, &request.tools) || self.tools == request.tools)
            && (Arc::ptr_eq(&self.added, &request.added) || self.added == request.added)
    }
}

/// Writes a value as JSON: a vendor's own type, whose keys are text.
///
/// # Panics
/// If a map in it has keys that are no text, or its own `Serialize` fails.
#[expect(
    clippy::expect_used,
    reason = "our own types have text keys, and a vector takes every byte"
)]
pub fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let mut serializer = Serializer::with_formatter(out, TextFormatter);
    value
        .serialize(&mut serializer)
        .expect("JSON that was made for this");
}

/// Writes a member of an object after another one, as [`write()`] does.
///
/// # Panics
/// As [`write()`].
pub fn member(out: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    out.push(b',');
    write(out, name);
    out.push(b':');
    write(out, value);
}

#[cfg(test)]
mod tests {
    use adjutant_llm::{Transcript, UserMessage};

    use super::*;

    /// Writes an entry as `,"<text>"`, and counts what it is asked for.
    #[derive(Default)]
    struct Plain {
        entries: std::cell::Cell<usize>,
        heads: std::cell::Cell<usize>,
        shared: Heads,
    }

    impl Encode for Plain {
        fn head(&self, request: &Request, out: &mut Vec<u8>, _: &mut Vec<Warning>) -> Messages {
            self.heads.set(self.heads.get() + 1);
            out.extend_from_slice(b"[");
            if request.system.is_empty() {
                return Messages::None;
            }
            write(out, &request.system);
            Messages::Some
        }

        fn entry(&self, entry: &Entry, tail: &mut Tail, _: &mut Vec<Warning>) {
            self.entries.set(self.entries.get() + 1);
            if let Entry::User(message) = entry {
                tail.out.push(b',');
                write(
                    &mut tail.out,
                    message.content[0].as_text().unwrap_or_default(),
                );
            }
        }
    }

    #[track_caller]
    fn check(wire: &Plain, info: &Arc<ModelInfo>, request: &Request, expect: &str) {
        let Prepared { body, .. } = encode("plain", info, wire, &wire.shared, request);
        assert_eq!(String::from_utf8(body.to_vec()).expect("text"), expect);
    }

    fn user(text: &str) -> Entry {
        Entry::User(UserMessage::text(text))
    }

    #[test]
    fn encode_writes_only_new_entries_when_entries_were_appended() {
        let (wire, info) = (Plain::default(), Arc::new(ModelInfo::new("x/y")));
        let mut request = Request::from_entries(Transcript::from_iter([user("a"), user("b")]));
        check(&wire, &info, &request, r#"["a","b"]}"#);
        request.entries.push(user("c"));
        check(&wire, &info, &request, r#"["a","b","c"]}"#);
        assert_eq!((wire.entries.get(), wire.heads.get()), (3, 1));
        check(
            &wire,
            &info,
            &request.clone().system("s"),
            r#"["s","a","b","c"]}"#,
        );
        assert_eq!((wire.entries.get(), wire.heads.get()), (3, 2));
        check(&wire, &info, &Request::new().system("s"), r#"["s"]}"#);
        check(&wire, &info, &Request::new(), "[]}");
    }

    #[test]
    fn encode_starts_over_when_the_transcript_diverges() {
        let (wire, info) = (Plain::default(), Arc::new(ModelInfo::new("x/y")));
        let mut one = Request::from_entries(Transcript::from_iter([user("a")]));
        let mut other = one.clone();
        one.entries.push(user("b"));
        other.entries.push(user("c"));
        check(&wire, &info, &one, r#"["a","b"]}"#);
        check(&wire, &info, &other, r#"["a","c"]}"#);
        check(&wire, &info, &one, r#"["a","b"]}"#);
        check(
            &wire,
            &Arc::new(ModelInfo::new("x/z")),
            &one,
            r#"["a","b"]}"#,
        );
        assert_eq!(wire.entries.get(), 8);
    }

    #[test]
    fn head_declares_as_many_tools_as_the_model_takes() {
        let tool = |n: usize| ToolDecl {
            name: format!("t{n}").into(),
            description: "".into(),
            schema: Arc::default(),
        };
        let info = ModelInfo {
            max_tools: Some(3),
            ..ModelInfo::new("x/y")
        };
        for (count, expect) in [(3, 3), (5, 3)] {
            let tools: Vec<_> = (0..count).map(tool).collect();
            let request = Request::new().tools(tools);
            let mut warnings = Vec::new();
            assert_eq!(
                within_limit(&info, &request, &mut warnings).tools.len(),
                expect
            );
            let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
            let text = "2 tools were left out: x/y takes 3 tools in a request";
            assert_eq!(texts, if count > 3 { vec![text] } else { vec![] });
        }
    }

    #[test]
    fn encode_seals_segments_when_they_are_large() {
        let (wire, info) = (Plain::default(), Arc::new(ModelInfo::new("x/y")));
        let mut request = Request::new();
        let mut texts = Vec::new();
        for n in 0..40 {
            let text = n.to_string().repeat(5_000);
            request.entries.push(user(&text));
            texts.push(format!("{text:?}"));
            check(&wire, &info, &request, &format!("[{}]}}", texts.join(",")));
        }
        let slot = request
            .entries
            .encodings()
            .slot::<Mutex<EncodedTranscript>>("plain");
        let kept = lock(&slot);
        assert!(
            kept.sealed.len() > 2 && kept.sealed.iter().all(|it| it.len() >= SEGMENT),
            "{}",
            kept.sealed.len()
        );
        assert_eq!(wire.entries.get(), 40);
    }
}
