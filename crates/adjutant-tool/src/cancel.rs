//! A cancellation request, visible to every holder of a clone.

use std::fmt;

use tokio_util::sync::CancellationToken;

/// A cancellation token. Clones share one state; children observe their parent, but not the other way round.
#[derive(Clone, Default)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a child token that is also cancelled with this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Cancels the token; further calls have no effect.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// True if the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the token is cancelled.
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
