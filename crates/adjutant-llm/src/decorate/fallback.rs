//! Uses another model if one fails: in a fixed order, depending on the error.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::attempt::{Attempt, EmptyReply, PendingChunks};
use crate::{
    Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Request, Warning, WarningKind,
};

/// The largest number of characters of an error in a warning.
const MAX_CAUSE: usize = 300;

/// Several models in an order; the next one is used if one fails.
///
/// Each gets the same request, and its wire projects the history for it. By default the next one is used only while
/// nothing was emitted. With [`Fallback::retract`], emitted content is retracted by `Chunk::Retracted`. The
/// definition of emitted content, and the accounting of tokens without content, is the same as in [`crate::Retry`].
/// The attempts are numbered consecutively. The `Start` of the model that answers contains a warning of the kind
/// `FellBack` for each model that failed; if all fail, the error of the last one is returned unchanged.
///
/// By default, these kinds of errors lead to the next model: `RateLimited`, `Overloaded`, `Network`, `Timeout`,
/// `Generation`, `Protocol`, `Auth`, `Config`, and `Overflow`, the last only to a model with a larger context window.
///
/// Cancel: dropping the stream ends the current request.
///
/// # Example
/// ```
/// use adjutant_llm::{Error, ErrorKind, Fallback, Request, Script, ScriptedModel, complete};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let down = ScriptedModel::new([Script::new().fail(Error::new(ErrorKind::Overloaded, "overloaded"))]);
/// let model = Fallback::new(down).or(ScriptedModel::new([Script::new().text("Here.")]));
/// assert_eq!(complete(&model, Request::new().user("Anybody?")).await?.text(), "Here.");
/// # Ok::<(), Error>(())
/// # }).expect("the second model answers");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Fallback {
    /// The first model.
    pub first: Arc<dyn Model>,
    /// The models that are used if all previous ones failed, in order; none by default.
    pub rest: Vec<Arc<dyn Model>>,
    /// The kinds of errors that lead to the next model: by default all that another model may not meet. `Overflow` leads
    /// only to a model with a larger window.
    pub kinds: Arc<[ErrorKind]>,
    /// True if the next model is used even after content was emitted, which is then retracted; false by default.
    pub retract: bool,
}

impl Fallback {
    /// Creates a fallback with its first model.
    pub fn new(first: impl Model + 'static) -> Self {
        use ErrorKind::{
            Auth, Config, Generation, Network, Overflow, Overloaded, Protocol, RateLimited, Timeout,
        };
        let kinds = [
            RateLimited,
            Overloaded,
            Network,
            Timeout,
            Generation,
            Protocol,
            Auth,
            Config,
            Overflow,
        ];
        Self {
            first: Arc::new(first),
            rest: Vec::new(),
            kinds: kinds.into(),
            retract: false,
        }
    }

    /// Adds a model that is used if all previous ones failed.
    pub fn or(mut self, next: impl Model + 'static) -> Self {
        self.rest.push(Arc::new(next));
        self
    }

    fn models(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Returns the place of the model that is used after the model at this place failed.
    fn next(&self, failed: usize, error: &Error) -> Option<(usize, &Arc<dyn Model>)> {
        if !self.kinds.contains(&error.kind()) {
            return None;
        }
        let window = self.models().nth(failed)?.info().context_window;
        // A model with an unknown window may accept more.
        let fits = |model: &Arc<dyn Model>| {
            error.kind() != ErrorKind::Overflow
                || model.info().window().is_none_or(|tokens| tokens > window)
        };
        self.models()
            .enumerate()
            .skip(failed + 1)
            .find(|(_, model)| fits(model))
    }
}

impl Model for Fallback {
    fn info(&self) -> &ModelInfo {
        self.first.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        let known = self
            .models()
            .map(|it| it.info_of(model))
            .find(|info| info.id == *model);
        known.unwrap_or_else(|| self.first.info_of(model))
    }

    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let mut chain = self.clone();
        let model = std::iter::once(&mut chain.first)
            .chain(&mut chain.rest)
            .find(|model| model.info().id == info.id)?;
        *model = model.with_info(info)?;
        Some(Arc::new(chain))
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let attempt = Some(Attempt::new(&*self.first, &request, EmptyReply::Accept));
        let (failures, pending) = (Vec::new(), PendingChunks::new());
        Box::pin(Falling {
            models: self.clone(),
            request,
            at: 0,
            failures,
            pending,
            attempt,
        })
    }
}

struct Falling {
    models: Fallback,
    request: Request,
    at: usize,
    failures: Vec<Warning>,
    pending: PendingChunks,
    attempt: Option<Attempt>,
}

impl Falling {
    /// Handles a failed model: uses the next one, or ends the stream.
    fn handle_failure(&mut self, error: Error) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        let may = self.models.retract || !attempt.is_shown();
        let Some((at, next)) = may.then(|| self.models.next(self.at, &error)).flatten() else {
            attempt.fail(error, &mut self.pending);
            return self.warn();
        };
        let next = Arc::clone(next);
        let failed = self
            .models
            .models()
            .nth(self.at)
            .unwrap_or(&self.models.first)
            .info();
        let cause: String = error.message().chars().take(MAX_CAUSE).collect();
        let failure = Warning {
            kind: WarningKind::FellBack,
            message: format!("{} failed: {cause}", failed.id).into(),
        };
        self.at = at;
        self.request.attempt = attempt.following();
        attempt.give_up(error, &mut self.pending);
        self.warn();
        self.failures.push(failure);
        self.attempt = Some(Attempt::new(&*next, &self.request, EmptyReply::Accept));
    }

    fn warn(&mut self) {
        for chunk in self.pending.iter_mut().flatten() {
            warn(chunk, &self.failures);
        }
    }
}

/// Adds a warning for each failed model to a start.
fn warn(chunk: &mut Chunk, failures: &[Warning]) {
    if let Chunk::Start { warnings, .. } = chunk {
        warnings.extend(failures.iter().cloned());
    }
}

impl Stream for Falling {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.pending.pop_front() {
                return Poll::Ready(Some(item));
            }
            let Some(attempt) = &mut this.attempt else {
                return Poll::Ready(None);
            };
            match ready!(attempt.poll(cx)) {
                Ok(mut chunk) => {
                    warn(&mut chunk, &this.failures);
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

impl fmt::Debug for Falling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Falling")
            .field("models", &self.models)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
