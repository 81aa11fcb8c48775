//! Several toolboxes as one.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{Identity, ToolError, Toolbox, Toolset, set_cache::SetCache};

/// Several toolboxes, in order; of several tools with one name the first stays, and the set warns of the others.
pub struct Composite {
    name: Arc<str>,
    toolboxes: Vec<Arc<dyn Toolbox>>,
    kept: SetCache,
}

impl Composite {
    /// No toolbox yet.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            toolboxes: Vec::new(),
            kept: SetCache::default(),
        }
    }

    /// Adds a toolbox at the end.
    #[must_use]
    pub fn toolbox(mut self, toolbox: impl Toolbox + 'static) -> Self {
        self.toolboxes.push(Arc::new(toolbox));
        self
    }
}

#[async_trait]
impl Toolbox for Composite {
    fn name(&self) -> &str {
        &self.name
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let mut sets = Vec::with_capacity(self.toolboxes.len());
        for toolbox in &self.toolboxes {
            let named = |error: ToolError| {
                let message = format!("toolbox {:?} could not be opened", toolbox.name());
                ToolError::new(error.kind, message).with_source(error)
            };
            sets.push(toolbox.resolve(who).await.map_err(named)?);
        }
        Ok(self.kept.get_or_make(&sets, || Toolset::merge(&sets)))
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.toolboxes.iter().map(|it| it.name()).collect();
        f.debug_struct("Composite")
            .field("name", &self.name)
            .field("toolboxes", &names)
            .finish()
    }
}
