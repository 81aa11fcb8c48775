//! Tools whose results are shown in part.

use async_trait::async_trait;

use super::SetCache;
use crate::{Identity, ToolError, Toolbox, Toolset};

/// A toolbox whose results are shown to the model up to a number of bytes of text.
#[derive(Debug)]
pub struct LimitOutput<T> {
    inner: T,
    bytes: usize,
    kept: SetCache,
}

impl<T: Toolbox> LimitOutput<T> {
    /// Shows at most so many bytes of text of a result; a tool that shows less keeps its own limit.
    pub fn new(inner: T, bytes: usize) -> Self {
        Self { inner, bytes, kept: SetCache::default() }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for LimitOutput<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let changed = || {
            set.each(|tool| {
                let mut spec = tool.spec().clone();
                spec.max_output = Some(spec.max_output.map_or(self.bytes, |own| own.min(self.bytes)));
                tool.adapt(spec)
            })
        };
        Ok(self.kept.made(std::slice::from_ref(&set), changed))
    }
}
