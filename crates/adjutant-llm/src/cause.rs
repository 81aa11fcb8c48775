//! The cause of an error, shared: an error is cloned, and its cause seldom can be.

use std::{error::Error, fmt, ops::Deref, sync::Arc};

/// The largest number of causes that are written.
const MAX_LINES: usize = 8;

/// The cause of an error.
///
/// It is not an error itself: `source()` returns the wrapped error with its own type.
#[derive(Clone)]
pub struct Cause {
    error: Arc<dyn Error + Send + Sync>,
    /// True if it is what the error was caused by.
    is_behind: bool,
}

impl Cause {
    /// Returns the cause behind an error, for an error with the same message as the wrapping one. `None` if it has no
    /// cause.
    pub fn behind(error: impl Error + Send + Sync + 'static) -> Option<Self> {
        error.source().is_some().then(|| Self {
            error: Arc::new(error),
            is_behind: true,
        })
    }

    /// Writes an error and its causes, each on its own line: the `Debug` output of an error.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn lines(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{error}")?;
        let mut source = error.source();
        for _ in 0..MAX_LINES {
            let Some(cause) = source else { break };
            write!(f, "\ncaused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Cause {
    fn from(error: E) -> Self {
        Self {
            error: Arc::new(error),
            is_behind: false,
        }
    }
}

impl Deref for Cause {
    type Target = dyn Error + 'static;

    fn deref(&self) -> &Self::Target {
        match self.error.source() {
            Some(source) if self.is_behind => source,
            _ => &*self.error,
        }
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
