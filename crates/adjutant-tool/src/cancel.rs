//! A wish to stop, seen by everyone who holds a clone.

use std::fmt;

use tokio_util::sync::CancellationToken;

/// A wish to stop. Clones are one wish; children hear their parent, not the other way round.
#[derive(Clone, Default)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// A wish that nobody has had yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A wish of its own that also hears this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Wishes to stop; more than once is the same as once.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// True if someone wishes to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until someone wishes to stop.
    ///
    /// Cancel: nothing is lost.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}
