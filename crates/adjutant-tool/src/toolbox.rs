//! A source of tools.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use adjutant_llm::{ToolName, Warning, WarningKind};
use async_trait::async_trait;

use serde_json::Value;

use crate::{
    Approval, Ask, Bound, ErasedTool, Guard, Identity, ToolError, ToolSpec, Toolset,
    guard::guard_tool, set_cache::SetCache,
};

/// A source of tools, resolved once a turn.
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
    /// The error of the source; the run fails with it.
    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError>;

    /// Puts a text before every name, as it is; names that providers take have 64 characters at most.
    fn prefix(self, prefix: impl Into<Arc<str>>) -> impl Toolbox
    where
        Self: Sized,
    {
        let prefix = prefix.into();
        Adapted::each(self, move |tool| {
            let mut spec = tool.spec().clone();
            spec.decl.name = format!("{prefix}{}", spec.name()).into();
            tool.adapt(spec)
        })
    }

    /// Gives tools other names: the old one, then the new one; of several new ones the last counts.
    ///
    /// All are renamed at once, so that two may swap their names. The set warns of a name that no tool has.
    fn rename<O: Into<ToolName>, N: Into<ToolName>>(
        self,
        names: impl IntoIterator<Item = (O, N)>,
    ) -> impl Toolbox
    where
        Self: Sized,
    {
        let names: BTreeMap<ToolName, ToolName> = names
            .into_iter()
            .map(|(old, new)| (old.into(), new.into()))
            .collect();
        let toolbox = self.name().to_owned();
        let renamed = move |set: &Toolset| {
            let missing = names
                .iter()
                .filter(|(old, _)| set.get(old.as_str()).is_none());
            let warnings = missing.map(|(old, new)| Warning {
                kind: WarningKind::Degraded,
                message: format!(
                    "toolbox {toolbox:?} has no tool {old} that could be called {new}"
                )
                .into(),
            });
            set.warn(warnings)
                .each(|tool| match names.get(tool.spec().name()) {
                    None => tool.clone(),
                    Some(name) => {
                        let mut spec = tool.spec().clone();
                        spec.decl.name = name.clone();
                        tool.adapt(spec)
                    }
                })
        };
        Adapted {
            inner: self,
            change: renamed,
            cache: SetCache::default(),
        }
    }

    /// Keeps the tools that this agent may use; called at every turn, for every tool.
    fn filter(self, keep: impl Fn(&Identity, &ToolSpec) -> bool + Send + Sync) -> impl Toolbox
    where
        Self: Sized,
    {
        Filtered {
            inner: self,
            keep,
            cache: SetCache::default(),
        }
    }

    /// Limits the text of a result for the model to this number of bytes; a lower limit of the tool stays.
    fn limit_output(self, bytes: usize) -> impl Toolbox
    where
        Self: Sized,
    {
        Adapted::each(self, move |tool| {
            let spec = tool.spec().clone();
            let max_output = Some(spec.max_output.map_or(bytes, |own| own.min(bytes)));
            tool.adapt(ToolSpec { max_output, ..spec })
        })
    }

    /// Limits the time of a call, instead of the run's own limit; a lower limit of the tool stays.
    fn time_out(self, limit: Duration) -> impl Toolbox
    where
        Self: Sized,
    {
        Adapted::each(self, move |tool| {
            let spec = tool.spec().clone();
            let timeout = Some(spec.timeout.map_or(limit, |own| own.min(limit)));
            tool.adapt(ToolSpec { timeout, ..spec })
        })
    }

    /// Makes every call need an approval.
    fn confirm(self) -> impl Toolbox
    where
        Self: Sized,
    {
        Adapted::each(self, |tool| {
            tool.adapt(ToolSpec {
                approval: Approval::Always,
                ..tool.spec().clone()
            })
        })
    }

    /// Requires an approval for the calls for which `when` returns a question. It receives the tool under its name
    /// here, and the arguments. Approvals that the tools themselves request stay.
    fn confirm_when(
        self,
        when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static,
    ) -> impl Toolbox
    where
        Self: Sized,
    {
        let when = Arc::new(when);
        Adapted::each(self, move |tool| {
            let when = Arc::clone(&when);
            tool.asking(move |spec, args| when(spec, args))
        })
    }

    /// Puts a guard before every call: it may request an approval, and refuse. Approvals that the tools themselves
    /// request stay. It receives a tool under its name here.
    fn guard(self, guard: Arc<impl Guard>) -> impl Toolbox
    where
        Self: Sized,
    {
        Adapted::each(self, move |tool| guard_tool(tool, &guard))
    }
}

/// A toolbox with adapted sets. A set is built again only if its source changed, so that a model receives the same
/// list turn after turn.
struct Adapted<T, F> {
    inner: T,
    change: F,
    cache: SetCache,
}

/// The tools of a toolbox that an agent may have.
struct Filtered<T, F> {
    inner: T,
    keep: F,
    cache: SetCache,
}

impl<T: Toolbox> Adapted<T, ()> {
    /// Changes each tool separately.
    fn each(inner: T, change: impl Fn(&Bound) -> Bound + Send + Sync) -> impl Toolbox {
        Adapted {
            inner,
            change: move |set: &Toolset| set.each(&change),
            cache: SetCache::default(),
        }
    }
}

#[async_trait]
impl<T: Toolbox, F: Fn(&Toolset) -> Toolset + Send + Sync> Toolbox for Adapted<T, F> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        Ok(self
            .cache
            .get_or_make(std::slice::from_ref(&set), || (self.change)(&set)))
    }
}

#[async_trait]
impl<T: Toolbox, F: Fn(&Identity, &ToolSpec) -> bool + Send + Sync> Toolbox for Filtered<T, F> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn resolve(&self, who: &Identity) -> Result<Toolset, ToolError> {
        let set = self.inner.resolve(who).await?;
        let keep: Vec<bool> = set
            .iter()
            .map(|tool| (self.keep)(who, tool.spec()))
            .collect();
        Ok(self
            .cache
            .get_or_filter(std::slice::from_ref(&set), keep.clone(), || {
                set.keeping(&keep)
            }))
    }
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
        Self {
            name: name.into(),
            bound: Vec::new(),
            set: Arc::default(),
        }
    }

    /// Adds a tool at the end; of several with one name the first stays, and the set warns of the others.
    #[must_use]
    pub fn tool(mut self, tool: impl ErasedTool + 'static) -> Self {
        self.bound.push(Bound::new(tool));
        // A set that is shared or already built belongs to fewer tools.
        if Arc::get_mut(&mut self.set).is_none_or(|set| set.take().is_some()) {
            self.set = Arc::default();
        }
        self
    }

    /// The names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.toolset().iter().map(|tool| tool.spec().name())
    }

    /// Returns the tools as a set, built on first use.
    pub fn toolset(&self) -> &Toolset {
        self.set
            .get_or_init(|| Toolset::new(self.bound.iter().cloned()))
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
/// Return an unchanged set as a clone, so that a model receives the same list.
pub fn toolbox_fn<F, Fut>(name: impl Into<Arc<str>>, resolve: F) -> impl Toolbox + 'static
where
    F: Fn(Identity) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Toolset, ToolError>> + Send + 'static,
{
    FnToolbox {
        name: name.into(),
        resolve,
    }
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
        f.debug_struct("Tools")
            .field("name", &self.name)
            .field("set", self.toolset())
            .finish()
    }
}
