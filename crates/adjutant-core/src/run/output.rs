//! The fold of a run's requested answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Current, Run};
use crate::{
    number::TurnNo,
    outcome::Outcome,
    record::{OutputVerdict, OutputWish},
};

/// The requested output, and its result so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Wanted {
    wish: Arc<OutputWish>,
    /// The number of answers that were refused.
    refused: u32,
    newest: Option<(TurnNo, OutputVerdict)>,
}

impl Run {
    /// Returns the requested answer of the newest run, and the number of refused answers.
    pub fn output(&self) -> Option<(&Arc<OutputWish>, u32)> {
        let wanted = self.current.as_ref()?.output.as_deref()?;
        Some((&wanted.wish, wanted.refused))
    }

    pub(super) fn apply_output_request(
        &mut self,
        wish: &Arc<OutputWish>,
    ) -> Result<(), &'static str> {
        let wanted = Wanted {
            wish: Arc::clone(wish),
            refused: 0,
            newest: None,
        };
        self.current_mut()?.output = Some(Box::new(wanted));
        Ok(())
    }

    pub(super) fn apply_output_verdict(
        &mut self,
        turn: TurnNo,
        verdict: &OutputVerdict,
    ) -> Result<(), &'static str> {
        self.turn_mut(turn)?;
        let wanted = self
            .current_mut()?
            .output
            .as_mut()
            .ok_or("no answer of this form is wanted")?;
        wanted.refused += u32::from(matches!(verdict, OutputVerdict::Refused { .. }));
        wanted.newest = Some((turn, verdict.clone()));
        Ok(())
    }
}

impl Current {
    /// Returns the accepted answer of the run, if no message followed it.
    pub(super) fn answer(&self) -> Option<Arc<Value>> {
        let newest = self.turn.as_ref()?.no;
        match self.output.as_ref()?.newest.as_ref()? {
            (turn, OutputVerdict::Accepted { value }) if *turn == newest => Some(Arc::clone(value)),
            _ => None,
        }
    }

    /// Returns whether the answer of a turn was accepted, if one was given.
    pub(super) fn is_output_accepted(&self, turn: TurnNo) -> Option<bool> {
        let (checked, verdict) = self.output.as_ref()?.newest.as_ref()?;
        (*checked == turn).then_some(matches!(verdict, OutputVerdict::Accepted { .. }))
    }

    /// Another outcome replaced this one: the accepted output no longer applies.
    pub(super) fn overrule_output(&mut self, outcome: &Outcome) {
        let is_same = self
            .outcome
            .as_ref()
            .is_some_and(|known| known.is_same(outcome));
        if let Some(wanted) = self.output.as_mut().filter(|_| !is_same) {
            wanted.newest = None;
        }
    }
}
