//! A guard: may request an approval for calls of other tools, refuse them, and record them.

use std::sync::Arc;

use adjutant_llm::CallResult;
use async_trait::async_trait;
use serde_json::Value;

use crate::{Ask, Bound, CallContext, Conversation, ErasedTool, ToolError, ToolSpec};

/// A check before calls of tools: see [`Toolbox::guard`](crate::Toolbox::guard).
#[async_trait]
pub trait Guard: Send + Sync + 'static {
    /// Returns the approval that a call with these arguments needs, or `None`; the arguments match the schema.
    fn approval(&self, spec: &ToolSpec, args: &Value) -> Option<Ask>;

    /// A call is about to run, with the arguments that were approved if that was needed.
    ///
    /// # Errors
    /// Why it may not: the tool is not called then.
    async fn enter(&self, spec: &ToolSpec, args: &Value, cx: &CallContext)
    -> Result<(), ToolError>;
}

/// The admission of the call that a context serves, for a guard that decides once more before the call starts.
#[derive(Debug, Clone, Default)]
pub struct CallAdmission {
    /// The question that a person approved; `None` if the call was admitted without one.
    pub asked: Option<Ask>,
}

/// A tool behind a guard.
struct Guarded<G> {
    tool: Bound,
    guard: Arc<G>,
}

/// The tool behind a guard.
pub(crate) fn guard_tool(tool: &Bound, guard: &Arc<impl Guard>) -> Bound {
    tool.with_body(Arc::new(Guarded {
        tool: tool.clone(),
        guard: Arc::clone(guard),
    }))
}

#[async_trait]
impl<G: Guard> ErasedTool for Guarded<G> {
    fn spec(&self) -> ToolSpec {
        self.tool.spec().clone()
    }

    fn rewrite(&self, args: Value) -> Value {
        self.tool.rewrite(args)
    }

    fn rewrites(&self) -> bool {
        self.tool.rewrites()
    }

    fn approval(&self, args: &Value) -> Option<Ask> {
        self.tool
            .approval_request(args)
            .or_else(|| self.guard.approval(self.tool.spec(), args))
    }

    fn check(&self, args: &Value, conversation: &Conversation) -> Result<(), ToolError> {
        self.tool.check(args, conversation)
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        self.guard.enter(self.tool.spec(), &args, &cx).await?;
        self.tool.call(args, cx).await
    }
}
