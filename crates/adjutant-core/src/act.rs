//! What a run may ask a port to perform.

use adjutant_llm::CallId;
use adjutant_tool::Replay;
use serde::{Deserialize, Serialize};

use crate::number::TurnNo;

/// Something that a port performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
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
        /// What may happen to it after a crash, as it was admitted.
        replay: Replay,
        /// Whether it was started before.
        again: bool,
    },
    /// Ask the outside what the run waits for.
    Answer {
        /// The place of the pause among those of the run, counted from 0.
        pause: u32,
    },
    /// Say what comes after a closed turn.
    Settle {
        /// The turn.
        turn: TurnNo,
    },
}

/// Names an act; the same act has the same id in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActId {
    /// An [`Act::Prepare`].
    Prepare(TurnNo),
    /// An [`Act::Ask`].
    Ask(TurnNo),
    /// An [`Act::Admit`].
    Admit(CallId),
    /// An [`Act::Call`].
    Call(CallId),
    /// An [`Act::Answer`].
    Answer(u32),
    /// An [`Act::Settle`].
    Settle(TurnNo),
}

impl Act {
    /// The act's name.
    pub fn id(&self) -> ActId {
        match *self {
            Act::Prepare { turn } => ActId::Prepare(turn),
            Act::Ask { turn, .. } => ActId::Ask(turn),
            Act::Admit { call } => ActId::Admit(call),
            Act::Call { call, .. } => ActId::Call(call),
            Act::Answer { pause } => ActId::Answer(pause),
            Act::Settle { turn } => ActId::Settle(turn),
        }
    }
}
