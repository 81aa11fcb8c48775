//! The tools of a turn: resolved once, then listed, admitted and run from the same set.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use adjutant_llm::{CallResult, Error, Schema, ToolDecl, ToolName, Warning, WarningKind};
use serde_json::Value;

use crate::{CallContext, ErasedTool, ToolError, ToolSpec};

/// A tool with what is computed from it once; cheap to clone.
#[derive(Clone)]
pub struct Bound {
    inner: Arc<Inner>,
}

struct Inner {
    spec: ToolSpec,
    schema: OnceLock<Result<Schema, Error>>,
    body: Arc<dyn ErasedTool>,
}

/// Tools in order, with unique names; cheap to clone.
#[derive(Clone, Default)]
pub struct Toolset {
    inner: Arc<Set>,
}

#[derive(Default)]
struct Set {
    bound: Vec<Bound>,
    index: HashMap<ToolName, usize>,
    decls: Arc<[ToolDecl]>,
    warnings: Vec<Warning>,
}

impl Bound {
    /// Binds a tool: asks for its spec once.
    pub fn new(tool: impl ErasedTool + 'static) -> Self {
        Self::shared(Arc::new(tool))
    }

    /// Binds a tool that is shared already.
    pub fn shared(body: Arc<dyn ErasedTool>) -> Self {
        Self { inner: Arc::new(Inner { spec: body.spec(), schema: OnceLock::new(), body }) }
    }

    /// What the tool says about itself.
    pub fn spec(&self) -> &ToolSpec {
        &self.inner.spec
    }

    /// The compiled schema of the arguments; compiled when it is first asked for.
    ///
    /// # Errors
    /// `Invalid` if the tool's schema is none.
    pub fn schema(&self) -> Result<&Schema, &Error> {
        let compile = || Schema::compile(Arc::clone(&self.inner.spec.decl.schema));
        self.inner.schema.get_or_init(compile).as_ref()
    }

    /// The tool's own change of raw arguments.
    pub(crate) fn rewrite(&self, args: Value) -> Value {
        self.inner.body.rewrite(args)
    }

    /// Runs the tool with arguments that fit its schema.
    ///
    /// # Errors
    /// What the tool fails with.
    pub async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        self.inner.body.call(args, cx).await
    }
}

impl Toolset {
    /// These tools, in order; of several with one name the first stays, and a warning tells of the others.
    pub fn new(tools: impl IntoIterator<Item = Bound>) -> Self {
        let mut set = Set::default();
        for tool in tools {
            let name = tool.spec().name().clone();
            if set.index.contains_key(&name) {
                let message = format!("a second tool is called {name}; only the first one is offered");
                set.warnings.push(Warning::new(WarningKind::ToolShadowed, message));
                continue;
            }
            set.index.insert(name, set.bound.len());
            set.bound.push(tool);
        }
        set.decls = set.bound.iter().map(|tool| tool.spec().decl.clone()).collect();
        Self { inner: Arc::new(set) }
    }

    /// The tools of several sets, in order.
    pub fn merge<'a>(sets: impl IntoIterator<Item = &'a Toolset>) -> Self {
        Self::new(sets.into_iter().flat_map(|set| set.iter().cloned()))
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Bound> {
        let at = self.inner.index.get(name)?;
        self.inner.bound.get(*at)
    }

    /// The tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bound> {
        self.inner.bound.iter()
    }

    /// What the model is shown, in order; the same allocation every time.
    pub fn decls(&self) -> &Arc<[ToolDecl]> {
        &self.inner.decls
    }

    /// What was noticed while the set was made.
    pub fn warnings(&self) -> &[Warning] {
        &self.inner.warnings
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.inner.bound.is_empty()
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("spec", &self.inner.spec).finish_non_exhaustive()
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|tool| tool.spec().name())).finish()
    }
}
