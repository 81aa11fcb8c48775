//! A tool, typed for who writes it and erased for who runs it.

use std::sync::Arc;

use adjutant_llm::CallResult;
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Ask, CallContext, Conversation, IntoOutput, ToolError, ToolErrorKind, ToolSpec};

/// A tool as its author sees it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` on a function, implement `Tool`, or use `tool_fn`"
)]
pub trait Tool: Send + Sync + 'static {
    /// The type that the model's arguments are read into.
    type Args: DeserializeOwned + Send;
    /// The type that the tool returns.
    type Output: IntoOutput;

    /// Returns the description of the tool; called once.
    fn spec(&self) -> ToolSpec;

    /// Changes raw arguments before they are validated; leaves them as they are by default.
    fn rewrite(&self, args: Value) -> Value {
        args
    }

    /// True if `rewrite` does anything; answer `false` to spare a copy of the arguments: it is not called then.
    fn rewrites(&self) -> bool {
        true
    }

    /// Returns the approval that a call with these raw arguments, which fit the schema, needs; none by default.
    fn approval(&self, _args: &Value) -> Option<Ask> {
        None
    }

    /// Checks that a call with these arguments, which fit the schema, can succeed; `Ok` by default.
    ///
    /// It is called before an approval is requested, changes nothing and returns quickly.
    ///
    /// # Errors
    /// The reason, with which the call fails instead of the request.
    fn check(&self, _args: &Value, _conversation: &Conversation) -> Result<(), ToolError> {
        Ok(())
    }

    /// Runs the tool.
    ///
    /// Cancel: the future is dropped after a grace period when the run is cancelled; watch `cx.cancel` to end well.
    fn call(
        &self,
        args: Self::Args,
        cx: CallContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// A tool as who runs it sees it. Implemented for every [`Tool`]; implement it directly for tools that are data.
#[async_trait]
pub trait ErasedTool: Send + Sync {
    /// Returns the description of the tool; called once.
    fn spec(&self) -> ToolSpec;

    /// Changes raw arguments before they are validated.
    fn rewrite(&self, args: Value) -> Value {
        args
    }

    /// True if `rewrite` does anything; answer `false` to spare a copy of the arguments: it is not called then.
    fn rewrites(&self) -> bool {
        true
    }

    /// Returns the approval that a call with these arguments, which fit the schema, needs; none by default.
    fn approval(&self, _args: &Value) -> Option<Ask> {
        None
    }

    /// Checks that a call with these arguments, which fit the schema, can succeed; `Ok` by default.
    ///
    /// It is called before an approval is requested, changes nothing and returns quickly.
    ///
    /// # Errors
    /// The reason, with which the call fails instead of the request.
    fn check(&self, _args: &Value, _conversation: &Conversation) -> Result<(), ToolError> {
        Ok(())
    }

    /// Runs the tool with arguments that fit its schema.
    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError>;
}

#[async_trait]
impl<T: Tool> ErasedTool for T {
    fn spec(&self) -> ToolSpec {
        Tool::spec(self)
    }

    fn rewrite(&self, args: Value) -> Value {
        Tool::rewrite(self, args)
    }

    fn rewrites(&self) -> bool {
        Tool::rewrites(self)
    }

    fn approval(&self, args: &Value) -> Option<Ask> {
        Tool::approval(self, args)
    }

    fn check(&self, args: &Value, conversation: &Conversation) -> Result<(), ToolError> {
        Tool::check(self, args, conversation)
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        let args = serde_json::from_value(args).map_err(|error| {
            let message = format!("the arguments fit the schema but not the tool: {error}");
            ToolError::new(ToolErrorKind::InvalidArguments, message)
        })?;
        Tool::call(self, args, cx).await?.into_output()
    }
}

/// A tool made of a function.
pub fn tool_fn<F, Fut>(spec: ToolSpec, call: F) -> impl ErasedTool + 'static
where
    F: Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    FnTool { spec, call }
}

struct FnTool<F> {
    spec: ToolSpec,
    call: F,
}

#[async_trait]
impl<F, Fut> ErasedTool for FnTool<F>
where
    F: Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn rewrites(&self) -> bool {
        false
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        (self.call)(args, cx).await
    }
}

/// A tool without a body here: the application runs it and returns the result.
///
/// A call that reaches the body anyway fails.
pub fn external_tool(spec: ToolSpec) -> impl ErasedTool + 'static {
    let message: Arc<str> = format!(
        "tool {:?} has no body here: its result is given from outside",
        spec.name().as_str()
    )
    .into();
    tool_fn(
        ToolSpec {
            external: true,
            ..spec
        },
        move |_, _| {
            let error = ToolError::failed(Arc::clone(&message));
            async move { Err(error) }
        },
    )
}
