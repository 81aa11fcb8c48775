//! Holds requests back until a limiter lets them pass. The limits themselves are in `limiter.rs`.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::limiter::{Permit, Tokens};
use crate::{
    Chunk, ChunkStream, Error, ErrorKind, Estimate, Limiter, Model, ModelId, ModelInfo, Request,
    Usage,
};

/// The largest number of output tokens that are reserved: most replies are far shorter than their limit.
const MAX_OUTPUT_TAKEN: u64 = 4_096;

/// A model whose requests wait for a [`Limiter`].
///
/// Before a request is sent, it takes one request, the estimated size of its input, and its `max_output_tokens`, of
/// which at most 4,096. When it has ended, this is corrected by the reported usage; without a report, by the estimate
/// and the length of the answer. A request that was refused before its start used no tokens. The limiter learns from
/// the limits in `Start` and from errors that request a wait.
///
/// Best put right around a wire, so that each retry waits for its turn; see [`crate::Retry`] for the order in general.
///
/// Cancel: dropping a waiting stream frees its place in the queue; dropping a running one settles its usage.
///
/// # Example
/// ```
/// use adjutant_llm::{Limiter, PerMinute, RateLimit, Request, Script, ScriptedModel, complete};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let limiter = Limiter::new(PerMinute { requests: Some(50), input_tokens: Some(30_000), output_tokens: Some(8_000), ..PerMinute::default() });
/// let model = RateLimit::new(ScriptedModel::new([Script::new().text("Hello.")]), limiter.clone());
/// assert_eq!(complete(&model, Request::new().user("Hi!")).await?.text(), "Hello.");
/// # Ok::<(), adjutant_llm::Error>(())
/// # }).expect("there is room");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct RateLimit {
    model: Arc<dyn Model>,
    limiter: Limiter,
}

impl RateLimit {
    /// The model, behind the limiter.
    pub fn new(model: impl Model + 'static, limiter: Limiter) -> Self {
        Self {
            model: Arc::new(model),
            limiter,
        }
    }
}

impl Model for RateLimit {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.model.info_of(model)
    }

    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let model = self.model.with_info(info)?;
        Some(Arc::new(Self {
            model,
            ..self.clone()
        }))
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let most = self.model.info().output_limit().unwrap_or(u64::MAX);
        let output = request
            .options
            .max_output_tokens
            .map_or(most, |it| it.min(most))
            .min(MAX_OUTPUT_TAKEN);
        let tokens = Tokens {
            input: input_tokens(&request),
            output,
        };
        Box::pin(Limited {
            model: Arc::clone(&self.model),
            request: Some(request),
            stream: None,
            place: Permit::new(self.limiter.clone(), tokens),
            seen: SeenUsage::default(),
        })
    }
}

struct Limited {
    model: Arc<dyn Model>,
    /// There until it is sent.
    request: Option<Request>,
    /// There while it runs.
    stream: Option<ChunkStream>,
    place: Permit,
    seen: SeenUsage,
}

/// The known part of a request's usage.
#[derive(Debug, Default)]
struct SeenUsage {
    started: bool,
    /// The usage of attempts that were taken back.
    void: Usage,
    /// The usage of the attempt at hand.
    usage: Usage,
    /// The number of bytes of the reply so far.
    said: u64,
    /// True if the server has reported the final usage.
    exact: bool,
}

impl Limited {
    fn see(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Start { limits, .. } => {
                self.seen.started = true;
                self.place.learn(limits);
            }
            Chunk::Delta { text, .. } => self.seen.said += text.len() as u64,
            Chunk::Usage { usage, .. } => self.seen.usage = *usage,
            Chunk::Retracted { usage, .. } => {
                self.seen.void += *usage;
                self.seen.usage = Usage::default();
            }
            Chunk::Done(reply) => {
                if reply.usage.total() > 0 {
                    self.seen.usage = reply.usage;
                    self.seen.exact = true;
                }
                self.settle();
            }
            Chunk::Open { .. }
            | Chunk::Close { .. }
            | Chunk::Warned { .. }
            | Chunk::Pending { .. } => {}
        }
    }

    fn handle_failure(&mut self, error: &Error) {
        if let (ErrorKind::RateLimited | ErrorKind::Overloaded, Some(wait)) =
            (error.kind(), error.retry_after())
        {
            self.place.limiter().hold(wait);
        }
        if self.seen.started {
            self.settle();
        } else {
            self.stream = None;
            self.place.settle(Tokens::default());
        }
    }

    /// The request has ended, whichever way.
    fn settle(&mut self) {
        self.stream = None;
        let (taken, seen) = (self.place.tokens(), &self.seen);
        let usage = seen.void + seen.usage;
        let free = if self.place.limiter().shared.per_minute.free_cache_reads {
            usage.cache_read
        } else {
            0
        };
        let input = if usage.input() > 0 {
            usage.input() - free
        } else {
            taken.input
        };
        let output = if seen.exact {
            usage.output
        } else {
            usage.output.max(seen.said / 4)
        };
        self.place.settle(Tokens { input, output });
    }
}

impl Stream for Limited {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.request.is_some() {
            let entered = ready!(this.place.poll_enter(cx));
            let Some(request) = this.request.take() else {
                return Poll::Ready(None);
            };
            match entered {
                Ok(()) => this.stream = Some(this.model.stream(request)),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        let item = ready!(stream.as_mut().poll_next(cx));
        match &item {
            Some(Ok(chunk)) => this.see(chunk),
            Some(Err(error)) => this.handle_failure(error),
            None => this.settle(),
        }
        Poll::Ready(item)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        if self.place.is_running() {
            self.settle();
        }
    }
}

/// The estimated size of a request: its entries, the system prompt and the tools.
fn input_tokens(request: &Request) -> u64 {
    let tool = |tool: &crate::ToolDecl| {
        Estimate.count(tool.name.as_str())
            + Estimate.count(&tool.description)
            + json_bytes(&tool.schema).div_ceil(4)
    };
    let tools: u64 = request.tools.iter().map(tool).sum();
    request
        .entries
        .tokens()
        .saturating_add(Estimate.count(&request.system))
        .saturating_add(tools)
}

fn json_bytes(value: &serde_json::Value) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing JSON into a counter cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited")
            .field("place", &self.place)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
