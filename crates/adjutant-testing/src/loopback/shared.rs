//! The data that all connections of a server share: its model, its faults, and the received requests.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use adjutant_llm::Model;
use bytes::Bytes;

use super::{Order, Setup, dispatch::Own};
use crate::{issued::Issued, plan::Plan, received::Received};

/// The source of answers.
pub(crate) enum Source {
    Model(Box<dyn Model>),
    /// Bodies, and the whole answers that were made of them.
    Canned {
        bodies: Vec<Bytes>,
        answers: Vec<Bytes>,
    },
}

/// The data that all connections of a server share.
pub(crate) struct Shared {
    pub(super) setup: Setup,
    pub(super) issued: Arc<Issued>,
    pub(super) received: Mutex<Vec<Received>>,
    pub(super) requests: AtomicUsize,
    pub(super) connections: AtomicUsize,
}

impl Shared {
    /// Counts a request, and keeps it if requests are kept; gives its number.
    pub(crate) fn note(&self, request: &Received) -> usize {
        let mut received = self.lock_received();
        if self.setup.keep {
            received.push(request.clone());
        }
        self.requests.fetch_add(1, Ordering::AcqRel)
    }

    pub(crate) fn source(&self) -> &Source {
        &self.setup.source
    }

    pub(crate) fn issue_record(&self) -> &Arc<Issued> {
        &self.issued
    }

    /// The wire that is spoken beside the four.
    pub(super) fn oracle(&self) -> &Own {
        &self.setup.oracle
    }

    pub(crate) fn order(&self) -> Order {
        self.setup.order
    }

    /// True if the bodies of requests are used.
    pub(crate) fn reads_bodies(&self) -> bool {
        self.setup.keep || matches!(self.setup.source, Source::Model(_))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.setup.world.now_ms()
    }

    /// The faults of a request.
    pub(crate) fn plan(&self, number: usize) -> Plan {
        let faults = self
            .setup
            .faults
            .iter()
            .filter(|(nth, _)| nth.is_none_or(|nth| nth == number));
        Plan::from_faults(faults.map(|(_, fault)| fault))
    }

    /// Waits for what holds answers back.
    pub(crate) async fn hold(&self) {
        if let Some(latch) = &self.setup.latch {
            latch.pass().await;
        }
        if !self.setup.delay.is_zero() {
            tokio::time::sleep(self.setup.delay).await;
        }
    }

    /// True if anything holds answers back.
    pub(crate) fn holds(&self) -> bool {
        self.setup.latch.is_some() || !self.setup.delay.is_zero()
    }

    pub(super) fn lock_received(&self) -> MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Model(model) => f.debug_tuple("Model").field(model).finish(),
            Source::Canned { bodies, .. } => f.debug_tuple("Canned").field(&bodies.len()).finish(),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("setup", &self.setup)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}
