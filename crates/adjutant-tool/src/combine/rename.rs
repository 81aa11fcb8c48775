//! Tools under other names.

use std::collections::BTreeMap;

use adjutant_llm::{ToolName, Warning, WarningKind};
use async_trait::async_trait;

use super::SetCache;
use crate::{Bound, Identity, ToolError, Toolbox, Toolset};

/// A toolbox some of whose tools have other names.
///
/// All are renamed at once, so that two may swap their names. The set warns of a name that no tool has.
#[derive(Debug)]
pub struct Rename<T> {
    inner: T,
    names: BTreeMap<ToolName, ToolName>,
    kept: SetCache,
}

impl<T: Toolbox> Rename<T> {
    /// Gives tools other names: the old one, then the new one; of several new ones the last counts.
    pub fn new<O, N>(inner: T, names: impl IntoIterator<Item = (O, N)>) -> Self
    where
        O: Into<ToolName>,
        N: Into<ToolName>,
    {
        let names = names.into_iter().map(|(old, new)| (old.into(), new.into())).collect();
        Self { inner, names, kept: SetCache::default() }
    }

    fn renamed(&self, tool: &Bound) -> Bound {
        let Some(name) = self.names.get(tool.spec().name()) else { return tool.clone() };
        let mut spec = tool.spec().clone();
        spec.decl.name = name.clone();
        tool.adapt(spec)
    }

    fn warnings(&self, set: &Toolset) -> Vec<Warning> {
        let missing = self.names.iter().filter(|(old, _)| set.get(old.as_str()).is_none());
        let warning = |(old, new): (&ToolName, &ToolName)| {
            format!("toolbox {:?} has no tool {old} that could be called {new}", self.inner.name())
        };
        missing.map(|it| Warning::new(WarningKind::Degraded, warning(it))).collect()
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Rename<T> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let renamed = || set.warn(self.warnings(&set)).each(|tool| self.renamed(tool));
        Ok(self.kept.made(std::slice::from_ref(&set), renamed))
    }
}
