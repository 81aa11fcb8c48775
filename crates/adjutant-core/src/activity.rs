//! The activities that a run may request from an executor.

use adjutant_llm::CallId;
use adjutant_tool::Replay;
use serde::{Deserialize, Serialize};

use crate::number::TurnNo;

/// Something that an executor performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Resolve the tools of a turn and gather the edits of its view.
    Prepare {
        /// The turn.
        turn: TurnNo,
    },
    /// Stream the model.
    Ask {
        /// The turn.
        turn: TurnNo,
        /// The first attempt at its reply.
        attempt: u32,
    },
    /// Decide whether and with which arguments a call may run.
    Admit {
        /// The call.
        call: CallId,
    },
    /// Run the tool.
    Call {
        /// The call.
        call: CallId,
        /// The admission's rule for repeating it after a crash.
        replay: Replay,
        /// True if it was started before.
        again: bool,
    },
    /// Ask the outside to answer a pause of the run.
    Answer {
        /// The index of the pause in the run, counted from 0.
        pause: u32,
    },
    /// Decide how to continue after a closed turn.
    Settle {
        /// The turn.
        turn: TurnNo,
    },
}

/// Names an activity; the same activity has the same id in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivityId {
    /// An [`Activity::Prepare`].
    Prepare(TurnNo),
    /// An [`Activity::Ask`].
    Ask(TurnNo),
    /// An [`Activity::Admit`].
    Admit(CallId),
    /// An [`Activity::Call`].
    Call(CallId),
    /// An [`Activity::Answer`].
    Answer(u32),
    /// An [`Activity::Settle`].
    Settle(TurnNo),
}

impl Activity {
    /// The activity's name.
    pub fn id(&self) -> ActivityId {
        match *self {
            Activity::Prepare { turn } => ActivityId::Prepare(turn),
            Activity::Ask { turn, .. } => ActivityId::Ask(turn),
            Activity::Admit { call } => ActivityId::Admit(call),
            Activity::Call { call, .. } => ActivityId::Call(call),
            Activity::Answer { pause } => ActivityId::Answer(pause),
            Activity::Settle { turn } => ActivityId::Settle(turn),
        }
    }
}
