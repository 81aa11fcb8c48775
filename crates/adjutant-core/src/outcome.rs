//! The end of a run: exactly one, and last.

use std::{fmt, sync::Arc};

use adjutant_llm::Reply;
use serde::{Deserialize, Serialize};

use crate::{activity::ActivityId, pause, pause::Pause};

/// The way in which a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// There was nothing more to do.
    Finished {
        /// The last reply.
        reply: Arc<Reply>,
        /// The reason why there was nothing more to do.
        why: Completion,
    },
    /// A limit was reached; every call was closed first.
    Limit {
        /// The limit.
        limit: Limit,
    },
    /// A caller requested to cancel the run.
    Cancelled {
        /// The source of the request.
        by: CancelBy,
    },
    /// An error that the model cannot fix.
    Failed {
        /// The failure.
        failure: Failure,
    },
    /// The run waits for the outside and continues with its answers; never recorded as an end.
    Paused {
        /// The pauses that it waits for.
        #[serde(serialize_with = "pause::tell_all")]
        pauses: Vec<Arc<Pause>>,
    },
}

/// The reason why a run had nothing more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Completion {
    /// The model answered without calling a tool.
    Answer,
    /// The results of the calls requested it.
    Terminated,
    /// The application requested it between two turns.
    Stopped,
    /// The answer was cut off by the output limit.
    Length,
}

/// A limit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The number of requests that a run may make.
    Turns,
    /// The number of tokens that may be used.
    Tokens,
    /// The amount of money that may be spent.
    Money,
    /// The time that may pass.
    Time,
    /// The number of requests that may be made, children's included.
    Requests,
    /// The number of calls that may run.
    ToolCalls,
    /// The number of agents that may stand above one another.
    Depth,
    /// The number of agents that may run at a time.
    Agents,
    /// The run did not get any further.
    Stalled,
    /// A limit of an effect of the application's own.
    Named(Arc<str>),
}

/// The source of a request to cancel a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelBy {
    /// The user, or the application on their behalf.
    User,
    /// The run's deadline.
    Deadline,
    /// The agent that opened this one.
    Parent,
    /// The program that performed the run was shut down first.
    Shutdown,
    /// The program that performed the run was lost: it crashed or was killed.
    Crash,
}

/// The failure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "failure", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The model call failed.
    Model {
        /// The error.
        error: adjutant_llm::Error,
    },
    /// The model refused.
    Refused {
        /// The model's text.
        text: Arc<str>,
    },
    /// A content filter stopped the reply.
    Filtered {
        /// The text from before the stop.
        text: Arc<str>,
    },
    /// The log could not be written, or does not fold.
    Log {
        /// The error, in words.
        message: Arc<str>,
    },
    /// A hook denied something.
    Denied {
        /// The point.
        point: Arc<str>,
        /// The reason.
        reason: Arc<str>,
    },
    /// A guardrail rejected the prompt or the answer.
    Guardrail {
        /// The guardrail.
        by: Arc<str>,
        /// The reason.
        reason: Arc<str>,
    },
    /// No answer of the model fits the output of the run.
    Output {
        /// The errors of the last one, in the form for the model.
        reason: Arc<str>,
    },
    /// The instructions could not be made.
    Instructions {
        /// The error, in words.
        message: Arc<str>,
    },
    /// A middleware of the run failed or panicked.
    Middleware {
        /// The error, in words.
        message: Arc<str>,
    },
    /// An activity of the run failed or panicked.
    Activity {
        /// The activity.
        act: ActivityId,
        /// The error, in words.
        message: Arc<str>,
    },
}

impl Outcome {
    /// Returns the outcome of the run, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Outcome::Finished { .. } => "finished",
            Outcome::Limit { .. } => "limit",
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::Failed { .. } => "failed",
            Outcome::Paused { .. } => "paused",
        }
    }

    /// True if the run finished in a reply without text and calls, and no tool had ended it.
    pub fn is_silent(&self) -> bool {
        matches!(self, Outcome::Finished { reply, why } if *why != Completion::Terminated && reply.is_silent())
    }

    /// True if two outcomes are one; for answers, if they are the very same.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Outcome::Finished { reply: one, why },
                Outcome::Finished {
                    reply: two,
                    why: other,
                },
            ) => why == other && (Arc::ptr_eq(one, two) || one == two),
            (one, two) => one == two,
        }
    }
}

impl Failure {
    /// Returns the kind of the failure, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Model { .. } => "model",
            Failure::Refused { .. } => "refused",
            Failure::Filtered { .. } => "filtered",
            Failure::Log { .. } => "log",
            Failure::Denied { .. } => "denied",
            Failure::Guardrail { .. } => "guardrail",
            Failure::Output { .. } => "output",
            Failure::Instructions { .. } => "instructions",
            Failure::Middleware { .. } => "middleware",
            Failure::Activity { .. } => "act",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Model { error } => error.fmt(f),
            Failure::Refused { text } => write!(f, "the model refused: {text}"),
            Failure::Filtered { .. } => f.write_str("a content filter stopped the reply"),
            Failure::Denied { point, reason } => write!(f, "denied at {point}: {reason}"),
            Failure::Guardrail { by, reason } => write!(f, "rejected by {by}: {reason}"),
            Failure::Output { reason } => write!(f, "no answer is what was wanted: {reason}"),
            Failure::Instructions { message } => write!(f, "no instructions: {message}"),
            Failure::Log { message }
            | Failure::Middleware { message }
            | Failure::Activity { message, .. } => f.write_str(message),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Turns => "max turns",
            Limit::Tokens => "tokens",
            Limit::Money => "money",
            Limit::Time => "time",
            Limit::Requests => "requests",
            Limit::ToolCalls => "tool calls",
            Limit::Depth => "depth",
            Limit::Agents => "agents at a time",
            Limit::Stalled => "no progress",
            Limit::Named(name) => name,
        })
    }
}

impl fmt::Display for CancelBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CancelBy::User => "the user",
            CancelBy::Deadline => "the deadline",
            CancelBy::Parent => "the parent",
            CancelBy::Shutdown => "a shutdown",
            CancelBy::Crash => "a crash",
        })
    }
}
