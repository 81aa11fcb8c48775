//! Ends a model's stream that takes too long: in total, until it begins, or between two chunks.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::{Instant, Sleep};

use crate::{Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Request};

/// The number of consecutive chunks without a wait after which the total time is checked.
const BURST: u8 = 32;

/// A model whose streams end in an error of the kind `Timeout` when they take too long.
///
/// A server that keeps the connection alive causes a `Chunk::Pending` about every 15 s, which counts as a chunk: an
/// idle time of more than 15 s does not end a stream of a live server.
///
/// Without a limit nothing is changed. All clocks begin when the stream is first polled. The idle time runs from the
/// poll that found nothing until the next chunk: the time that a reader takes between two chunks does not count. The
/// total time counts everything.
///
/// Cancel: dropping the stream ends the request. So does a limit that was passed.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use adjutant_llm::{ErrorKind, Gate, Request, Script, ScriptedModel, Timeout, TimeoutLimits, complete};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
/// # .block_on(async {
/// let stalled = ScriptedModel::new([Script::new().text("Let me see").wait_at(1, &Gate::default())]);
/// let model = Timeout::new(stalled, TimeoutLimits { idle: Some(Duration::from_secs(30)), ..TimeoutLimits::default() });
/// let error = complete(&model, Request::new().user("Well?")).await.expect_err("it stalls");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// # });
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Timeout {
    model: Arc<dyn Model>,
    limits: TimeoutLimits,
}

/// The time limits of a model's stream; `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeoutLimits {
    /// The total time of a stream.
    pub total: Option<Duration>,
    /// The time until the first chunk, whatever it is.
    pub first_chunk: Option<Duration>,
    /// The time until each chunk after the first one.
    pub idle: Option<Duration>,
}

impl Timeout {
    /// The model with these limits.
    pub fn new(model: impl Model + 'static, limits: TimeoutLimits) -> Self {
        Self {
            model: Arc::new(model),
            limits,
        }
    }
}

impl Model for Timeout {
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
        Box::pin(Timed {
            stream: Some(self.model.stream(request)),
            model: self.model.info().id.clone(),
            limits: self.limits,
            began: None,
            seen: false,
            idle_since: None,
            burst: 0,
            timer: None,
        })
    }
}

struct Timed {
    /// Nothing once the stream has ended.
    stream: Option<ChunkStream>,
    model: ModelId,
    limits: TimeoutLimits,
    began: Option<Instant>,
    /// True if the first chunk has come.
    seen: bool,
    /// Since when the model has been waited for.
    idle_since: Option<Instant>,
    burst: u8,
    timer: Option<Pin<Box<Sleep>>>,
}

/// A limit, and when it is passed.
type Deadline = (Instant, Limit);

#[derive(Debug, Clone, Copy)]
enum Limit {
    Total(Duration),
    FirstChunk(Duration),
    Idle(Duration),
}

impl Timed {
    fn began(&mut self) -> Instant {
        *self.began.get_or_insert_with(Instant::now)
    }

    /// Returns the next limit that expires if nothing arrives. A limit beyond the end of the clock is ignored.
    fn deadline(&mut self, now: Instant) -> Option<Deadline> {
        let began = self.began();
        let since = *self.idle_since.get_or_insert(now);
        let total = self
            .limits
            .total
            .and_then(|it| Some((began.checked_add(it)?, Limit::Total(it))));
        let pause = if self.seen {
            self.limits
                .idle
                .and_then(|it| Some((since.checked_add(it)?, Limit::Idle(it))))
        } else {
            self.limits
                .first_chunk
                .and_then(|it| Some((began.checked_add(it)?, Limit::FirstChunk(it))))
        };
        [total, pause]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// Nothing has come: waits for the next limit.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Error>>> {
        self.burst = 0;
        let Some((at, limit)) = self.deadline(Instant::now()) else {
            return Poll::Pending;
        };
        // Without a runtime there is no timer.
        if self.timer.is_none() && tokio::runtime::Handle::try_current().is_err() {
            return Poll::Pending;
        }
        // The timer is reset only if it would fire late, or has fired early.
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= at {
                return Poll::Ready(Some(Err(self.expire(limit))));
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }

    /// Called for each chunk. The total time is checked only occasionally, because most streams wait from time to
    /// time.
    fn is_over(&mut self) -> Option<Limit> {
        self.seen = true;
        self.idle_since = None;
        self.burst += 1;
        if self.burst < BURST {
            return None;
        }
        self.burst = 0;
        let (total, began) = (self.limits.total?, self.began());
        (began.elapsed() >= total).then_some(Limit::Total(total))
    }

    fn expire(&mut self, limit: Limit) -> Error {
        self.stream = None;
        self.timer = None;
        let text = match limit {
            Limit::Total(limit) => format!("{} did not finish within {limit:?}", self.model),
            Limit::FirstChunk(limit) => {
                format!("{} did not begin to answer within {limit:?}", self.model)
            }
            Limit::Idle(limit) => format!("nothing more came from {} within {limit:?}", self.model),
        };
        Error::new(ErrorKind::Timeout, text)
    }
}

impl Stream for Timed {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.began.is_none() && this.limits.total.or(this.limits.first_chunk).is_some() {
            this.began();
        }
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        match stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                if let Chunk::Done(_) = chunk {
                    this.stream = None;
                    return Poll::Ready(Some(Ok(chunk)));
                }
                match this.is_over() {
                    Some(limit) => Poll::Ready(Some(Err(this.expire(limit)))),
                    None => Poll::Ready(Some(Ok(chunk))),
                }
            }
            Poll::Ready(end) => {
                this.stream = None;
                Poll::Ready(end)
            }
            Poll::Pending => this.wait(cx),
        }
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed")
            .field("model", &self.model)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
