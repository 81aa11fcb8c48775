//! Requests aside from the turns of a run, for effects and for tools: held before, and billed however they end.

use std::{future::poll_fn, sync::Arc};

use adjutant_core::Limit;
use adjutant_llm::{
    Chunk, Collector, Error, ErrorKind, Model, ModelId, NanoUsd, Reply, Request, Usage,
};

use super::{
    Budget, Reservation, ReservationRequest,
    reservation::{estimate_overhead, request_of},
};

/// Returns the budget that a helper's request needs. It is not a request of the run.
pub(crate) fn need(model: &dyn Model, request: &Request) -> ReservationRequest {
    let input = request
        .entries
        .tokens()
        .saturating_add(estimate_overhead(request));
    let mut wanted = request_of(model.info(), request, input, false);
    wanted.fixed.requests = 0;
    wanted
}

/// Holds the budget that a request needs, and lowers its output to the rest.
///
/// Cancel: nothing is held.
pub(crate) async fn hold(
    budget: &Budget,
    wanted: ReservationRequest,
    request: &mut Request,
) -> Result<Reservation, Limit> {
    let held = budget.reserve(wanted).await?;
    if held.output() < wanted.most_output {
        Arc::make_mut(&mut request.options).max_output_tokens = Some(held.output());
    }
    Ok(held)
}

/// Sends a request to a model; `bill` receives the usage of each attempt, with its cost where a price is known.
///
/// Cancel: the usage that the provider has reported is billed.
pub(crate) async fn ask(
    model: &dyn Model,
    request: Request,
    bill: impl FnMut(Usage, Option<NanoUsd>),
) -> Result<Arc<Reply>, Error> {
    let mut stream = model.stream(request);
    let mut attempt = Attempt {
        model,
        collector: Collector::default(),
        asked: None,
        said: None,
        bill,
    };
    loop {
        let chunk = poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
        let message = "the stream of the model ended without a reply";
        let chunk = chunk.unwrap_or_else(|| Err(Error::new(ErrorKind::Protocol, message)))?;
        match &chunk {
            Chunk::Start { model, .. } => attempt.asked = Some(model.clone()),
            // It was billed all the same.
            Chunk::Retracted { usage, .. } => attempt.add(*usage),
            _ => {}
        }
        if let Some(reply) = attempt.collector.push(&chunk)? {
            attempt.said = Some(Arc::clone(&reply));
            return Ok(reply);
        }
    }
}

/// An attempt to get a reply, which is billed when it is over.
struct Attempt<'a, F: FnMut(Usage, Option<NanoUsd>)> {
    model: &'a dyn Model,
    collector: Collector,
    asked: Option<ModelId>,
    said: Option<Arc<Reply>>,
    bill: F,
}

impl<F: FnMut(Usage, Option<NanoUsd>)> Attempt<'_, F> {
    fn add(&mut self, usage: Usage) {
        // Missing usage does not mean that nothing was spent.
        if usage.total() > 0 {
            let info = self
                .asked
                .as_ref()
                .map_or(self.model.info(), |asked| self.model.info_of(asked));
            (self.bill)(usage, info.cost(&usage));
        }
    }
}

impl<F: FnMut(Usage, Option<NanoUsd>)> Drop for Attempt<'_, F> {
    fn drop(&mut self) {
        let usage = match &self.said {
            Some(reply) => {
                self.asked = Some(reply.model.clone());
                reply.usage
            }
            None => self.collector.usage(),
        };
        self.add(usage);
    }
}
