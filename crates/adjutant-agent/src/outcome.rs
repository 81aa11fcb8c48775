//! How a run ends: exactly once, and last.

use std::{fmt, sync::Arc};

use adjutant_llm::Reply;
use serde::{Deserialize, Serialize};

use crate::ActId;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// There was nothing more to do.
    Finished {
        /// The last reply.
        reply: Arc<Reply>,
        /// Why there was nothing more to do.
        why: Why,
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
}

/// Why a run had nothing more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// How many requests a run may make.
    Turns,
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
    /// An act of the run failed or panicked.
    Act {
        /// Which one.
        act: ActId,
        /// How.
        message: Arc<str>,
    },
}

impl Failure {
    /// What kind of failure it is, in one word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Failure::Model { .. } => "model",
            Failure::Refused { .. } => "refused",
            Failure::Filtered { .. } => "filtered",
            Failure::Log { .. } => "log",
            Failure::Act { .. } => "act",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Model { error } => error.fmt(f),
            Failure::Refused { text } => write!(f, "the model refused: {text}"),
            Failure::Filtered { .. } => f.write_str("a content filter stopped the reply"),
            Failure::Log { message } | Failure::Act { message, .. } => f.write_str(message),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Turns => f.write_str("max turns"),
        }
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
