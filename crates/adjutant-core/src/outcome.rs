//! How a run ends: exactly once, and last.

use std::{fmt, sync::Arc};

use adjutant_llm::Reply;
use serde::{Deserialize, Serialize};

use crate::{activity::ActivityId, pause, pause::Pause};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// There was nothing more to do.
    Finished {
        /// The last reply.
        reply: Arc<Reply>,
        /// Why there was nothing more to do.
        why: Completion,
    },
    /// A limit was reached; every call was closed first.
    Limit {
        /// Which one.
        limit: Limit,
    },
    /// Someone wished to stop.
    Cancelled {
        /// Who.
        by: CancelBy,
    },
    /// Something went wrong that the model cannot mend.
    Failed {
        /// What.
        failure: Failure,
    },
    /// The run waits for the outside and goes on with its answers; never recorded as an end.
    Paused {
        /// What it waits for.
        #[serde(serialize_with = "pause::tell_all")]
        pauses: Vec<Arc<Pause>>,
    },
}

/// Why a run had nothing more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Completion {
    /// The model answered without calling a tool.
    Answer,
    /// The results of the calls said so.
    Terminated,
    /// The application said so between two turns.
    Stopped,
    /// The answer was cut off by the output limit.
    Length,
}

/// A limit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// How many requests a run may make.
    Turns,
    /// How many tokens may be used.
    Tokens,
    /// How much money may be spent.
    Money,
    /// How much time may pass.
    Time,
    /// How many requests may be made, children's included.
    Requests,
    /// How many calls may run.
    ToolCalls,
    /// How many agents may stand above one another.
    Depth,
    /// How many agents may run at a time.
    Agents,
    /// The run did not get any further.
    Stalled,
    /// A limit of an effect of the application's own.
    Named(Arc<str>),
}

/// Who wished to stop a run.
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
    /// The program that performed the run ended first.
    Shutdown,
}

/// What went wrong with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "failure", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The model call failed.
    Model {
        /// How.
        error: adjutant_llm::Error,
    },
    /// The model refused.
    Refused {
        /// What it said.
        text: Arc<str>,
    },
    /// A content filter stopped the reply.
    Filtered {
        /// What had been said.
        text: Arc<str>,
    },
    /// The log could not be written, or does not fold.
    Log {
        /// How.
        message: Arc<str>,
    },
    /// A hook said no.
    Denied {
        /// The point.
        point: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// A guardrail rejected the prompt or the answer.
    Guardrail {
        /// The guardrail.
        by: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The instructions could not be made.
    Instructions {
        /// How.
        message: Arc<str>,
    },
    /// What surrounds the run failed or panicked.
    Middleware {
        /// How.
        message: Arc<str>,
    },
    /// An activity of the run failed or panicked.
    Activity {
        /// Which one.
        act: ActivityId,
        /// How.
        message: Arc<str>,
    },
}

impl Outcome {
    /// How the run ended, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Outcome::Finished { .. } => "finished",
            Outcome::Limit { .. } => "limit",
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::Failed { .. } => "failed",
            Outcome::Paused { .. } => "paused",
        }
    }

    /// Whether the run finished in a reply without text and calls, and no tool had ended it.
    pub fn is_silent(&self) -> bool {
        matches!(self, Outcome::Finished { reply, why } if *why != Completion::Terminated && reply.is_silent())
    }

    /// Whether two outcomes are one; of answers, whether they are the very same.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Outcome::Finished { reply: one, why }, Outcome::Finished { reply: two, why: other }) => {
                why == other && (Arc::ptr_eq(one, two) || one == two)
            }
            (one, two) => one == two,
        }
    }
}

impl Failure {
    /// What kind of failure it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Model { .. } => "model",
            Failure::Refused { .. } => "refused",
            Failure::Filtered { .. } => "filtered",
            Failure::Log { .. } => "log",
            Failure::Denied { .. } => "denied",
            Failure::Guardrail { .. } => "guardrail",
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
            Failure::Instructions { message } => write!(f, "no instructions: {message}"),
            Failure::Log { message } | Failure::Middleware { message } | Failure::Activity { message, .. } => {
                f.write_str(message)
            }
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
        })
    }
}
