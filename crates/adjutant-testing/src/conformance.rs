//! The hazards that a model must bear: they are listed, played through the loopback provider, and put in a table of the
//! models that bear them.
//!
//! The suite knows nothing of the model but its [`Model`] trait: a [`Subject`] makes one for a server. Every hazard
//! checks the grammar of the chunks, the reply, and the request that went out, which the server holds to the vendor's
//! rules, signatures included ([`Setup::strict_signatures`](crate::Setup::strict_signatures)).
//!
//! ```no_run
//! use std::sync::Arc;
//! use adjutant_llm::{Model, ScriptedModel};
//! use adjutant_testing::{Loopback, conformance::{self, Limits, Matrix}};
//!
//! # async fn example() {
//! let subject = conformance::subject_fn("mine", |_server: &Loopback, _limits: Limits| -> Arc<dyn Model> {
//!     // A model that speaks to `server.openai_base_url()` and gives up after these limits.
//!     Arc::new(ScriptedModel::new([]))
//! });
//! let matrix = Matrix::new([conformance::run(&subject).await]);
//! assert!(matrix.missing().is_empty() && matrix.failures().is_empty(), "{matrix}");
//! # }
//! ```

mod asking;
mod calls;
mod faults;
mod replay;
mod report;
mod speech;
mod stage;
mod status;
mod vendors;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use adjutant_llm::Model;

use crate::{Loopback, oracle::Oracle};

pub use report::{Matrix, Report, Row};

/// The longest time that a hazard may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Something whose models are held to the list: an adapter, or a stack of decorators over one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a subject of the conformance suite",
    note = "implement `name` and `model`, or use `conformance::subject_fn`"
)]
pub trait Subject: Send + Sync {
    /// The name that reports show.
    fn name(&self) -> &str;

    /// A model that speaks to this server, in whatever wire it likes, and gives up after these limits.
    ///
    /// Its id should be one that the wire treats as current, for example `google/gemini-3-pro`: some rules depend on
    /// it.
    fn model(&self, server: &Loopback, limits: Limits) -> Arc<dyn Model>;

    /// The server side of the models' wire, if it is not one of the four.
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        None
    }
}

/// The times that a model waits for its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The time until the answer begins.
    pub answer: Duration,
    /// The time until the next byte of an answer that has begun.
    pub silence: Duration,
}

/// Something that may go wrong, or be got wrong.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Hazard {
    /// The name, for example `split_utf8`.
    pub name: &'static str,
    /// A description of what happens and what must come of it.
    pub what: &'static str,
    play: fn(&dyn Subject) -> Playing<'_>,
}

/// The outcome of a hazard: the error contains the expected and the actual result.
pub(crate) type Verdict = Result<(), String>;

type Playing<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Makes one row of the list for each function of these names.
macro_rules! hazards {
    ($($module:ident :: $name:ident : $what:literal,)*) => {
        /// Everything that a model is held to, in the order in which it is played.
        pub const HAZARDS: &[Hazard] = &[$(
            Hazard { name: stringify!($name), what: $what, play: |subject| Box::pin($module::$name(subject)) },
        )*];
    };
}

hazards! {
    speech::text: "a plain reply arrives whole, and what was asked arrives at the provider",
    speech::empty: "a reply that says nothing is a reply",
    speech::split_utf8: "letters that are cut between reads are put together",
    speech::large_delta: "one delta of 300,000 letters arrives whole",
    speech::unpaired_surrogate: "half a surrogate pair in JSON does no harm",
    speech::thinking: "thinking arrives as thinking, before the text",
    speech::length: "a reply that was cut off says so",
    speech::refusal: "a refusal is told apart from an answer",
    speech::filtered: "a filtered reply is told apart from an answer",
    speech::stop_sequence: "a reply that met a stop sequence has ended well",
    speech::unknown_finish_reason: "calls and text of a reply with an unknown reason are taken with a warning; none are an error",
    speech::usage: "every class of tokens is counted once",
    speech::duplicate_usage: "usage that is told twice is counted once",
    speech::unknown_event: "an event of a kind to come is passed over",
    speech::heartbeat: "comments and empty lines between events are passed over",
    speech::concurrent: "two streams of one model do not mix",
    calls::parallel_calls: "two calls have two ids, and their results go back in their order",
    calls::identical_calls: "two equal calls are two calls",
    calls::text_and_call: "text before a call stays before it, there and back",
    calls::exact_arguments: "large integers and the order of keys survive",
    calls::empty_arguments: "a call without arguments can be answered",
    calls::invalid_arguments: "arguments that are no JSON arrive as they are, or as an error, and can be answered",
    calls::truncated_call: "a call that was cut off never runs, and can be answered",
    calls::error_result: "a failed call goes back as one",
    replay::thinking_replayed: "signed thinking goes back unchanged with the results, and stays",
    replay::redacted_replayed: "withheld thinking goes back unchanged",
    replay::phase_replayed: "what was said on the way goes back as such",
    replay::replay_other_provider: "a history of another provider is taken, without its signatures",
    replay::replay_other_model: "a history of another model is taken, without its signatures",
    replay::orphan_call: "the calls of an interrupted reply do not dangle",
    replay::interrupted_turn: "an interrupted reply goes back without open thinking",
    replay::consecutive_messages: "several messages in a row are taken",
    replay::empty_texts: "empty texts do no harm",
    replay::summary: "a summary in the place of entries is shown",
    replay::long_history: "sixty turns with calls are taken",
    replay::image: "a picture arrives, or its place is marked",
    replay::audio: "a recording arrives, or its place is marked",
    replay::image_result: "a picture in a result arrives, or its place is marked",
    asking::system_and_tools: "the system prompt and the tools arrive",
    asking::tool_choice_none: "tools are shown although none may be called",
    asking::forced_tool: "a tool that must be called is forced, or the option is dropped with a warning",
    asking::sequential_calls: "one call at a time is asked for, or the option is dropped with a warning",
    asking::structured: "an answer by a schema is asked for and given",
    asking::effort: "how much to think is asked for, or the option is dropped with a warning",
    asking::limits_asked: "the output limit and the temperature arrive, or are dropped with a warning",
    asking::sampling_asked: "the part that is chosen from and the seed arrive, or are dropped with a warning",
    status::rate_limited: "too many requests: rate limited, with the wait",
    status::overloaded: "the provider is overloaded: worth trying again",
    status::server_error: "the provider failed: worth trying again",
    status::unauthorized: "a wrong key is told, and not tried again",
    status::not_found: "an unknown model is told, and not tried again",
    status::overflow: "an input that is too long is told as such",
    status::html: "a web page with status 200 is no reply",
    faults::error_after_200: "an error within a stream is the end of it, after what was said",
    faults::error_at_once: "an error as the first event is the end of it",
    faults::failed_reply: "a reply that fails on the provider's side is an error",
    faults::reset_before_first_byte: "a connection that closes without an answer is a network error",
    faults::reset_midway: "a connection that breaks is an error, after what was said",
    faults::stall: "an answer that never begins times out",
    faults::stall_midway: "an answer that falls silent times out, after what was said",
    faults::missing_finish: "a stream that ends without its finish is an error",
    faults::garbage: "an event that is no JSON is an error, or nothing is lost",
    faults::endless_frame: "a line without an end is an error",
    faults::invalid_utf8: "a byte that is no UTF-8 is an error, or nothing else is lost",
    faults::slow_close: "a reply that is finished does not wait for the connection",
    faults::abort: "a stream that is dropped ends the request",
    vendors::index_drift: "pieces of a call under another index than its start belong to it",
    vendors::text_index: "an index that is a text is read",
    vendors::same_index: "parallel calls under one index are two calls",
    vendors::full_arguments_again: "arguments that come whole once more are taken once",
    vendors::split_surrogate: "halves of a character in two deltas of text, thinking or arguments are joined",
    vendors::keep_alive: "comments keep a slow answer alive",
    vendors::whole_body: "one JSON body where a stream was asked for is a reply",
    vendors::content_type: "an event stream under another media type is read",
    vendors::late_usage: "usage that arrives after the end of the reply is taken",
    vendors::generation_error: "a call that the provider could not read is asked for once more",
    vendors::overflow_texts: "the texts in which vendors report an overflow are recognized",
    vendors::media_error: "an error because of an image says so",
    vendors::tuple_schema: "a tool with a tuple of an older draft is declared",
    vendors::property_keys: "property keys that vendors refuse go there and back under others",
    vendors::tool_names: "tool names that vendors refuse go there and back under others",
    vendors::vendor_ids: "a call goes back to its vendor under the vendor's id",
}

/// Plays every hazard to a subject, one after the other.
///
/// Takes a few seconds at most; a hazard that does not end in 20 seconds fails. Panics of the model fail the hazard.
pub async fn run(subject: &dyn Subject) -> Report {
    let mut rows = Vec::new();
    for hazard in HAZARDS {
        rows.push(Row {
            hazard: hazard.name,
            result: hazard.play(subject).await,
        });
    }
    Report {
        subject: subject.name().to_owned(),
        rows,
    }
}

impl Hazard {
    /// The hazard of this name.
    pub fn find(name: &str) -> Option<&'static Hazard> {
        HAZARDS.iter().find(|hazard| hazard.name == name)
    }

    /// Plays this hazard alone.
    ///
    /// # Errors
    /// The expected and the actual result.
    pub async fn play(&self, subject: &dyn Subject) -> Result<(), String> {
        let mut playing = (self.play)(subject);
        let guarded = std::future::poll_fn(|cx| {
            // The future is dropped with everything that a panic leaves behind.
            let polled = catch_unwind(AssertUnwindSafe(|| playing.as_mut().poll(cx)));
            polled.unwrap_or_else(|panic| {
                Poll::Ready(Err(format!(
                    "the model panicked: {}",
                    adjutant_agent::panic_text(&*panic)
                )))
            })
        });
        let ended = tokio::time::timeout(PATIENCE, guarded).await;
        ended.unwrap_or_else(|_| Err(format!("the model did not end within {PATIENCE:?}")))
    }
}

impl Limits {
    /// Limits that no hazard but a stall reaches.
    fn patient() -> Self {
        Self {
            answer: PATIENCE,
            silence: PATIENCE,
        }
    }

    /// Limits for stalls: the only real waiting of the suite.
    fn short() -> Self {
        let short = Duration::from_millis(200);
        Self {
            answer: short,
            silence: short,
        }
    }
}

/// A subject made of a function.
pub fn subject_fn<F>(name: impl Into<String>, model: F) -> FnSubject<F>
where
    F: Fn(&Loopback, Limits) -> Arc<dyn Model> + Send + Sync,
{
    FnSubject {
        name: name.into(),
        model,
        oracle: None,
    }
}

/// A subject made of a function; see [`subject_fn`].
pub struct FnSubject<F> {
    name: String,
    model: F,
    oracle: Option<Arc<dyn Oracle>>,
}

impl<F> FnSubject<F> {
    /// Has the server speak a wire of the test's own.
    #[must_use]
    pub fn oracle(mut self, oracle: impl Oracle + 'static) -> Self {
        self.oracle = Some(Arc::new(oracle));
        self
    }
}

impl<F: Fn(&Loopback, Limits) -> Arc<dyn Model> + Send + Sync> Subject for FnSubject<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self, server: &Loopback, limits: Limits) -> Arc<dyn Model> {
        (self.model)(server, limits)
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.oracle.clone()
    }
}

impl<F> fmt::Debug for FnSubject<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnSubject")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hazard")
            .field("name", &self.name)
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}
