//! Handling of a reply or a failure before it counts: hooks can revise or replace it, and a request that is too large
//! is reduced.

use std::{sync::Arc, time::Duration};

use adjutant_core::{ActivityId, EventKind, Failure, Record};
use adjutant_llm::{CallId, Error, ErrorKind, Reply};
use adjutant_tool::Cancel;

use super::{Asking, has_doubles};
use crate::{
    executor::{Performed, prepare},
    hooks::{Point, Verdict},
    partial_reply::lock,
    points::{AfterModel, ModelError},
};

impl Asking {
    /// True if a failure may be followed by a smaller request: no emitted content would be lost.
    pub(super) fn gives_way(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Overflow && self.kinds.is_empty()
    }

    /// The turn is prepared again.
    pub(super) fn handle_overflow(mut self, error: &Error) -> Performed {
        self.retract(error);
        let overflow = error.details().overflow.unwrap_or_default();
        self.records.push(Record::Overflowed {
            turn: self.turn,
            overflow,
        });
        Performed {
            act: ActivityId::Ask(self.turn),
            records: self.records.into(),
            tools: None,
            args: None,
        }
    }

    /// Retracts the content of this attempt: it is billed anyway.
    pub(super) fn retract(&mut self, cause: &Error) {
        let Some(said) = lock(&self.reply).cut() else {
            return;
        };
        if said.blocks.is_empty() && said.usage.total() == 0 {
            return;
        }
        let (turn, attempt, usage) = (self.turn, self.attempt, said.usage);
        let cost = self.cost_if_reported(&usage);
        self.records.push(Record::Retracted {
            turn,
            attempt,
            usage,
            cost,
        });
        if self.shown {
            let kind = EventKind::ReplyRetracted {
                attempt,
                cause: cause.clone(),
                usage,
            };
            self.feed.show(self.place, self.at_ms, kind);
        }
    }

    /// Returns the reply after its hooks; unchanged after a cancellation.
    pub(super) async fn run_reply_hooks(
        mut self,
        reply: Arc<Reply>,
        began_ms: u64,
        stop: &Cancel,
    ) -> Performed {
        let act = ActivityId::Ask(self.turn);
        let duration =
            Duration::from_millis(self.feed.setup.world.now_ms().saturating_sub(began_ms));
        let point = AfterModel::new(Arc::clone(&reply), duration);
        let Some(verdict) = self.pass(point, stop).await else {
            return self.end(Some(Ok(reply)));
        };
        let cost = self.cost_if_reported(&reply.usage);
        match verdict {
            Verdict::Pass(point) if point.reply == reply => return self.end(Some(Ok(reply))),
            Verdict::Pass(point) => match self.misfit(&point.reply, Some(&reply)) {
                None => {
                    let (turn, original) = (self.turn, Some(reply));
                    let recovered = None;
                    self.records.push(Record::Replied {
                        turn,
                        reply: point.reply,
                        cost,
                        original,
                        recovered,
                    });
                }
                Some(why) => {
                    self.records
                        .push(Record::reply_received(self.turn, reply, cost));
                    let message = format!("a hook of {}: {why}", AfterModel::NAME).into();
                    self.records.push(Record::Broke {
                        act,
                        failure: Failure::Activity { act, message },
                    });
                }
            },
            Verdict::Deny(reason) => {
                self.records
                    .push(Record::reply_received(self.turn, reply, cost));
                self.records
                    .extend(prepare::denial_records::<AfterModel>(act, reason));
            }
        }
        lock(&self.reply).cut();
        Performed {
            act,
            records: self.records.into(),
            tools: None,
            args: None,
        }
    }

    /// The reply of a hook that replaces a failed one; without one, the failure.
    pub(super) async fn run_error_hooks(mut self, error: Error, stop: &Cancel) -> Performed {
        let act = ActivityId::Ask(self.turn);
        let reply = match self.pass(ModelError::new(error.clone(), None), stop).await {
            Some(Verdict::Pass(point)) => point.reply,
            Some(Verdict::Deny(reason)) => {
                let denied = Record::Denied {
                    point: ModelError::NAME.into(),
                    reason,
                    call: None,
                };
                self.records.push(denied);
                None
            }
            None => None,
        };
        let Some(reply) = reply else {
            return self.end(Some(Err(error)));
        };
        if let Some(why) = self.misfit(&reply, None) {
            let message = format!(
                "{error}; the reply of a hook of {} does not count: {why}",
                ModelError::NAME
            );
            return self.end(Some(Err(
                Error::new(ErrorKind::Protocol, message).with_source(error)
            )));
        }
        self.retract(&error);
        let (turn, cost) = (self.turn, None);
        self.records.push(Record::Replied {
            turn,
            reply,
            cost,
            original: None,
            recovered: Some(error),
        });
        Performed {
            act,
            records: self.records.into(),
            tools: None,
            args: None,
        }
    }

    async fn pass<P: Point>(&mut self, point: P, stop: &Cancel) -> Option<Verdict<P>> {
        let cx = self.feed.hook_context(self.place);
        tokio::select! {
            biased;
            verdict = self.feed.pass(&cx, point) => Some(verdict),
            () = stop.cancelled() => None,
        }
    }

    /// Returns the reason why a hook's reply is invalid: every call needs a unique id, which no other turn has.
    fn misfit(&self, reply: &Reply, original: Option<&Reply>) -> Option<&'static str> {
        let known = |id: CallId| {
            original.is_some_and(|original| original.calls().any(|call| call.id == id))
        };
        if has_doubles(reply) {
            return Some("two calls of a reply have one id");
        }
        let foreign = reply
            .calls()
            .any(|call| call.id.turn != self.turn.0 && !known(call.id));
        foreign.then_some("a call has an id of another turn")
    }
}
