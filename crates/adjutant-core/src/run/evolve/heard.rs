//! The meaning of an acknowledged part of a reply. Frozen.

use adjutant_llm::ModelId;

use super::{Run, Why};
use crate::{number::TurnNo, record::AcknowledgedPart};

impl Run {
    pub(super) fn apply_parts(
        &mut self,
        turn: TurnNo,
        attempt: u32,
        by: &ModelId,
        parts: &[AcknowledgedPart],
    ) -> Result<(), Why> {
        let working = self.turn_mut(turn)?;
        if working.reply.is_some() {
            return Err("the turn has its reply already");
        }
        if attempt < working.attempt {
            return Err("the attempt is void");
        }
        if attempt > working.attempt {
            // A model that retries internally continues the count of its attempts.
            working.attempt = attempt;
            working.heard.clear();
        }
        working.speaker = Some(by.clone());
        AcknowledgedPart::join(&mut working.heard, parts);
        Ok(())
    }
}
