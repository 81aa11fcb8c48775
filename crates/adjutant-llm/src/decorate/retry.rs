//! Tries a model again: after waits, by what the error is, and never behind the back of a reader.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::Sleep;

use super::attempt::{Attempt, EmptyReply, PendingChunks};
use crate::{
    Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Request, SystemWorld, World,
};

/// The share of a wait that is left to chance.
const JITTER: f64 = 0.25;

/// A model that retries failed requests.
///
/// By default an attempt is followed by another one only while nothing was emitted: its `Start` and `Usage` are
/// withheld until a block starts. With [`Retry::retract`], a partly emitted attempt is retracted by
/// `Chunk::Retracted`, with its usage, and the next one follows. An attempt without content leaves no trace, unless
/// it used tokens: then its `Start` and a `Retracted` are emitted, so that every token is accounted for. Each attempt
/// increments `Request::attempt`, so that no two of them create the same call ids.
///
/// Decorators are nested. Inner ones apply to each attempt; in general:
/// `Recorder(Timeout::total(Fallback(Retry(RateLimit(Timeout(wire))), Retry(…))))`. So each attempt waits for the
/// rate limit before its timeout starts, a model is retried before the next one is used, and the total time is
/// limited. A recorder outside records the final stream; a recorder inside records each attempt, and the decorators
/// around it run again in a replay.
///
/// Cancel: dropping the stream ends the attempt at hand, or the wait for the next one.
///
/// # Example
/// ```
/// use adjutant_llm::{Error, ErrorKind, Request, Retry, Script, ScriptedModel, complete};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
/// # .block_on(async {
/// let overloaded = Error::new(ErrorKind::Overloaded, "the model is overloaded");
/// let model = Retry::new(ScriptedModel::new([Script::new().fail(overloaded), Script::new().text("Hello.")]));
/// assert_eq!(complete(&model, Request::new().user("Hi!")).await?.text(), "Hello.");
/// # Ok::<(), Error>(())
/// # }).expect("the second attempt succeeds");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Retry {
    /// The inner model.
    pub model: Arc<dyn Model>,
    /// The errors that are tried again, how often, and after which waits; the default policy by default.
    pub policy: RetryPolicy,
    /// The source of chance; the system's by default.
    pub world: Arc<dyn World>,
    /// True if it retries even after content was emitted, which is then retracted; false by default.
    pub retract: bool,
}

/// The rules of a retry: the errors that are tried again, the number of retries, and the waits before them.
///
/// The wait before retry n, counted from 0, is `first_wait · 2ⁿ`, at most `longest_wait`, minus up to a quarter of it
/// at random. A wait that the provider requested is observed exactly instead.
///
/// An error of the kind `Generation` is tried again once. So is an empty reply that stops normally; a second one in a row
/// is accepted.
///
/// Source: the retry rules of Anthropic's and OpenAI's clients, 2026-08.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The largest number of retries of a failed request; 2 by default.
    pub max_retries: u32,
    /// The wait before the first retry; 0.5 s.
    pub first_wait: Duration,
    /// The longest wait without a request of the provider; 8 s.
    pub longest_wait: Duration,
    /// The longest wait that a provider may request; 60 s. An error that requests more is not retried.
    pub longest_asked_wait: Duration,
    /// The kinds of errors that are retried, unless the provider decides (`Error::should_retry`): `RateLimited`,
    /// `Overloaded`, `Network`, `Timeout`, `Generation` (once), and `Protocol`, since an answer that violates the
    /// protocol is usually one that was cut off.
    pub kinds: Arc<[ErrorKind]>,
}

impl Retry {
    /// The model, tried again by the default policy, without retraction.
    pub fn new(model: impl Model + 'static) -> Self {
        Self {
            model: Arc::new(model),
            policy: RetryPolicy::default(),
            world: Arc::new(SystemWorld),
            retract: false,
        }
    }
}

impl Model for Retry {
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
        let mut retrying = Retrying {
            retry: self.clone(),
            request,
            retries: 0,
            has_regenerated: false,
            pending: PendingChunks::new(),
            attempt: None,
            wait: None,
        };
        retrying.attempt = Some(retrying.attempt());
        Box::pin(retrying)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        use ErrorKind::{Generation, Network, Overloaded, Protocol, RateLimited, Timeout};
        Self {
            max_retries: 2,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(8),
            longest_asked_wait: Duration::from_secs(60),
            kinds: [
                RateLimited,
                Overloaded,
                Network,
                Timeout,
                Generation,
                Protocol,
            ]
            .into(),
        }
    }
}

impl RetryPolicy {
    /// Returns the wait before the retry of this number, counted from 0; `None` if the error is not to be tried again.
    fn wait(&self, error: &Error, retries: u32, world: &dyn World) -> Option<Duration> {
        let worth = error
            .details()
            .should_retry
            .unwrap_or_else(|| self.kinds.contains(&error.kind()));
        if retries >= self.max_retries || !worth {
            return None;
        }
        match error.retry_after() {
            Some(wait) if wait > self.longest_asked_wait => None,
            Some(wait) if !wait.is_zero() => Some(wait),
            Some(_) | None => {
                let doubled = self
                    .first_wait
                    .saturating_mul(2_u32.saturating_pow(retries))
                    .min(self.longest_wait);
                let jittered = doubled.as_secs_f64() * (1.0 - JITTER * world.unit());
                Some(Duration::try_from_secs_f64(jittered).unwrap_or(doubled))
            }
        }
    }
}

impl RetryPolicy {
    /// Adds to the message that the provider requested a longer wait than the maximum, if it did.
    #[cold]
    fn explain_wait(&self, error: Error) -> Error {
        match error.retry_after() {
            Some(wait) if wait > self.longest_asked_wait => {
                let longest = self.longest_asked_wait;
                error.context(&format!(
                    "the provider asks to wait {wait:?}, and a retry waits {longest:?} at most"
                ))
            }
            _ => error,
        }
    }
}

struct Retrying {
    retry: Retry,
    request: Request,
    retries: u32,
    /// True if a failed generation, or an empty reply, was requested again.
    has_regenerated: bool,
    pending: PendingChunks,
    /// Present while a request is running.
    attempt: Option<Attempt>,
    /// There while the next attempt is waited for.
    wait: Option<Pin<Box<Sleep>>>,
}

impl Retrying {
    /// Starts the next attempt.
    fn attempt(&self) -> Attempt {
        let policy = &self.retry.policy;
        let may = !self.has_regenerated
            && self.retries < policy.max_retries
            && policy.kinds.contains(&ErrorKind::Generation);
        let empty = match (may, self.retry.retract) {
            (false, _) => EmptyReply::Accept,
            (true, false) => EmptyReply::RejectUnseen,
            (true, true) => EmptyReply::Reject,
        };
        Attempt::new(&*self.retry.model, &self.request, empty)
    }

    /// The attempt failed: another one follows, or the stream ends.
    fn handle_failure(&mut self, error: Error) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        let is_generation = error.kind() == ErrorKind::Generation;
        let may =
            (self.retry.retract || !attempt.is_shown()) && !(is_generation && self.has_regenerated);
        let wait = may
            .then(|| {
                self.retry
                    .policy
                    .wait(&error, self.retries, &*self.retry.world)
            })
            .flatten();
        // Without a runtime there is no timer.
        let Some(wait) = wait.filter(|_| tokio::runtime::Handle::try_current().is_ok()) else {
            let error = self.retry.policy.explain_wait(error);
            return attempt.fail(error, &mut self.pending);
        };
        self.retries += 1;
        self.has_regenerated |= is_generation;
        self.request.attempt = attempt.following();
        attempt.give_up(error, &mut self.pending);
        self.wait = Some(Box::pin(tokio::time::sleep(wait)));
    }
}

impl Stream for Retrying {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.pending.pop_front() {
                return Poll::Ready(Some(item));
            }
            if let Some(wait) = &mut this.wait {
                ready!(wait.as_mut().poll(cx));
                this.wait = None;
                this.attempt = Some(this.attempt());
            }
            let Some(attempt) = &mut this.attempt else {
                return Poll::Ready(None);
            };
            match ready!(attempt.poll(cx)) {
                Ok(chunk) => {
                    if let Chunk::Done(_) = chunk {
                        this.attempt = None;
                    }
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Err(error) => this.handle_failure(error),
            }
        }
    }
}

impl fmt::Debug for Retrying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying")
            .field("retry", &self.retry)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
