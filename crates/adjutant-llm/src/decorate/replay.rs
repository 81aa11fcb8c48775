//! Records the requests to a model and its answers, and plays them back without the model.

mod cassette;
mod difference;
mod fingerprint;
mod recorder;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_core::Stream;

pub use cassette::{Cassette, Ending, Exchange};
pub use fingerprint::Fingerprint;
pub use recorder::Recorder;

use crate::{Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Request};

/// A model that answers from a recording, chunk for chunk and without waiting.
///
/// A request is answered by the exchange that was recorded for the same request; if the same one was recorded several
/// times, in their order. A request that was not recorded, or not as often, fails with an error of the kind
/// `Invalid`. Its message shows the difference from the nearest exchange that has not been played.
///
/// Cancel: dropping a stream has no effect; its exchange is played.
///
/// # Example
/// ```
/// use adjutant_llm::{Cassette, Ending, Error, Exchange, ErrorKind, ModelInfo, Replay, Request, complete};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let refused = Ending::Failed { error: Error::new(ErrorKind::Auth, "no such key") };
/// let exchange = Exchange::new(Request::new().user("Hi!"), Vec::new(), refused);
/// let model = Replay::new(Cassette::new(ModelInfo::new("vendor/model"), vec![exchange]));
/// let error = complete(&model, Request::new().user("Hi!")).await.expect_err("that was recorded");
/// assert_eq!(error.kind(), ErrorKind::Auth);
/// let error = complete(&model, Request::new().user("Ho!")).await.expect_err("that was not");
/// assert_eq!(error.kind(), ErrorKind::Invalid);
/// # });
/// ```
pub struct Replay {
    cassette: Arc<Cassette>,
    /// The exchanges that are still to be played, in their order.
    left: Mutex<HashMap<Fingerprint, VecDeque<usize>>>,
    /// The info of a model that the recording does not know: everything but a price.
    unknown: ModelInfo,
}

impl Replay {
    /// A model that plays this recording.
    pub fn new(cassette: Cassette) -> Self {
        let mut left = HashMap::<Fingerprint, VecDeque<usize>>::new();
        for (at, exchange) in cassette.exchanges.iter().enumerate() {
            left.entry(exchange.fingerprint).or_default().push_back(at);
        }
        let unknown = ModelInfo {
            price: None,
            ..cassette.info.clone()
        };
        Self {
            cassette: Arc::new(cassette),
            left: Mutex::new(left),
            unknown,
        }
    }

    /// Returns the number of exchanges that are still to be played.
    pub fn remaining(&self) -> usize {
        self.with_left(|left| left.values().map(VecDeque::len).sum())
    }

    fn with_left<T>(
        &self,
        look: impl FnOnce(&mut HashMap<Fingerprint, VecDeque<usize>>) -> T,
    ) -> T {
        look(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the error that explains why no exchange matches the request.
    fn missing(&self, request: &Request, known: bool) -> Error {
        let exchanges = &self.cassette.exchanges;
        let mut message = if known {
            let times = exchanges
                .iter()
                .filter(|it| it.fingerprint == Fingerprint::from_request(request))
                .count();
            format!("the request was recorded {times} times and is asked once more")
        } else {
            "the request was not recorded".to_owned()
        };
        let mut candidates: Vec<usize> =
            self.with_left(|left| left.values().flatten().copied().collect());
        candidates.sort_unstable();
        if candidates.is_empty() && !known {
            candidates = (0..exchanges.len()).collect();
        }
        let asked = fingerprint::value(request);
        let compared = candidates.into_iter().map(|at| {
            let recorded = fingerprint::value(&exchanges[at].request);
            (at, difference::between(&recorded, &asked))
        });
        match compared.min_by_key(|(_, difference)| difference.count()) {
            Some((at, difference)) => message.push_str(&format!(
                "; the nearest is exchange {}: {difference}",
                at + 1
            )),
            None => message.push_str("; nothing is left to play"),
        }
        Error::new(ErrorKind::Invalid, message)
    }
}

impl Model for Replay {
    fn info(&self) -> &ModelInfo {
        &self.cassette.info
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.cassette.info_of(model).unwrap_or(&self.unknown)
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let fingerprint = Fingerprint::from_request(&request);
        let (exchange, known) = self.with_left(|left| {
            left.get_mut(&fingerprint)
                .map_or((None, false), |queue| (queue.pop_front(), true))
        });
        let state = match exchange {
            Some(exchange) => State::Playing { exchange, at: 0 },
            None => State::Failing(self.missing(&request, known)),
        };
        Box::pin(Playing {
            cassette: Arc::clone(&self.cassette),
            state,
        })
    }
}

struct Playing {
    cassette: Arc<Cassette>,
    state: State,
}

enum State {
    Playing { exchange: usize, at: usize },
    Failing(Error),
    Ended,
}

impl Stream for Playing {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let State::Playing { exchange, at } = &mut this.state
            && let Some(exchange) = this.cassette.exchanges.get(*exchange)
        {
            if let Some(chunk) = exchange.chunks.get(*at) {
                *at += 1;
                return Poll::Ready(Some(Ok(chunk.clone())));
            }
            this.state = match &exchange.ending {
                Ending::Done | Ending::Cut => State::Ended,
                Ending::Failed { error } => State::Failing(error.clone()),
                Ending::Dropped => {
                    let message = "the recording ends here, because the stream was dropped";
                    // Fails with a timeout, so that decorators around a recorder behave as they did.
                    State::Failing(Error::new(ErrorKind::Timeout, message))
                }
            };
        }
        match std::mem::replace(&mut this.state, State::Ended) {
            State::Failing(error) => Poll::Ready(Some(Err(error))),
            State::Playing { .. } | State::Ended => Poll::Ready(None),
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("cassette", &self.cassette)
            .field("left", &self.remaining())
            .finish()
    }
}
