//! Tools under longer names.

use std::sync::Arc;

use async_trait::async_trait;

use super::SetCache;
use crate::{Identity, ToolError, Toolbox, Toolset};

/// A toolbox whose tools have a text before their names, as in `gh_search`.
#[derive(Debug)]
pub struct Prefix<T> {
    inner: T,
    prefix: Arc<str>,
    kept: SetCache,
}

impl<T: Toolbox> Prefix<T> {
    /// Puts `prefix` before every name, as it is; names that providers take have 64 characters at most.
    pub fn new(inner: T, prefix: impl Into<Arc<str>>) -> Self {
        Self { inner, prefix: prefix.into(), kept: SetCache::default() }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Prefix<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let changed = || {
            set.each(|tool| {
                let mut spec = tool.spec().clone();
                spec.decl.name = format!("{}{}", self.prefix, spec.name()).into();
                tool.adapt(spec)
            })
        };
        Ok(self.kept.made(std::slice::from_ref(&set), changed))
    }
}
