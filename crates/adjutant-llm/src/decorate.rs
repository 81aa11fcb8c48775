//! Models over models: retry, fallback, rate limit, timeout, recording and replay. Each has its own file.

mod attempt;
mod fallback;
mod limiter;
mod rate_limit;
mod replay;
mod retry;
mod timeout;

pub use fallback::Fallback;
pub use limiter::{Limiter, PerMinute};
pub use rate_limit::RateLimit;
pub use replay::{Cassette, Ending, Exchange, Fingerprint, Recorder, Replay};
pub use retry::{Retry, RetryPolicy};
pub use timeout::{Timeout, TimeoutLimits};
