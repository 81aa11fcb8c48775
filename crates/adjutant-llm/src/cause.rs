//! The cause of an error, shared: an error is cloned, and its cause seldom can be.

use std::{error::Error, fmt, ops::Deref, sync::Arc};

/// The cause of an error.
///
/// It is no error itself: `source()` gives what it holds, with the type that this has.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
