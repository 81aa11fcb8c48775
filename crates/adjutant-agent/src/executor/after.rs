//! After: what hooks make of the result of a call that has run.

use std::{sync::Arc, time::Duration};

use adjutant_core::Record;
use adjutant_llm::{Call, CallResult, Status};

use super::Records;
use crate::{
    event_sink::EventSink,
    hooks::{Point, Verdict},
    points::{AfterTool, ToolError},
    turn_position::TurnPosition,
};

/// A call that has run.
pub(super) struct Ran<'a> {
    pub(super) feed: &'a EventSink,
    pub(super) place: TurnPosition,
    pub(super) call: &'a Call,
    /// The arguments that it ran with.
    pub(super) args: &'a Arc<str>,
    pub(super) began_ms: u64,
}

impl Ran<'_> {
    /// Returns the result after its hooks, and their denials.
    ///
    /// An error passes `tool_error` first, which may mend it; `after_tool` sees every call that ran.
    pub(super) async fn pass(&self, mut result: CallResult) -> (CallResult, Records) {
        let mut records = Records::new();
        let hooks = &self.feed.setup.hooks;
        if hooks.is_empty() {
            return (result, records);
        }
        if result.is_error() && hooks.hears::<ToolError>() {
            let point = ToolError::new(self.call.clone(), Arc::clone(self.args), result.clone());
            match self.reach(point).await {
                Some(Verdict::Pass(point)) => result = point.result,
                Some(Verdict::Deny(reason)) => {
                    records.push(self.denial_record(ToolError::NAME, reason))
                }
                None => {}
            }
        }
        if hooks.hears::<AfterTool>() {
            let point = AfterTool::new(
                self.call.clone(),
                Arc::clone(self.args),
                result.clone(),
                self.duration(),
            );
            match self.reach(point).await {
                Some(Verdict::Pass(point)) => result = point.result,
                Some(Verdict::Deny(reason)) => {
                    result = CallResult::new(
                        Status::Denied,
                        format!("the call ran, but its result is withheld: {reason}"),
                    );
                    records.push(self.denial_record(AfterTool::NAME, reason));
                }
                None => {}
            }
        }
        (result, records)
    }

    /// Passes a point through its hooks; `None` if they are still running when the result is no longer needed.
    async fn reach<P: Point>(&self, point: P) -> Option<Verdict<P>> {
        let cx = self.feed.hook_context(self.place);
        let given_up = async {
            // A hook that hangs is left when the run is stopped.
            self.feed.stop.cancelled().await;
            tokio::time::sleep(self.feed.setup.calls.grace).await;
        };
        tokio::select! {
            biased;
            verdict = self.feed.pass(&cx, point) => Some(verdict),
            () = given_up => None,
        }
    }

    fn denial_record(&self, point: &str, reason: Arc<str>) -> Record {
        Record::Denied {
            point: point.into(),
            reason,
            call: Some(self.call.id),
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_millis(self.feed.setup.world.now_ms().saturating_sub(self.began_ms))
    }
}
