//! Tools that may not take long.

use std::time::Duration;

use async_trait::async_trait;

use super::SetCache;
use crate::{Identity, ToolError, Toolbox, Toolset};

/// A toolbox whose calls may take so long, instead of the run's own limit.
#[derive(Debug)]
pub struct TimeOut<T> {
    inner: T,
    limit: Duration,
    kept: SetCache,
}

impl<T: Toolbox> TimeOut<T> {
    /// Gives a call at most so long; a tool that takes less keeps its own limit.
    pub fn new(inner: T, limit: Duration) -> Self {
        Self { inner, limit, kept: SetCache::default() }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for TimeOut<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let changed = || {
            set.each(|tool| {
                let mut spec = tool.spec().clone();
                spec.timeout = Some(spec.timeout.map_or(self.limit, |own| own.min(self.limit)));
                tool.adapt(spec)
            })
        };
        Ok(self.kept.made(std::slice::from_ref(&set), changed))
    }
}
