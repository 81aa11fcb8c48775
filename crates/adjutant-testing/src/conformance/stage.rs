//! The environment of a hazard: a server with a scripted model, the model under test, and its output.

use std::{fmt::Debug, sync::Arc};

use adjutant_llm::{
    Block, Call, CallResult, Chunk, Collector, Entry, Error, ErrorKind, FinishReason, Model, Reply,
    Request, Script, ScriptedModel, Thinking, Turn, Warning,
};
use serde_json::{Value, json};

use super::{Limits, Subject, Verdict};
use crate::{Loopback, Setup};

/// A server, its script, and the model under test.
pub(super) struct HazardStage {
    pub(super) server: Loopback,
    pub(super) scripted: Arc<ScriptedModel>,
    pub(super) model: Arc<dyn Model>,
}

/// Everything that came from a model in answer to one request.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) chunks: Vec<Chunk>,
    end: Result<Arc<Reply>, Error>,
    /// A description of how the grammar of the chunks was broken.
    broken: Option<String>,
}

impl HazardStage {
    /// A stage on which nothing breaks.
    pub(super) async fn new(
        subject: &dyn Subject,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Result<Self, String> {
        Self::broken(subject, Limits::patient(), scripts, |setup| setup).await
    }

    /// A stage on which something breaks.
    pub(super) async fn broken(
        subject: &dyn Subject,
        limits: Limits,
        scripts: impl IntoIterator<Item = Script>,
        breaks: impl FnOnce(Setup) -> Setup,
    ) -> Result<Self, String> {
        let scripted = Arc::new(ScriptedModel::new(scripts));
        let setup = with_oracle(
            subject,
            Loopback::setup(Arc::clone(&scripted)).strict_signatures(),
        );
        let server = breaks(setup)
            .start()
            .await
            .map_err(|error| format!("the server did not start: {error}"))?;
        let model = subject.model(&server, limits);
        Ok(Self {
            server,
            scripted,
            model,
        })
    }

    /// Calls the model and reads the stream to the end.
    pub(super) async fn ask(&self, request: Request) -> Heard {
        listen(&*self.model, request).await
    }

    /// Calls the model and expects a reply.
    pub(super) async fn reply(&self, request: Request) -> Result<Arc<Reply>, String> {
        self.ask(request).await.reply()
    }

    /// Checks that the provider received a request.
    pub(super) fn ensure_requested(&self) -> Verdict {
        ensure(self.server.request_count() > 0, || {
            "the provider was never asked".into()
        })
    }

    /// Returns a request as the provider understood it, by its number.
    pub(super) fn understood(&self, number: usize) -> Result<Request, String> {
        let requests = self.scripted.requests();
        requests
            .into_iter()
            .nth(number)
            .ok_or_else(|| format!("request {number} never reached the provider's model"))
    }

    /// The body of a request as it came over the wire, by its number.
    pub(super) fn request_body(&self, number: usize) -> Result<Value, String> {
        let requests = self.server.requests();
        requests
            .get(number)
            .map(|it| it.json())
            .ok_or_else(|| format!("request {number} never reached the provider"))
    }

    /// An id of another model, of the same provider.
    pub(super) fn other_model(&self) -> String {
        format!("{}/another-model", self.model.info().provider())
    }
}

/// The server with the wire of the subject's models.
pub(super) fn with_oracle(subject: &dyn Subject, mut setup: Setup) -> Setup {
    setup.oracle = subject.oracle();
    setup
}

/// Calls a model, checks the grammar of its stream, and reads it to the end.
async fn listen(model: &dyn Model, request: Request) -> Heard {
    let mut stream = model.stream(request);
    let mut collector = Collector::default();
    let (mut chunks, mut broken) = (Vec::new(), None);
    let end = loop {
        let Some(item) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await else {
            let what = "the stream ended without a terminal";
            broken.get_or_insert_with(|| what.to_owned());
            break Err(Error::new(ErrorKind::Protocol, what));
        };
        match item {
            Err(error) => break Err(error),
            Ok(chunk) => {
                if let Err(error) = collector.push(&chunk) {
                    broken.get_or_insert_with(|| error.message().to_owned());
                }
                let done = if let Chunk::Done(reply) = &chunk {
                    Some(Arc::clone(reply))
                } else {
                    None
                };
                chunks.push(chunk);
                if let Some(reply) = done {
                    break Ok(reply);
                }
            }
        }
    };
    if std::future::poll_fn(|cx| stream.as_mut().poll_next(cx))
        .await
        .is_some()
    {
        broken.get_or_insert_with(|| "something followed the end of the stream".to_owned());
    }
    let broken = broken.or_else(|| {
        end.as_ref()
            .ok()
            .and_then(|reply| contradiction(&chunks, reply))
    });
    Heard {
        chunks,
        end,
        broken,
    }
}

/// Describes how the chunks contradict each other or the reply, if they do.
fn contradiction(chunks: &[Chunk], reply: &Reply) -> Option<String> {
    let last = chunks
        .iter()
        .rposition(|chunk| matches!(chunk, Chunk::Start { .. }))
        .unwrap_or_default();
    let mut closed: Vec<(u32, &Arc<Block>)> = Vec::new();
    for chunk in &chunks[last..] {
        if let Chunk::Close { block, content } = chunk {
            closed.push((*block, content));
        }
    }
    for (block, content) in &closed {
        let grown: String = chunks[last..]
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Delta { block: of, text } if of == block => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let whole: &str = match &***content {
            Block::Text(said) => &said.text,
            Block::Thinking(thinking) => &thinking.text,
            Block::Call(call) => &call.args,
            _ => continue,
        };
        if !grown.is_empty() && grown != whole {
            return Some(format!(
                "the deltas of block {block} say {grown:?}, its end says {whole:?}"
            ));
        }
    }
    closed.sort_by_key(|(block, _)| *block);
    let blocks: Vec<&Arc<Block>> = closed.into_iter().map(|(_, content)| content).collect();
    (blocks != reply.blocks.iter().collect::<Vec<_>>())
        .then(|| "the blocks of the reply are not those that ended".into())
}

impl Heard {
    /// The reply.
    pub(super) fn reply(self) -> Result<Arc<Reply>, String> {
        match (self.broken, self.end) {
            (Some(how), Ok(_)) => Err(how),
            (_, Ok(reply)) => Ok(reply),
            (_, Err(error)) => Err(format!(
                "expected a reply, got {:?}: {error}{}",
                error.kind(),
                body(&error)
            )),
        }
    }

    /// The error, which must be of one of these kinds, or of any if none is named.
    pub(super) fn error(self, kinds: &[ErrorKind]) -> Result<Error, String> {
        match (self.broken, self.end) {
            (Some(how), _) => Err(how),
            (None, Ok(reply)) => Err(format!(
                "expected an error, got a reply that stops with {:?}",
                reply.stop
            )),
            (None, Err(error)) if kinds.is_empty() || kinds.contains(&error.kind()) => Ok(error),
            (None, Err(error)) => Err(format!(
                "expected {kinds:?}, got {:?}: {error}",
                error.kind()
            )),
        }
    }

    /// The text of all deltas that are text for the user.
    pub(super) fn text(&self) -> String {
        let deltas = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Delta { text, .. } => Some(text.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    /// Returns the warnings about changes to the request, and about tolerated errors of the answer.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let starts = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Start { warnings, .. } => Some(warnings.clone()),
            Chunk::Warned { warning } => Some(vec![warning.clone()]),
            _ => None,
        });
        starts.flatten().collect()
    }
}

fn body(error: &Error) -> String {
    error
        .details()
        .body
        .as_deref()
        .map(|body| format!(" ({body})"))
        .unwrap_or_default()
}

/// Checks a condition.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(why()) }
}

/// Checks that two things are the same.
pub(super) fn same<T: PartialEq + Debug>(what: &str, came: T, expected: T) -> Verdict {
    ensure(came == expected, || {
        format!("{what}: expected {expected:?}, got {came:?}")
    })
}

/// The smallest request.
pub(super) fn hello() -> Request {
    Request::new().user("Hello!")
}

/// The smallest request with tools called `look` and `find`.
pub(super) fn with_tools() -> Request {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A name."}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let tool = |name: &str, description: &str| adjutant_llm::ToolDecl {
        name: name.into(),
        description: description.into(),
        schema: Arc::new(schema.clone()),
    };
    hello().tools([
        tool("look", "Looks at a city."),
        tool("find", "Finds a city."),
    ])
}

/// Thinking with this text and signature; the signature is base64, as one wire wants it.
pub(super) fn signed_thinking(text: &str, signature: &str) -> Thinking {
    let mut thinking = Thinking::new(text);
    thinking.signature = Some(signature.into());
    thinking
}

/// A reply with the result of each of its calls.
pub(super) fn turn(
    reply: &Arc<Reply>,
    result: impl Fn(&Call) -> CallResult,
) -> Result<Entry, String> {
    let mut open = Turn::open(Arc::clone(reply));
    for call in reply.calls() {
        // Each call is answered once; two with one id leave the turn open, which is reported below.
        let _ = open.put(call.id, Arc::new(result(call)));
    }
    let turn = open
        .close()
        .map_err(|_| "two calls of one reply have the same id".to_owned())?;
    Ok(Entry::Turn(turn))
}

/// A reply that a model of this id might have given, with these blocks.
pub(super) fn build_reply(model: &str, blocks: Vec<Block>, stop: FinishReason) -> Arc<Reply> {
    let mut reply = Reply::new(model.into(), stop);
    reply.blocks = blocks.into_iter().map(Arc::new).collect();
    Arc::new(reply)
}

/// The results that the provider has understood, in order, each by the name of its call and its text.
pub(super) fn results(request: &Request) -> Vec<(String, String)> {
    let mut results = Vec::new();
    for stored in request.entries.iter() {
        if let Entry::Turn(turn) = &stored.entry {
            results.extend(
                turn.pairs()
                    .map(|(call, result)| (call.name.as_str().to_owned(), result.text())),
            );
        }
    }
    results
}

/// Everything that the provider has understood as text of a user, in order.
pub(super) fn collect_user_text(request: &Request) -> String {
    let mut texts = Vec::new();
    for stored in request.entries.iter() {
        if let Entry::User(message) = &stored.entry {
            texts.extend(
                message
                    .content
                    .iter()
                    .filter_map(|content| content.as_text().map(str::to_owned)),
            );
        }
    }
    texts.join("\n")
}
