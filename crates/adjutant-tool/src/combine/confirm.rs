//! Tools that need someone's word.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use serde_json::Value;

use super::SetCache;
use crate::{Approval, Ask, Identity, ToolError, ToolSpec, Toolbox, Toolset};

/// A toolbox whose calls need someone's word: all of them, or those that [`Confirm::when`] picks.
///
/// What the tools themselves ask for stays asked for.
pub struct Confirm<T> {
    inner: T,
    when: Option<Arc<When>>,
    kept: SetCache,
}

type When = dyn Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync;

impl<T: Toolbox> Confirm<T> {
    /// Every call needs someone's word.
    pub fn new(inner: T) -> Self {
        Self { inner, when: None, kept: SetCache::default() }
    }

    /// Only calls for which this says so; it sees the tool under the name that it has here, and its arguments.
    #[must_use]
    pub fn when(self, when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static) -> Self {
        Self { when: Some(Arc::new(when)), kept: SetCache::default(), ..self }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Confirm<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let confirmed = || {
            set.each(|tool| match &self.when {
                None => tool.adapt(ToolSpec { approval: Approval::Always, ..tool.spec().clone() }),
                Some(when) => {
                    let when = Arc::clone(when);
                    tool.asking(move |spec, args| when(spec, args))
                }
            })
        };
        Ok(self.kept.made(std::slice::from_ref(&set), confirmed))
    }
}

impl<T: fmt::Debug> fmt::Debug for Confirm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confirm").field("inner", &self.inner).finish_non_exhaustive()
    }
}
