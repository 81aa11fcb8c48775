//! Steps after a drive: hooks that may change the outcome of its run, and observers.

use std::sync::Arc;

use adjutant_core::{Failure, Outcome, Record, RunNo};
use adjutant_llm::{Block, Reply};

use super::drive_setup::DriveSetup;
use crate::{
    hooks::{Point, Verdict},
    points::{AfterAgent, AfterRun},
};

impl DriveSetup<'_> {
    /// Reaches the points that stand against those before the drive; nothing is reached twice.
    pub(super) async fn after(&mut self) {
        let ended = self.has_begun() && self.error.is_none();
        if let Some(outcome) = self.core.run.outcome().filter(|_| ended).cloned()
            && std::mem::take(&mut self.hears_agent)
            && self.setup.hooks.hears::<AfterAgent>()
        {
            self.after_agent(outcome).await;
        }
        if std::mem::take(&mut self.hears_run) && self.setup.hooks.hears::<AfterRun>() {
            let result = Arc::new(self.result());
            // Observed only: the returned value of a hook is ignored.
            self.pass(AfterRun::new(result)).await;
        }
    }

    async fn after_agent(&mut self, outcome: Outcome) {
        let reply = self.result().reply;
        let (run, by): (_, Arc<str>) = (self.run, AfterAgent::NAME.into());
        let outcome_before = outcome.clone();
        let records = match self.pass(AfterAgent::new(outcome.clone(), reply)).await {
            Some(Verdict::Pass(point)) => {
                let changed = outcome_after_hook(&outcome, point);
                changed
                    .map(|outcome| overrule_record(run, &outcome_before, outcome, by))
                    .into_iter()
                    .collect()
            }
            Some(Verdict::Deny(reason)) => {
                let failure = Failure::Denied {
                    point: Arc::clone(&by),
                    reason: Arc::clone(&reason),
                };
                let denied = Record::Denied {
                    point: Arc::clone(&by),
                    reason,
                    call: None,
                };
                vec![
                    denied,
                    overrule_record(run, &outcome_before, Outcome::Failed { failure }, by),
                ]
            }
            None => Vec::new(),
        };
        let committed = self.commit(records).await;
        self.error = committed.err();
    }
}

/// The record of another outcome. An answer that was rejected or replaced is replaced in later requests too; a model
/// that saw a rejected answer would build on it.
pub(super) fn overrule_record(
    run: RunNo,
    before: &Outcome,
    outcome: Outcome,
    by: Arc<str>,
) -> Record {
    let rejected = |by: &str, reason: &str| format!("The answer was withheld by {by:?}: {reason}");
    let instead = match (before, &outcome) {
        (Outcome::Finished { reply: before, .. }, Outcome::Finished { reply, .. })
            if before != reply =>
        {
            Some(answering(before, reply.text()))
        }
        (
            Outcome::Finished { reply, .. },
            Outcome::Failed {
                failure: Failure::Guardrail { by, reason },
            },
        ) => Some(answering(reply, rejected(by, reason))),
        (
            Outcome::Finished { reply, .. },
            Outcome::Failed {
                failure: Failure::Denied { point, reason },
            },
        ) => Some(answering(reply, rejected(point, reason))),
        _ => None,
    };
    Record::Overruled {
        run,
        outcome,
        by,
        instead: instead.map(Arc::new),
    }
}

/// Creates a reply with this text, as if the model had written it.
fn answering(reply: &Reply, text: String) -> Reply {
    Reply {
        blocks: vec![Arc::new(Block::text(text))],
        ..Reply::new(reply.model.clone(), reply.stop)
    }
}

/// Returns the outcome after a hook, if the hook changed it: another outcome, or another answer in it.
fn outcome_after_hook(before: &Outcome, point: AfterAgent) -> Option<Outcome> {
    let outcome = match (point.outcome, point.reply) {
        (Outcome::Paused { .. }, _) => return None,
        (outcome, reply) if outcome.is_same(before) => match (outcome, reply) {
            (Outcome::Finished { why, .. }, Some(reply)) => Outcome::Finished { reply, why },
            (outcome, _) => outcome,
        },
        (outcome, _) => outcome,
    };
    (!outcome.is_same(before)).then_some(outcome)
}
