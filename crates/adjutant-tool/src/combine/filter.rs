//! Some tools of a toolbox.

use std::fmt;

use async_trait::async_trait;

use super::SetCache;
use crate::{Identity, ToolError, ToolSpec, Toolbox, Toolset};

/// The tools of a toolbox that an agent may have; asked at every turn, for every tool.
pub struct Filter<T> {
    inner: T,
    keep: Box<Keep>,
    kept: SetCache,
}

type Keep = dyn Fn(&Identity, &ToolSpec) -> bool + Send + Sync;

impl<T: Toolbox> Filter<T> {
    /// Keeps the tools for which `keep` says so.
    pub fn new(inner: T, keep: impl Fn(&Identity, &ToolSpec) -> bool + Send + Sync + 'static) -> Self {
        Self { inner, keep: Box::new(keep), kept: SetCache::default() }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Filter<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let keep: Vec<bool> = set.iter().map(|tool| (self.keep)(who, tool.spec())).collect();
        Ok(self.kept.picked(std::slice::from_ref(&set), keep.clone(), || set.keeping(&keep)))
    }
}

impl<T: fmt::Debug> fmt::Debug for Filter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("inner", &self.inner).finish_non_exhaustive()
    }
}
