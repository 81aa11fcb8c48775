//! A source of tools.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{Bound, ErasedTool, Identity, ToolError, Toolset};

/// A source of tools, asked once a turn.
#[async_trait]
#[diagnostic::on_unimplemented(message = "`{Self}` is not a toolbox", note = "`Tools` makes one out of tools")]
pub trait Toolbox: Send + Sync {
    /// What the toolbox is called.
    fn name(&self) -> &str;

    /// The tools that this agent may have now.
    ///
    /// # Errors
    /// Whatever keeps the source from answering; the run fails with it.
    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError>;
}

/// A toolbox that always holds the same tools.
#[derive(Clone)]
pub struct Tools {
    name: Arc<str>,
    set: Toolset,
}

impl Tools {
    /// An empty toolbox.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), set: Toolset::default() }
    }

    /// Adds a tool at the end; the first one of a name stays.
    #[must_use]
    pub fn tool(self, tool: impl ErasedTool + 'static) -> Self {
        let tools = self.set.iter().cloned().chain([Bound::new(tool)]);
        Self { set: Toolset::new(tools), name: self.name }
    }

    /// The tools.
    pub fn toolset(&self) -> &Toolset {
        &self.set
    }
}

#[async_trait]
impl Toolbox for Tools {
    fn name(&self) -> &str {
        &self.name
    }

    async fn resolve(&self, _: &Identity) -> Result<Toolset, ToolError> {
        Ok(self.set.clone())
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("name", &self.name).field("set", &self.set).finish()
    }
}
