//! Limits per minute that several models and agents share, with one fair queue before them.

use std::{
    collections::VecDeque,
    fmt, mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use crate::{Error, ErrorKind, RateLimits};

/// The longest time that all requests are held because a server demanded it; then one request probes the server.
const MAX_HOLD: Duration = Duration::from_secs(60);
/// The largest debt of a bucket, in minutes' worth, whatever usage a server reports.
const MAX_DEBT: f64 = 10.0;
/// The shortest wait: it prevents a tight loop for a bucket that lacks a fraction.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// The amounts that can be used in a minute; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerMinute {
    /// Requests; 0 counts as 1.
    pub requests: Option<u64>,
    /// Input tokens; 0 counts as 1.
    pub input_tokens: Option<u64>,
    /// Output tokens; 0 counts as 1.
    pub output_tokens: Option<u64>,
    /// True if input that a cache served does not count; false by default.
    pub free_cache_reads: bool,
}

/// Limits that are shared: each clone is the same limiter.
///
/// Each limit is a bucket that is full at the beginning, holds a minute's worth and refills continuously, like the
/// providers' own. A request takes its estimated usage before it is sent, and returns or pays the difference when it
/// has ended; a bucket in debt refills first, for ten minutes' worth at most. A request that exceeds a whole bucket
/// passes when the bucket is full. Requests pass strictly in order of arrival, so a large one is never overtaken.
///
/// The server's report takes precedence: a bucket shrinks to the reported rest. If nothing is left, or an error
/// requests a wait, all requests are held until then, for a minute at most.
///
/// Use one limiter per account and class of models, as the provider counts them.
///
/// Source: Anthropic's rate limits (token buckets that refill continuously), 2026-06.
#[derive(Clone)]
pub struct Limiter {
    pub(super) shared: Arc<LimiterShared>,
}

pub(super) struct LimiterShared {
    pub(super) per_minute: PerMinute,
    state: Mutex<State>,
}

struct State {
    /// The time when the buckets were refilled last; nothing before the first use.
    at: Option<Instant>,
    held_until: Option<Instant>,
    requests: Option<Bucket>,
    input: Option<Bucket>,
    output: Option<Bucket>,
    /// The tasks that wait, by growing number; only the first one keeps a timer.
    queue: VecDeque<(u64, Waker)>,
    next: u64,
}

struct Bucket {
    whole: f64,
    level: f64,
}

/// Tokens that a request takes or has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// The place of a request: in the queue, then among the running ones. Leaving it wakes the first request in the
/// queue.
pub(crate) struct Permit {
    limiter: Limiter,
    tokens: Tokens,
    /// The amounts that were actually taken from the buckets for input and output: debts are limited.
    taken: [f64; 2],
    /// True if the server's own count replaced it, so that nothing is returned.
    told: bool,
    stage: PermitState,
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermitState {
    New,
    Waiting(u64),
    Running,
    Left,
}

enum Turn {
    Now,
    /// Another request is first.
    Later,
    At(Instant),
}

impl Limiter {
    /// A limiter whose buckets are full.
    pub fn new(per_minute: PerMinute) -> Self {
        let bucket = |limit: Option<u64>| {
            let whole = limit?.max(1) as f64;
            Some(Bucket {
                whole,
                level: whole,
            })
        };
        let state = State {
            at: None,
            held_until: None,
            requests: bucket(per_minute.requests),
            input: bucket(per_minute.input_tokens),
            output: bucket(per_minute.output_tokens),
            queue: VecDeque::new(),
            next: 0,
        };
        Self {
            shared: Arc::new(LimiterShared {
                per_minute,
                state: Mutex::new(state),
            }),
        }
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.state().queue.len()
    }

    /// Reads the limits that a server reported; returns whether fewer tokens are left than were counted here.
    fn learn(&self, said: &RateLimits) -> bool {
        if *said == RateLimits::default() {
            return false;
        }
        let now = Instant::now();
        let mut fewer = false;
        self.change(now, |state| {
            shrink(&mut state.requests, said.requests_left);
            // The rest is given for input and output together, so each of the two has that at most.
            fewer |= shrink(&mut state.input, said.tokens_left);
            fewer |= shrink(&mut state.output, said.tokens_left);
            if said.requests_left == Some(0) || said.tokens_left == Some(0) {
                state.hold(now, said.reset_after.unwrap_or_default());
            }
        });
        fewer
    }

    /// Holds all requests for this long.
    pub(crate) fn hold(&self, wait: Duration) {
        let now = Instant::now();
        self.change(now, |state| state.hold(now, wait));
    }

    /// Changes the buckets and lets the first request in the queue check them again.
    fn change(&self, now: Instant, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        state.refill(now);
        change(&mut state);
        let first = state.queue.front().map(|(_, waker)| waker.clone());
        drop(state);
        if let Some(waker) = first {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, now: Instant, wait: Duration) {
        let until = now + wait.min(MAX_HOLD);
        self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
    }

    fn refill(&mut self, now: Instant) {
        let minutes = now
            .saturating_duration_since(self.at.unwrap_or(now))
            .as_secs_f64()
            / 60.0;
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        for bucket in [&mut self.requests, &mut self.input, &mut self.output]
            .into_iter()
            .flatten()
        {
            bucket.add(bucket.whole * minutes);
        }
    }

    /// Takes the required amount, or returns the time when it may be available.
    fn enter(&mut self, tokens: Tokens, taken: &mut [f64; 2]) -> Turn {
        let now = Instant::now();
        if let Some(until) = self.held_until.filter(|until| *until > now) {
            return Turn::At(until);
        }
        self.held_until = None;
        self.refill(now);
        let needs = [1.0, tokens.input as f64, tokens.output as f64];
        let mut buckets = [&mut self.requests, &mut self.input, &mut self.output];
        let lacks = |(bucket, need): (&&mut Option<Bucket>, &f64)| {
            bucket.as_ref().map_or(0.0, |it| it.lacks(*need))
        };
        let minutes = buckets.iter().zip(&needs).map(lacks).fold(0.0, f64::max);
        if minutes > 0.0 {
            let wait = Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(MAX_HOLD);
            return Turn::At(now + wait.max(MIN_WAIT));
        }
        let mut take = |at: usize| buckets[at].as_mut().map_or(0.0, |it| -it.add(-needs[at]));
        take(0);
        *taken = [take(1), take(2)];
        Turn::Now
    }
}

impl Bucket {
    /// Adds an amount, and returns the real change of the level.
    fn add(&mut self, amount: f64) -> f64 {
        let before = self.level;
        self.level = (before + amount).clamp(-MAX_DEBT * self.whole, self.whole);
        self.level - before
    }

    /// For how many minutes the bucket must refill.
    fn lacks(&self, need: f64) -> f64 {
        (need.min(self.whole) - self.level).max(0.0) / self.whole
    }
}

/// Lowers a bucket to the reported rest; true if it had more.
fn shrink(bucket: &mut Option<Bucket>, left: Option<u64>) -> bool {
    let (Some(bucket), Some(left)) = (bucket, left) else {
        return false;
    };
    let more = bucket.level > left as f64;
    bucket.level = bucket.level.min(left as f64);
    more
}

impl Permit {
    /// A place for a request that will use about this much. It is in the queue from the first poll on.
    pub(crate) fn new(limiter: Limiter, tokens: Tokens) -> Self {
        Self {
            limiter,
            tokens,
            taken: [0.0; 2],
            told: false,
            stage: PermitState::New,
            timer: None,
        }
    }

    /// Reads the limits that a server reported in answer to this request.
    pub(crate) fn learn(&mut self, said: &RateLimits) {
        self.told |= self.limiter.learn(said);
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Returns the tokens that the request was estimated to use.
    pub(crate) fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Waits until the request may be sent.
    ///
    /// # Errors
    /// `Config` if it would have to wait without a runtime.
    pub(crate) fn poll_enter(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            let at = match self.turn(cx) {
                Turn::Now => return Poll::Ready(Ok(())),
                Turn::Later => return Poll::Pending,
                Turn::At(at) => at,
            };
            if self.timer.is_none() && tokio::runtime::Handle::try_current().is_err() {
                self.leave();
                let message = "waiting for a rate limit needs a tokio runtime";
                return Poll::Ready(Err(Error::new(ErrorKind::Config, message)));
            }
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            timer.as_mut().reset(at);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn turn(&mut self, cx: &Context<'_>) -> Turn {
        let mut state = self.limiter.state();
        let number = match self.stage {
            PermitState::New => {
                let number = state.next;
                state.next += 1;
                state.queue.push_back((number, cx.waker().clone()));
                self.stage = PermitState::Waiting(number);
                number
            }
            PermitState::Waiting(number) => number,
            PermitState::Running | PermitState::Left => return Turn::Now,
        };
        let turn = match state.queue.front() {
            Some((first, _)) if *first == number => state.enter(self.tokens, &mut self.taken),
            _ => Turn::Later,
        };
        if let Turn::Now = turn {
            state.queue.pop_front();
            self.stage = PermitState::Running;
            let next = state.queue.front().map(|(_, waker)| waker.clone());
            drop(state);
            if let Some(waker) = next {
                waker.wake();
            }
        } else if let Ok(at) = state
            .queue
            .binary_search_by_key(&number, |(number, _)| *number)
            && let Some((_, waker)) = state.queue.get_mut(at)
        {
            waker.clone_from(cx.waker());
        }
        turn
    }

    /// Returns or pays the difference between the taken and the used amount, once.
    pub(crate) fn settle(&mut self, used: Tokens) {
        if mem::replace(&mut self.stage, PermitState::Left) != PermitState::Running {
            return;
        }
        let [input, output] = self.taken;
        let most = if self.told { 0.0 } else { f64::INFINITY };
        self.limiter.change(Instant::now(), |state| {
            if let Some(bucket) = &mut state.input {
                bucket.add((input - used.input as f64).min(most));
            }
            if let Some(bucket) = &mut state.output {
                bucket.add((output - used.output as f64).min(most));
            }
        });
    }

    /// Leaves the queue.
    fn leave(&mut self) {
        if let PermitState::Waiting(number) = self.stage {
            self.stage = PermitState::Left;
            self.limiter.change(Instant::now(), |state| {
                state.queue.retain(|(it, _)| *it != number)
            });
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stage == PermitState::Running
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("per_minute", &self.shared.per_minute)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("tokens", &self.tokens)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}
