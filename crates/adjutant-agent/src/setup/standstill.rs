//! Standstill: the time of a call stops while it, or an agent under it, waits for a person's answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// The number of answers that a call and the agents under it wait for; those under other calls count above too.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    waiting: AtomicUsize,
    changed: Notify,
    above: Option<Arc<Standstill>>,
}

/// Counts one answer that is waited for, until it is dropped.
pub(crate) struct WaitCount(Arc<Standstill>);

impl Standstill {
    /// The standstill of a call of an agent that works under another call, or of the first one.
    pub(crate) fn under(above: Option<&Arc<Self>>) -> Self {
        Self {
            above: above.cloned(),
            ..Self::default()
        }
    }

    /// A question was sent.
    pub(crate) fn stand(self: &Arc<Self>) -> WaitCount {
        self.each(|it| it.waiting.fetch_add(1, Ordering::AcqRel));
        WaitCount(Arc::clone(self))
    }

    /// Waits for so much time of the call's own.
    pub(crate) async fn elapsed(&self, mut left: Duration) {
        loop {
            self.until(|waiting| waiting == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                () = self.until(|waiting| waiting > 0) => left = left.saturating_sub(began.elapsed()),
            }
        }
    }

    async fn until(&self, is: impl Fn(usize) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if is(self.waiting.load(Ordering::Acquire)) {
                return;
            }
            changed.await;
        }
    }

    fn each(self: &Arc<Self>, count: impl Fn(&Self) -> usize) {
        let mut next = Some(self);
        while let Some(it) = next {
            count(it);
            it.changed.notify_waiters();
            next = it.above.as_ref();
        }
    }
}

impl Drop for WaitCount {
    fn drop(&mut self) {
        self.0.each(|it| it.waiting.fetch_sub(1, Ordering::AcqRel));
    }
}
