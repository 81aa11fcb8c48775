//! The tools of a turn: resolved once, then listed, admitted and run from the same set.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use adjutant_llm::{CallResult, Error, Estimate, Schema, ToolDecl, ToolName, Warning, WarningKind};
use serde_json::Value;

use crate::{Approval, Ask, CallContext, Conversation, ErasedTool, ToolError, ToolSpec};

/// A tool with its cached data; cheap to clone.
#[derive(Clone)]
pub struct Bound {
    inner: Arc<Inner>,
}

struct Inner {
    spec: ToolSpec,
    /// Shared by all copies that show the model the same schema.
    compiled: Arc<Compiled>,
    body: Arc<dyn ErasedTool>,
    /// The approvals that an adapted copy requires, in addition to the body's.
    asks: Option<Arc<Asks>>,
}

#[derive(Default)]
struct Compiled {
    schema: OnceLock<Result<Schema, Error>>,
    parts: Mutex<HashMap<String, Option<Schema>>>,
}

type Asks = dyn Fn(&Value) -> Option<Ask> + Send + Sync;

/// Tools in order, with unique names; cheap to clone.
#[derive(Clone, Default)]
pub struct Toolset {
    inner: Arc<Set>,
}

#[derive(Default)]
struct Set {
    bound: Vec<Bound>,
    index: BTreeMap<ToolName, usize>,
    decls: Arc<[ToolDecl]>,
    /// The estimated size of the declarations, once it was requested.
    tokens: OnceLock<u32>,
    warnings: Box<[Warning]>,
    /// Tools that are there and not listed.
    more: Option<Toolset>,
}

impl Bound {
    /// Binds a tool: reads its spec once.
    pub fn new(tool: impl ErasedTool + 'static) -> Self {
        let body: Arc<dyn ErasedTool> = Arc::new(tool);
        let inner = Inner {
            spec: body.spec(),
            compiled: Arc::default(),
            body,
            asks: None,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The same tool, saying something else about itself; a schema that stays is not compiled again.
    #[must_use]
    pub fn adapt(&self, spec: ToolSpec) -> Self {
        let same = Arc::ptr_eq(&spec.decl.schema, &self.inner.spec.decl.schema);
        let compiled = if same {
            Arc::clone(&self.inner.compiled)
        } else {
            Arc::default()
        };
        let (body, asks) = (Arc::clone(&self.inner.body), self.inner.asks.clone());
        Self {
            inner: Arc::new(Inner {
                spec,
                compiled,
                body,
                asks,
            }),
        }
    }

    /// Returns the same tool, whose calls also need an approval if `when` requires one.
    ///
    /// `when` sees the tool as it is now, under the name that it has now.
    #[must_use]
    pub fn asking(
        &self,
        when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static,
    ) -> Self {
        let before = self.clone();
        let asks = move |args: &Value| {
            before
                .approval_request(args)
                .or_else(|| when(before.spec(), args))
        };
        let (spec, compiled) = (self.inner.spec.clone(), Arc::clone(&self.inner.compiled));
        let (body, asks) = (
            Arc::clone(&self.inner.body),
            Some(Arc::new(asks) as Arc<Asks>),
        );
        Self {
            inner: Arc::new(Inner {
                spec,
                compiled,
                body,
                asks,
            }),
        }
    }

    /// Returns the approval that a call with these arguments needs, or `None`; the arguments match the schema.
    ///
    /// The tool's own question comes first, then the questions of its adapters, innermost first, then the one in its
    /// spec.
    pub fn approval(&self, args: &Value) -> Option<Ask> {
        self.approval_request(args)
            .or_else(|| match self.inner.spec.approval {
                Approval::Never => None,
                Approval::Always => {
                    let remarks = self
                        .spec()
                        .remarks()
                        .map(|remarks| format!(" ({remarks})"))
                        .unwrap_or_default();
                    Some(Ask::approval(format!(
                        "Run {:?}{remarks} with these arguments?",
                        self.spec().name().as_str()
                    )))
                }
            })
    }

    /// Checks that a call with these arguments can succeed, before an approval is requested.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check(&self, args: &Value, conversation: &Conversation) -> Result<(), ToolError> {
        self.inner.body.check(args, conversation)
    }

    /// Returns the same tool with another body, which handles all approvals.
    pub(crate) fn with_body(&self, body: Arc<dyn ErasedTool>) -> Self {
        let (spec, compiled) = (self.inner.spec.clone(), Arc::clone(&self.inner.compiled));
        Self {
            inner: Arc::new(Inner {
                spec,
                compiled,
                body,
                asks: None,
            }),
        }
    }

    pub(crate) fn approval_request(&self, args: &Value) -> Option<Ask> {
        match &self.inner.asks {
            Some(asks) => asks(args),
            None => self.inner.body.approval(args),
        }
    }

    /// Returns the description of the tool.
    pub fn spec(&self) -> &ToolSpec {
        &self.inner.spec
    }

    /// Returns the compiled schema of the arguments, compiled on first use.
    ///
    /// # Errors
    /// `Invalid` if the tool's schema is not valid.
    pub fn schema(&self) -> Result<&Schema, &Error> {
        let compile = || Schema::compile(Arc::clone(&self.inner.spec.decl.schema));
        self.inner.compiled.schema.get_or_init(compile).as_ref()
    }

    /// The compiled part of the schema at a JSON pointer, if it compiles; kept for the next time.
    pub(crate) fn part(&self, pointer: &str) -> Option<Schema> {
        let schema = self.schema().ok()?;
        let mut parts = self
            .inner
            .compiled
            .parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(pointer) {
            return part.clone();
        }
        let part = schema.part(pointer).ok();
        parts.insert(pointer.to_owned(), part.clone());
        part
    }

    /// True if the tool has its own rewrite of raw arguments.
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
    /// The error of the tool.
    pub async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        self.inner.body.call(args, cx).await
    }
}

impl Toolset {
    /// Creates a set of these tools, in order. If several have the same name, the first one stays, and a warning
    /// names the others.
    pub fn new(tools: impl IntoIterator<Item = Bound>) -> Self {
        Self::from_parts(tools, Vec::new(), None)
    }

    /// The tools of several sets, in order; their warnings are kept.
    pub fn merge<'a>(sets: impl IntoIterator<Item = &'a Toolset>) -> Self {
        let (mut warnings, mut tools, mut more) = (Vec::new(), Vec::new(), Vec::new());
        for set in sets {
            warnings.extend_from_slice(set.warnings());
            tools.extend(set.iter().cloned());
            more.extend(&set.inner.more);
        }
        let more = if more.len() < 2 {
            more.pop().cloned()
        } else {
            Some(Self::merge(more))
        };
        Self::from_parts(tools, warnings, more)
    }

    /// Returns this set with additional unlisted tools: they are not sent to the model, and a call of one does not
    /// run.
    #[must_use]
    pub fn beside(&self, more: &Toolset) -> Self {
        let warnings = self
            .warnings()
            .iter()
            .chain(more.warnings())
            .cloned()
            .collect();
        Self::from_parts(self.iter().cloned(), warnings, Some(more.clone()))
    }

    /// True if a tool of that name is there and not listed.
    pub fn is_unlisted(&self, name: &str) -> bool {
        self.get(name).is_none()
            && self
                .inner
                .more
                .as_ref()
                .is_some_and(|more| more.get(name).is_some())
    }

    /// This set and then another; this very set if the other holds nothing.
    #[must_use]
    pub fn with(&self, more: &Toolset) -> Self {
        if more.is_empty() && more.warnings().is_empty() && more.inner.more.is_none() {
            return self.clone();
        }
        Self::merge([self, more])
    }

    /// This set without the tools of these names; this very set if it has none of them.
    #[must_use]
    pub fn hiding(&self, names: &[ToolName]) -> Self {
        let keep: Vec<bool> = self
            .iter()
            .map(|tool| !names.contains(tool.spec().name()))
            .collect();
        self.keeping(&keep)
    }

    /// The tools that are marked, by place; this very set if all are.
    pub(crate) fn keeping(&self, keep: &[bool]) -> Self {
        if keep.iter().all(|keep| *keep) {
            return self.clone();
        }
        let kept = self
            .iter()
            .zip(keep)
            .filter(|(_, keep)| **keep)
            .map(|(tool, _)| tool.clone());
        Self::from_parts(kept, self.warnings().to_vec(), self.inner.more.clone())
    }

    /// Each tool changed, in the same order.
    pub(crate) fn each(&self, change: impl Fn(&Bound) -> Bound) -> Self {
        let more = self
            .inner
            .more
            .as_ref()
            .map(|more| Self::new(more.iter().map(&change)));
        Self::from_parts(self.iter().map(change), self.warnings().to_vec(), more)
    }

    /// The same tools, with more warnings.
    #[must_use]
    pub fn warn(&self, more: impl IntoIterator<Item = Warning>) -> Self {
        let warnings = self.warnings().iter().cloned().chain(more).collect();
        Self::from_parts(self.iter().cloned(), warnings, self.inner.more.clone())
    }

    /// True if both offer the same tools from the same allocation, and warn of the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.decls(), other.decls()) && self.warnings() == other.warnings()
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

    /// Returns the declarations for the model, in order; the same allocation every time.
    pub fn decls(&self) -> &Arc<[ToolDecl]> {
        &self.inner.decls
    }

    /// Returns the estimated size of the declarations in tokens, estimated on first use.
    pub fn tokens(&self) -> u64 {
        let decl = |decl: &ToolDecl| {
            let texts = [
                decl.name.as_str(),
                &*decl.description,
                &decl.schema.to_string(),
            ];
            texts
                .into_iter()
                .map(|text| Estimate.count(text))
                .sum::<u64>()
        };
        let all = || self.decls().iter().map(decl).fold(0, u64::saturating_add);
        u64::from(
            *self
                .inner
                .tokens
                .get_or_init(|| u32::try_from(all()).unwrap_or(u32::MAX)),
        )
    }

    /// Returns the warnings that came up while the set was made.
    pub fn warnings(&self) -> &[Warning] {
        &self.inner.warnings
    }

    /// True if it has no tools.
    pub fn is_empty(&self) -> bool {
        self.inner.bound.is_empty()
    }

    fn from_parts(
        tools: impl IntoIterator<Item = Bound>,
        mut warnings: Vec<Warning>,
        more: Option<Toolset>,
    ) -> Self {
        let mut set = Set {
            more,
            ..Set::default()
        };
        for tool in tools {
            let name = tool.spec().name().clone();
            if set.index.contains_key(&name) {
                let message =
                    format!("a second tool is called {name}; only the first one is offered");
                warnings.push(Warning {
                    kind: WarningKind::ToolShadowed,
                    message: message.into(),
                });
                continue;
            }
            set.index.insert(name, set.bound.len());
            set.bound.push(tool);
        }
        set.warnings = warnings.into();
        set.decls = set
            .bound
            .iter()
            .map(|tool| tool.spec().decl.clone())
            .collect();
        Self {
            inner: Arc::new(set),
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("spec", &self.inner.spec)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|tool| tool.spec().name()))
            .finish()
    }
}
