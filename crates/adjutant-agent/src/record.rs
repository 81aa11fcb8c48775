//! What the log holds: closed facts and decisions. How a run decides may change; what a record means may not.

use std::sync::{Arc, OnceLock};

use adjutant_llm::{CallId, CallResult, Edit, Entry, ModelId, NanoUsd, Reply, ThreadId, Usage};
use adjutant_tool::Replay;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ActId, CancelBy, Failure, Limits, Outcome, RunNo, Seq, TurnNo};

/// The format that records are stored in.
const VERSION: u32 = 1;

/// A fact or a decision.
///
/// Invariant: a record means the same in every version of the program; new meanings are new records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// A conversation that existed before the log.
    Seeded {
        /// Its entries, oldest first.
        entries: Vec<Entry>,
    },
    /// A run began.
    Began {
        /// The run.
        run: RunNo,
        /// What it was prompted with.
        prompts: Vec<Entry>,
        /// Its limits.
        limits: Limits,
    },
    /// A turn began.
    Opened {
        /// The turn.
        turn: TurnNo,
    },
    /// A turn was prepared.
    Prepared {
        /// The turn.
        turn: TurnNo,
        /// What changes in the view before the request.
        edits: Vec<Edit>,
        /// The model that will be asked.
        model: ModelId,
    },
    /// An attempt at a reply was void.
    Retracted {
        /// The turn.
        turn: TurnNo,
        /// The attempt.
        attempt: u32,
        /// What it used.
        usage: Usage,
        /// What it cost, if the model has a price: it was billed all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
    },
    /// A reply came, whole or interrupted.
    Replied {
        /// The turn.
        turn: TurnNo,
        /// The reply.
        reply: Arc<Reply>,
        /// What it cost, if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<NanoUsd>,
    },
    /// It was decided what happens to a call.
    Admitted {
        /// The call.
        call: CallId,
        /// What happens to it.
        admission: Admission,
    },
    /// Calls are about to run; durable before they do.
    Launched {
        /// The calls, in order.
        calls: Vec<CallId>,
    },
    /// A call has its result.
    Returned {
        /// The call.
        call: CallId,
        /// Its result.
        result: Arc<CallResult>,
    },
    /// A step of a resumable call began.
    Begun {
        /// The call.
        call: CallId,
        /// The step.
        key: Arc<str>,
    },
    /// A step of a resumable call ended.
    Noted {
        /// The call.
        call: CallId,
        /// The step.
        key: Arc<str>,
        /// What it came to.
        value: Value,
    },
    /// A call spent something on models.
    Spent {
        /// The call.
        call: CallId,
        /// What.
        usage: Usage,
    },
    /// A turn is over.
    Settled {
        /// The turn.
        turn: TurnNo,
        /// Whether the run should end here.
        stop: bool,
    },
    /// An act failed in a way that ends the run.
    Broke {
        /// The act.
        act: ActId,
        /// How.
        failure: Failure,
    },
    /// Someone wished to stop the run.
    CancelAsked {
        /// Who.
        by: CancelBy,
    },
    /// The run ended.
    Ended {
        /// The run.
        run: RunNo,
        /// How.
        outcome: Outcome,
    },
    /// Something of an upper crate or of the application; the run itself does not look at it.
    App {
        /// What it is.
        kind: Arc<str>,
        /// The version of its content.
        version: u32,
        /// Its content.
        data: Value,
    },
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "admission", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Admission {
    /// It may run.
    Allow {
        /// The arguments it runs with, as JSON text.
        args: Arc<str>,
        /// Whether they differ from what the model wrote.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
        /// What people are shown instead of the tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Arc<str>>,
        /// What may happen to it after a crash.
        replay: Replay,
        /// Whether the whole batch runs one call after the other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sequential: bool,
    },
    /// It may not; this is its result.
    Refuse {
        /// The result.
        result: Arc<CallResult>,
    },
}

/// A record with its place.
///
/// Shape: `{"v":1,"seq":…,"at_ms":…,"thread":"…","record":{"record":"began",…}}`. The bytes are made once, at most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Stamped {
    v: u32,
    /// Its place in the log.
    pub seq: Seq,
    /// When it was made, in milliseconds since 1970-01-01 UTC; one value for a batch.
    pub at_ms: u64,
    /// The conversation that it belongs to.
    pub thread: ThreadId,
    /// The record.
    pub record: Record,
    #[serde(skip)]
    bytes: OnceLock<Bytes>,
}

#[derive(Deserialize)]
struct Raw {
    v: u32,
    seq: Seq,
    at_ms: u64,
    thread: ThreadId,
    record: Record,
}

impl Stamped {
    /// A record at its place.
    pub fn new(seq: Seq, at_ms: u64, thread: ThreadId, record: Record) -> Self {
        Self { v: VERSION, seq, at_ms, thread, record, bytes: OnceLock::new() }
    }

    /// The record as it is stored: one JSON object, without a line feed.
    ///
    /// # Errors
    /// If the record cannot be written as JSON; ours can.
    pub fn bytes(&self) -> Result<&Bytes, serde_json::Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let bytes = Bytes::from(serde_json::to_vec(self)?);
        Ok(self.bytes.get_or_init(|| bytes))
    }
}

impl PartialEq for Stamped {
    fn eq(&self, other: &Self) -> bool {
        (self.seq, self.at_ms, &self.thread, &self.record) == (other.seq, other.at_ms, &other.thread, &other.record)
    }
}

impl TryFrom<Raw> for Stamped {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if raw.v > VERSION {
            return Err(format!("record {} has version {}; this program reads up to {VERSION}", raw.seq, raw.v));
        }
        Ok(Self::new(raw.seq, raw.at_ms, raw.thread, raw.record))
    }
}
