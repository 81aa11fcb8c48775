//! Answer: ask the outside what a run waits for.

use super::{LocalPort, Performed};
use crate::{ActId, Record, Run};

impl LocalPort {
    pub(super) fn answer(&mut self, run: &Run, at: u32) {
        let Some(pause) = run.pause(at) else { return };
        self.done.push(Performed::new(ActId::Answer(at), Record::Unanswered { pause: pause.id.clone() }));
    }
}
