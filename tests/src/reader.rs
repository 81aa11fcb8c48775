//! Reads a stream to its end as a consumer would that shows deltas at once, and holds it to its grammar.

use std::sync::Arc;

use adjutant::{
    Model,
    llm::{Block, BlockKind, Chunk, Collector, Error, ErrorKind, Reply, Request, Warning},
};
use futures_util::StreamExt;

/// What a consumer saw.
#[derive(Debug)]
pub struct Heard {
    /// The text of each attempt that was shown, in order, as its deltas gave it.
    pub attempts: Vec<String>,
    /// How many attempts were taken back.
    pub retracted: usize,
    /// What the last start warned of.
    pub warnings: Vec<Warning>,
    /// All chunks.
    pub chunks: Vec<Chunk>,
    /// How the stream ended.
    pub end: Result<Arc<Reply>, Error>,
}

/// Asks a model and reads the stream to its end.
///
/// # Panics
/// If the stream breaks its grammar, goes on after its end, shows a delta twice, or if deltas and blocks differ.
#[track_caller]
pub fn listen<'a>(
    model: &'a (dyn Model + 'a),
    request: Request,
) -> impl Future<Output = Heard> + 'a {
    let mut stream = model.stream(request);
    async move {
        let mut heard = Heard {
            attempts: Vec::new(),
            retracted: 0,
            warnings: Vec::new(),
            chunks: Vec::new(),
            end: Err(Error::new(
                ErrorKind::Protocol,
                "the stream has no terminal",
            )),
        };
        let mut collector = Collector::default();
        let mut open: Vec<(u32, BlockKind, String)> = Vec::new();
        while let Some(item) = stream.next().await {
            let chunk = match item {
                Ok(chunk) => chunk,
                Err(error) => {
                    heard.end = Err(error);
                    break;
                }
            };
            let reply = collector
                .push(&chunk)
                .expect("the stream holds its grammar");
            heard.note(&chunk, &mut open);
            heard.chunks.push(chunk);
            if let Some(reply) = reply {
                let shown = heard
                    .attempts
                    .last()
                    .map(String::as_str)
                    .unwrap_or_default();
                assert_eq!(shown, reply.text(), "what was shown and what was said");
                heard.end = Ok(reply);
                break;
            }
        }
        let after = stream.next().await;
        assert!(after.is_none(), "something after the end: {after:?}");
        heard
    }
}

/// What a model gave where it must not fail; otherwise the error and the body that came with it are told.
///
/// # Panics
/// If it failed.
#[track_caller]
pub fn taken<T>(result: Result<T, Error>, what: &str) -> T {
    let why = result
        .as_ref()
        .err()
        .map(|error| format!("{error}; {:?}", error.details().body.as_deref()));
    assert_eq!(why, None, "{what}");
    result.expect("it was just looked at")
}

impl Heard {
    /// The reply.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn reply(&self) -> &Arc<Reply> {
        self.end.as_ref().expect("there is a reply")
    }

    /// The error.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn error(&self) -> &Error {
        self.end.as_ref().expect_err("there is an error")
    }

    fn note(&mut self, chunk: &Chunk, open: &mut Vec<(u32, BlockKind, String)>) {
        match chunk {
            Chunk::Start { warnings, .. } => {
                self.warnings.clone_from(warnings);
                self.attempts.push(String::new());
                open.clear();
            }
            Chunk::Open { block, kind } => open.push((*block, kind.clone(), String::new())),
            Chunk::Delta { block, text } => {
                let (_, kind, grown) = open
                    .iter_mut()
                    .find(|it| it.0 == *block)
                    .expect("the block is open");
                grown.push_str(text);
                if let (BlockKind::Text, Some(shown)) = (kind, self.attempts.last_mut()) {
                    shown.push_str(text);
                }
            }
            Chunk::Close { block, content } => {
                let (_, _, grown) = open
                    .iter()
                    .find(|it| it.0 == *block)
                    .expect("the block is open");
                let whole = match &**content {
                    Block::Text(said) => &*said.text,
                    Block::Thinking(thinking) => &*thinking.text,
                    Block::Call(call) => &*call.args,
                    _ => return,
                };
                assert!(
                    grown == whole || grown.is_empty(),
                    "the deltas say {grown:?}, the block says {whole:?}"
                );
            }
            Chunk::Retracted { .. } => self.retracted += 1,
            _ => {}
        }
    }
}
