//! Settle: what comes after a closed turn.

use super::{LocalPort, Performed};
use crate::{ActId, Change, Record, Run, TurnNo};

impl LocalPort {
    pub(super) fn settle(&mut self, _: &Run, turn: TurnNo) {
        let record = Record::Settled { turn, stop: false, change: Change::default() };
        self.done.push(Performed::new(ActId::Settle(turn), record));
    }
}
