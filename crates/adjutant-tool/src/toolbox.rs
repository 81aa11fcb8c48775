//! A source of tools.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use adjutant_llm::ToolName;
use async_trait::async_trait;

use crate::{Bound, ErasedTool, Identity, ToolError, Toolset};

/// A source of tools, asked once a turn.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a toolbox",
    note = "`Tools` makes one out of tools, `toolbox_fn` out of a function"
)]
pub trait Toolbox: Send + Sync {
    /// Returns the name of the toolbox.
    fn name(&self) -> &str;

    /// The tools that this agent may have now.
    ///
    /// # Errors
    /// Whatever keeps the source from answering; the run fails with it.
    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError>;
}

#[async_trait]
impl<T: Toolbox + ?Sized> Toolbox for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        (**self).resolve(who).await
    }
}

/// A toolbox that always holds the same tools.
#[derive(Clone)]
pub struct Tools {
    name: Arc<str>,
    bound: Vec<Bound>,
    /// Shared by clones, so that all of them show a model the same list.
    set: Arc<OnceLock<Toolset>>,
}

impl Tools {
    /// An empty toolbox.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), bound: Vec::new(), set: Arc::default() }
    }

    /// Adds a tool at the end; of several with one name the first stays, and the set warns of the others.
    #[must_use]
    pub fn tool(mut self, tool: impl ErasedTool + 'static) -> Self {
        self.bound.push(Bound::new(tool));
        // A set that is shared, or made already, is that of fewer tools.
        if Arc::get_mut(&mut self.set).is_none_or(|set| set.take().is_some()) {
            self.set = Arc::default();
        }
        self
    }

    /// The names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.toolset().iter().map(|tool| tool.spec().name())
    }

    /// The tools; made into a set when they are first asked for.
    pub fn toolset(&self) -> &Toolset {
        self.set.get_or_init(|| Toolset::new(self.bound.iter().cloned()))
    }
}

#[async_trait]
impl Toolbox for Tools {
    fn name(&self) -> &str {
        &self.name
    }

    async fn resolve(&self, _: &Identity) -> Result<Toolset, ToolError> {
        Ok(self.toolset().clone())
    }
}

/// A toolbox made of a function.
///
/// A set that did not change should be given as a clone, so that a model is shown the same list.
pub fn toolbox_fn<F, Fut>(name: impl Into<Arc<str>>, resolve: F) -> impl Toolbox + 'static
where
    F: Fn(Identity) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Toolset, ToolError>> + Send + 'static,
{
    FnToolbox { name: name.into(), resolve }
}

struct FnToolbox<F> {
    name: Arc<str>,
    resolve: F,
}

#[async_trait]
impl<F, Fut> Toolbox for FnToolbox<F>
where
    F: Fn(Identity) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Toolset, ToolError>> + Send + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        (self.resolve)(who.clone()).await
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("name", &self.name).field("set", self.toolset()).finish()
    }
}
