//! A latch that holds answers until a test releases them. To wait within a reply use a scripted gate.

use tokio::sync::watch;

/// Holds answers back before their first byte, until it is opened. Clones are the same latch.
#[derive(Debug, Clone)]
pub struct Latch {
    waiting: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Latch {
    /// A closed latch.
    pub fn new() -> Self {
        Self {
            waiting: watch::Sender::new(0),
            open: watch::Sender::new(false),
        }
    }

    /// Waits until that many answers have arrived at the latch, counted from its beginning.
    pub async fn wait_for(&self, answers: usize) {
        let mut waiting = self.waiting.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = waiting.wait_for(|waiting| *waiting >= answers).await;
    }

    /// Lets everything pass, now and later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}
