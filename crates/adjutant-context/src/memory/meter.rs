//! The amount that memories spend on models and embedders, counted while it happens: also if nothing comes of it.

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_llm::{Chunk, ChunkStream, Model, ModelId, ModelInfo, NanoUsd, Request, Usage};
use futures_util::StreamExt;

/// The amount that was spent on models and embedders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// The cost, if prices are known.
    pub cost: Option<NanoUsd>,
}

/// Counts usage, in itself and in its parent.
#[derive(Debug, Default)]
pub(super) struct Meter {
    spent: Mutex<Spent>,
    above: Option<Arc<Meter>>,
}

impl Meter {
    /// A meter at zero that also adds to its parent.
    pub(super) fn under(above: &Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            spent: Mutex::default(),
            above: Some(Arc::clone(above)),
        })
    }

    pub(super) fn add(&self, usage: Usage, cost: Option<NanoUsd>) {
        if usage.total() == 0 {
            return;
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.usage += usage;
        spent.cost = NanoUsd::sum_known(spent.cost, cost);
        drop(spent);
        if let Some(above) = &self.above {
            above.add(usage, cost);
        }
    }

    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model whose attempts are all counted, including failed ones.
#[derive(Debug)]
pub(super) struct Metered<'a> {
    pub(super) model: &'a Arc<dyn Model>,
    pub(super) meter: &'a Arc<Meter>,
}

impl Model for Metered<'_> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.model.info_of(model)
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let (model, meter) = (Arc::clone(self.model), Arc::clone(self.meter));
        let (mut answering, mut used) = (model.info().id.clone(), Usage::default());
        let charge =
            move |by: &ModelId, usage: Usage| meter.add(usage, model.info_of(by).cost(&usage));
        Box::pin(
            self.model
                .stream(request)
                .inspect(move |chunk| match chunk {
                    Ok(Chunk::Start { model, .. }) => answering = model.clone(),
                    Ok(Chunk::Usage { usage, .. }) => used = *usage,
                    Ok(Chunk::Retracted { usage, .. }) => {
                        charge(&answering, *usage);
                        used = Usage::default();
                    }
                    Ok(Chunk::Done(reply)) => charge(&reply.model, reply.usage),
                    Err(_) => charge(&answering, used),
                    Ok(_) => {}
                }),
        )
    }
}
