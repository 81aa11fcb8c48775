//! The tools of a turn: resolved once, then listed, admitted and run from the same set.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
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
    parts: Mutex<HashMap<String, Option<Schema>>>,
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
        let inner = Inner { spec: body.spec(), schema: OnceLock::new(), parts: Mutex::default(), body };
        Self { inner: Arc::new(inner) }
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

    /// The compiled part of the schema at a JSON pointer, if it compiles; kept for the next time.
    pub(crate) fn part(&self, pointer: &str) -> Option<Schema> {
        let schema = self.schema().ok()?;
        let mut parts = self.inner.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(pointer) {
            return part.clone();
        }
        let part = schema.part(pointer).ok();
        parts.insert(pointer.to_owned(), part.clone());
        part
    }

    /// Whether the tool has a change of raw arguments of its own.
    pub(crate) fn rewrites(&self) -> bool {
        self.inner.body.rewrites()
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
        Self::of(tools, Vec::new())
    }

    /// The tools of several sets, in order; their warnings are kept.
    pub fn merge<'a>(sets: impl IntoIterator<Item = &'a Toolset>) -> Self {
        let mut warnings = Vec::new();
        let mut tools = Vec::new();
        for set in sets {
            warnings.extend_from_slice(set.warnings());
            tools.extend(set.iter().cloned());
        }
        Self::of(tools, warnings)
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

    fn of(tools: impl IntoIterator<Item = Bound>, warnings: Vec<Warning>) -> Self {
        let mut set = Set { warnings, ..Set::default() };
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
