//! The budget of requests and calls: held before they begin, settled when they have ended.

use std::sync::Arc;

use adjutant_core::{
    ActivityId, Admission, Caps, EffectInput, Limit, Memo, Record, Run, Spend, TurnNo,
};
use adjutant_llm::{CallResult, Edit, ModelInfo, Request, Status, Warning, WarningKind};
use adjutant_tool::Cancel;
use futures_util::FutureExt;

use super::{LocalExecutor, Performed, Records};
use crate::{
    budget::{
        Budget, Reservation, ReservationRequest,
        notice::{KEY, notice},
        reservation::{estimate_overhead, request_of},
    },
    effect::Action,
    setup::Setup,
};

/// The money behind a request.
pub(super) struct Fund {
    budget: Budget,
    wanted: ReservationRequest,
    asked: u64,
    /// True if the run knows of a limit that was reached.
    reached: bool,
    last: bool,
}

/// Counts the calls that are let through.
pub(super) struct Counter {
    budget: Option<Budget>,
    reached: bool,
}

impl LocalExecutor {
    /// Returns the funds that a request needs, if anything is limited.
    pub(super) fn fund(&mut self, run: &Run, request: &Request) -> Option<Fund> {
        let budget = self.budget()?.clone();
        self.warn_of_price(run, &budget);
        let (wanted, last) = (self.reservation(run, request), run.request().is_last());
        Some(Fund {
            budget,
            asked: wanted.most_output,
            wanted,
            reached: run.request().limit_reached().is_some(),
            last,
        })
    }

    pub(super) fn reservation(&self, run: &Run, request: &Request) -> ReservationRequest {
        let model = self.model_of(run);
        request_of(
            model.info(),
            request,
            run.context_tokens(estimate_overhead(request)),
            run.request().is_last(),
        )
    }

    /// Warns once in a drive that a cost limit cannot apply to a model without a known price.
    fn warn_of_price(&mut self, run: &Run, budget: &Budget) {
        let model = Arc::clone(self.model_of(run));
        if model.info().price.is_none() && budget.caps_money() && self.run_budget.tells_of_price() {
            let message = format!(
                "{} has no known price, so the limit of money does not hold it",
                model.info().id
            );
            let warning = Warning {
                kind: WarningKind::Degraded,
                message: message.into(),
            };
            self.feed
                .warn(self.place, self.setup.world.now_ms(), &warning);
        }
    }

    /// Counts the calls of this run.
    pub(super) fn counter(&self, run: &Run) -> Counter {
        Counter {
            budget: self.budget().cloned(),
            reached: run.request().limit_reached().is_some(),
        }
    }

    /// Returns the notice for the model about its used budget, if it must be sent now.
    pub(super) fn notice(&self, run: &Run) -> Option<(Edit, Memo)> {
        let (text, memo) = self
            .run_budget
            .is_open()
            .then(|| notice(run, self.budget(), self.active_ms()))??;
        Some((Action::reminder(KEY, text.into()), memo))
    }

    pub(super) fn add_notice(&self, run: &Run, performed: Performed) -> Performed {
        notify(performed, self.notice(run))
    }
}

/// Puts a reminder after everything that the next request shows.
pub(super) fn notify(mut performed: Performed, notice: Option<(Edit, Memo)>) -> Performed {
    if let (
        Some((edit, memo)),
        Some(Record::Prepared {
            edits,
            memos,
            stop: None,
            ..
        }),
    ) = (notice, performed.records.last_mut())
    {
        edits.push(edit);
        memos.push(memo);
    }
    performed
}

impl Fund {
    /// Sends the request within the rest of the budget, and settles its actual usage.
    pub(super) async fn ask<Fut>(
        self,
        turn: TurnNo,
        mut request: Request,
        stop: Cancel,
        ask: impl FnOnce(Request) -> Fut,
    ) -> Performed
    where
        Fut: Future<Output = Performed>,
    {
        let act = ActivityId::Ask(turn);
        let reserved = tokio::select! {
            biased;
            reserved = self.budget.reserve(self.wanted) => reserved,
            () = stop.cancelled() => return Performed::nothing(act),
        };
        let reservation = match reserved {
            Ok(reservation) => reservation,
            // The last turn has no room for output: the run ends.
            Err(_) if self.last => return Performed::new(act, Record::turn_settled(turn)),
            Err(limit) => return Performed::new(act, Record::Exhausted { limit }),
        };
        if reservation.output() < self.asked || self.last {
            Arc::make_mut(&mut request.options).max_output_tokens = Some(reservation.output());
        }
        let mut performed = ask(request).await;
        self.settle(reservation, &mut performed.records);
        performed
    }

    fn settle(&self, reservation: Reservation, records: &mut Records) {
        // A record made before a request does not count as a request.
        let asked = !records
            .iter()
            .any(|record| matches!(record, Record::Configured { .. }));
        let mut actual = Spend {
            requests: u64::from(asked),
            ..Spend::default()
        };
        let mut said = false;
        for record in &*records {
            let (usage, cost) = match record {
                Record::Retracted { usage, cost, .. } => (usage, cost),
                Record::Replied {
                    reply,
                    cost,
                    original,
                    ..
                } => {
                    said = true;
                    (&original.as_ref().unwrap_or(reply).usage, cost)
                }
                _ => continue,
            };
            actual = actual
                + Spend {
                    tokens: usage.total(),
                    cost: cost.unwrap_or_default(),
                    ..Spend::default()
                };
        }
        if said && actual.tokens == 0 {
            // No count arrived; the input was sent anyway.
            actual = actual
                + Spend {
                    requests: 0,
                    ..self.wanted.fixed
                };
        }
        reservation.settle(actual);
        if !self.reached
            && let Some(limit) = self.budget.blocking_limit()
        {
            records.push(Record::Exhausted { limit });
        }
    }
}

impl Counter {
    /// Lets a call through, if there may be one more.
    pub(super) fn count(&self, mut performed: Performed) -> Performed {
        let Some(budget) = &self.budget else {
            return performed;
        };
        let Some(Record::Admitted { admission, .. }) = performed.records.last_mut() else {
            return performed;
        };
        if !matches!(admission, Admission::Allow { .. }) || budget.take_call().is_ok() {
            return performed;
        }
        let message = format!(
            "not executed: the run has reached its limit of {}",
            Limit::ToolCalls
        );
        *admission = Admission::Refuse {
            result: Arc::new(CallResult::new(Status::OverLimit, message)),
        };
        performed.args = None;
        if !self.reached {
            performed.records.push(Record::Exhausted {
                limit: Limit::ToolCalls,
            });
        }
        performed
    }
}

/// Cuts the output of the first request of a run to what its caps leave, as it would be when it is made.
pub(crate) fn cut_first(
    request: &mut Request,
    setup: &Setup,
    info: &ModelInfo,
    sight: &EffectInput,
) {
    let (caps, above) = (
        sight.ledger.caps,
        setup.within.as_ref().and_then(|within| within.budget()),
    );
    let budget = match above {
        None if caps == Caps::default() => return,
        None => Budget::root(caps, Spend::default()),
        Some(above) => above.child(caps, Spend::default()),
    };
    let input = sight.estimate(request.entries.tokens(), estimate_overhead(request));
    let wanted = request_of(info, request, input, false);
    if let Some(Ok(held)) = budget.reserve(wanted).now_or_never() {
        if held.output() < wanted.most_output {
            Arc::make_mut(&mut request.options).max_output_tokens = Some(held.output());
        }
        held.settle(Spend::default());
    }
}
