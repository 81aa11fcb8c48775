//! Records of an ordinary turn, for executors: special fields are omitted.

use std::sync::Arc;

use adjutant_llm::{CallId, CallResult, Edit, Entry, ModelId, NanoUsd, Reply, Usage};

use super::{Record, RunChange};
use crate::{
    number::{RunNo, TurnNo},
    options::Limits,
};

impl Record {
    /// A run began with these prompts and limits, and with the terms of the run before.
    pub fn began(run: RunNo, prompts: Vec<Entry>, limits: Limits) -> Self {
        Record::Began {
            run,
            prompts,
            limits,
            terms: None,
        }
    }

    /// A turn was prepared: nothing is hidden, remembered or spent.
    pub fn turn_prepared(turn: TurnNo, model: ModelId, edits: Vec<Edit>) -> Self {
        Record::Prepared {
            turn,
            edits,
            once: Vec::new(),
            model,
            hidden: Vec::new(),
            memos: Vec::new(),
            reports: Vec::new(),
            spent: Usage::default(),
            cost: None,
            stop: None,
        }
    }

    /// A reply arrived, as the model wrote it.
    pub fn reply_received(turn: TurnNo, reply: Arc<Reply>, cost: Option<NanoUsd>) -> Self {
        Record::Replied {
            turn,
            reply,
            cost,
            original: None,
            recovered: None,
        }
    }

    /// A call has its result, and the model receives all of it.
    pub fn call_returned(call: CallId, result: impl Into<Arc<CallResult>>) -> Self {
        Record::Returned {
            call,
            result: result.into(),
            shown: None,
        }
    }

    /// A turn is over, and nothing changes.
    pub fn turn_settled(turn: TurnNo) -> Self {
        Record::Settled {
            turn,
            stop: false,
            change: RunChange::default(),
        }
    }
}
